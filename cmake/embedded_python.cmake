# Finds the interpreter to embed and its development files; gives the target pyplaypen_python_embed.
# The interpreter is chosen by PYPLAYPEN_PYTHON, not by PATH: the first python3 on PATH may live under
# a home directory that the user which calls run as cannot read.
if(NOT EXISTS ${PYPLAYPEN_PYTHON})
  message(FATAL_ERROR "PYPLAYPEN_PYTHON=${PYPLAYPEN_PYTHON} does not exist; install python3 and "
                      "libpython3-dev, or pass -DPYPLAYPEN_PYTHON=/path/to/python3.")
endif()
set(Python3_EXECUTABLE ${PYPLAYPEN_PYTHON})
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter Development.Embed)
execute_process(
  COMMAND ${PYPLAYPEN_PYTHON} -c "import os, stat, sys
p = os.path.realpath(sys.executable)
while p != '/' and stat.S_IMODE(os.stat(p).st_mode) & 0o005 == 0o005: p = os.path.dirname(p)
print('' if p == '/' else p)"
  OUTPUT_VARIABLE PYPLAYPEN_PYTHON_BARRED OUTPUT_STRIP_TRAILING_WHITESPACE)
if(PYPLAYPEN_PYTHON_BARRED)
  message(WARNING "${PYPLAYPEN_PYTHON} lies under ${PYPLAYPEN_PYTHON_BARRED}, which other users may not "
                  "enter: as root, calls run as another user and will not start. Choose one with "
                  "-DPYPLAYPEN_PYTHON=/usr/bin/python3.")
endif()

# pyplaypen_embedded_python: the interpreter as the zygote links it. Statically where that can be had, as
# the distribution's own python3 is: then its code can lie on huge pages (runtime/sys/huge_text.h).
add_library(pyplaypen_embedded_python INTERFACE)
if(PYPLAYPEN_STATIC_PYTHON)
  execute_process(
    COMMAND ${PYPLAYPEN_PYTHON} -c "import sysconfig
v = sysconfig.get_config_var
print(v('LIBPL') + '/' + v('LIBRARY'), v('LIBS'), v('MODLIBS'), v('SYSLIBS'))"
    OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(libraries UNIX_COMMAND "${archive}")
  list(POP_FRONT libraries archive)
  list(REMOVE_DUPLICATES libraries)
  set(options -no-pie -Wl,-z,separate-code -Wl,-z,max-page-size=0x200000)
  set(whole_archive -Wl,--whole-archive ${archive} -Wl,--no-whole-archive)
  if(EXISTS ${archive})
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${Python3_INCLUDE_DIRS})
    set(CMAKE_REQUIRED_LINK_OPTIONS ${options})
    set(CMAKE_REQUIRED_LIBRARIES ${whole_archive} ${libraries})
    check_cxx_source_compiles("#include <Python.h>
int main() { return Py_IsInitialized(); }" PYPLAYPEN_HAS_STATIC_PYTHON)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    unset(CMAKE_REQUIRED_LIBRARIES)
  endif()
endif()
if(PYPLAYPEN_STATIC_PYTHON AND PYPLAYPEN_HAS_STATIC_PYTHON)
  target_link_options(pyplaypen_embedded_python INTERFACE ${options})
  target_link_libraries(pyplaypen_embedded_python INTERFACE ${whole_archive} ${libraries})
else()
  target_link_libraries(pyplaypen_embedded_python INTERFACE Python3::Python)
endif()
