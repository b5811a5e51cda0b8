# What every target of this project is compiled with. Linked PRIVATE, so that it never reaches a user.
add_library(project_settings INTERFACE)
target_compile_features(project_settings INTERFACE cxx_std_20)
target_include_directories(project_settings INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(project_settings INTERFACE _GNU_SOURCE)
target_compile_options(
  project_settings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
            -Wold-style-cast -Wnull-dereference
            # GCC 12 warns of any string that begins as a literal plus a string (its bug 105651).
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
            $<$<BOOL:${PYPLAYPEN_WERROR}>:-Werror>
            $<$<CONFIG:Release>:-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
target_link_options(project_settings INTERFACE -Wl,-z,relro,-z,now)

# Sanitizers stay out of the zygote: its children run under address-space limits and leave by _exit.
add_library(project_sanitizers INTERFACE)
if(PYPLAYPEN_SANITIZE)
  target_compile_options(project_sanitizers INTERFACE -fsanitize=${PYPLAYPEN_SANITIZE} -fno-omit-frame-pointer
                                                      -fno-sanitize-recover=all)
  target_link_options(project_sanitizers INTERFACE -fsanitize=${PYPLAYPEN_SANITIZE})
endif()

# pyplaypen_layer(NAME SOURCES... LINKS...): one static library a folder, alias pyplaypen::NAME. A layer
# that the zygote shares is built twice when sanitizers are on: once with them, once (NAME_plain) without.
function(pyplaypen_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LAYERS;LIBRARIES" ${ARGN})
  set(variants "")
  if(PYPLAYPEN_SANITIZE)
    set(variants _plain)
  endif()
  foreach(suffix IN LISTS variants ITEMS "")
    set(target pyplaypen_${name}${suffix})
    add_library(${target} STATIC ${ARG_SOURCES})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${name})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:project_settings>)
    if(NOT suffix)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:project_sanitizers>)
    endif()
    foreach(layer IN LISTS ARG_LAYERS)
      target_link_libraries(${target} PUBLIC pyplaypen_${layer}${suffix})
    endforeach()
    target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/include)
      target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/${name}/include>)
    endif()
  endforeach()
  add_library(pyplaypen::${name} ALIAS pyplaypen_${name})
endfunction()

# The variant of a layer that the zygote links.
function(pyplaypen_link_plain target)
  foreach(layer IN LISTS ARGN)
    if(TARGET pyplaypen_${layer}_plain)
      target_link_libraries(${target} PRIVATE pyplaypen_${layer}_plain)
    else()
      target_link_libraries(${target} PRIVATE pyplaypen_${layer})
    endif()
  endforeach()
endfunction()
