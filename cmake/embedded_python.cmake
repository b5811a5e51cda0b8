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

# pyplaypen_embedded_python: the interpreter as the zygote links it. Its static library where there is one,
# as in the distribution's own python3: then its code can lie on huge pages (runtime/sys/huge_text.h).
add_library(pyplaypen_embedded_python INTERFACE)
execute_process(
  COMMAND ${PYPLAYPEN_PYTHON} -c "import sysconfig
v = sysconfig.get_config_var
print(v('LIBPL') + '/' + v('LIBRARY'), v('LIBS'), v('MODLIBS'), v('SYSLIBS'), sep=';')"
  OUTPUT_VARIABLE PYPLAYPEN_STATIC_PYTHON OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE " " ";" PYPLAYPEN_STATIC_PYTHON "${PYPLAYPEN_STATIC_PYTHON}")
list(POP_FRONT PYPLAYPEN_STATIC_PYTHON PYPLAYPEN_PYTHON_ARCHIVE)
if(EXISTS ${PYPLAYPEN_PYTHON_ARCHIVE} AND NOT PYPLAYPEN_PYTHON_ARCHIVE MATCHES "\\.so$")
  list(REMOVE_DUPLICATES PYPLAYPEN_STATIC_PYTHON)
  target_link_options(pyplaypen_embedded_python INTERFACE
    -no-pie -Wl,-z,separate-code -Wl,-z,max-page-size=0x200000)
  target_link_libraries(pyplaypen_embedded_python INTERFACE
    -Wl,--whole-archive ${PYPLAYPEN_PYTHON_ARCHIVE} -Wl,--no-whole-archive ${PYPLAYPEN_STATIC_PYTHON})
else()
  target_link_libraries(pyplaypen_embedded_python INTERFACE Python3::Python)
endif()
