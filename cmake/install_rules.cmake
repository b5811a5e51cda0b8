# What `cmake --install` puts where, and what find_package(pyplaypen) finds. Also lays the build tree
# out like the installed one: the command finds the zygote as <bin>/../libexec/pyplaypen/, the zygote
# the Python package as ../../share/pyplaypen/python/, in both.
include(CMakePackageConfigHelpers)

set(PYPLAYPEN_PACKAGE_DIRECTORY ${CMAKE_INSTALL_LIBDIR}/cmake/pyplaypen)

# The folder include/ of a layer is the list of its public headers: everything in it is public and
# nothing else is, so it is read, not repeated here.
function(pyplaypen_install_library target include_directory)
  file(GLOB headers CONFIGURE_DEPENDS ${include_directory}/pyplaypen/*.h)
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  if(headers)
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${include_directory} FILES ${headers})
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  install(TARGETS ${target} EXPORT pyplaypen-targets
          ARCHIVE COMPONENT development
          FILE_SET HEADERS COMPONENT development)
endfunction()

foreach(layer sys policy wire jail)
  pyplaypen_install_library(pyplaypen_${layer} ${CMAKE_SOURCE_DIR}/runtime/${layer}/include)
endforeach()
pyplaypen_install_library(pyplaypen_supervisor ${CMAKE_SOURCE_DIR}/supervisor/include)

install(TARGETS pyplaypen_zygote RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/pyplaypen)
install(DIRECTORY share/python/pyplaypen DESTINATION ${CMAKE_INSTALL_DATADIR}/pyplaypen/python
        FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
if(TARGET pyplaypen)  # the command; another project that adds this one builds only the library
  install(TARGETS pyplaypen RUNTIME)
endif()

install(EXPORT pyplaypen-targets NAMESPACE pyplaypen:: DESTINATION ${PYPLAYPEN_PACKAGE_DIRECTORY}
        COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/pyplaypen-config.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/pyplaypen-config.cmake
                              INSTALL_DESTINATION ${PYPLAYPEN_PACKAGE_DIRECTORY})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pyplaypen-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pyplaypen-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/pyplaypen-config-version.cmake
        DESTINATION ${PYPLAYPEN_PACKAGE_DIRECTORY} COMPONENT development)

# The Python package in the build tree: copied anew whenever one of its files changes.
file(GLOB_RECURSE PYPLAYPEN_PYTHON_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/share/python/pyplaypen/*.py)
set(PYPLAYPEN_PYTHON_STAMP ${CMAKE_BINARY_DIR}/share/pyplaypen/python/.copied)
add_custom_command(
  OUTPUT ${PYPLAYPEN_PYTHON_STAMP}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/share/pyplaypen/python
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${CMAKE_SOURCE_DIR}/share/python/pyplaypen
          ${CMAKE_BINARY_DIR}/share/pyplaypen/python/pyplaypen
  COMMAND ${CMAKE_COMMAND} -E touch ${PYPLAYPEN_PYTHON_STAMP}
  DEPENDS ${PYPLAYPEN_PYTHON_FILES}
  COMMENT "Copying the Python package into the build tree")
add_custom_target(pyplaypen_python_package ALL DEPENDS ${PYPLAYPEN_PYTHON_STAMP})
