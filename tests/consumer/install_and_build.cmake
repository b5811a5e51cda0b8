# Installs the build into a fresh prefix, builds project/ against it, and runs what came out.
cmake_minimum_required(VERSION 3.24)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix ${WORK_DIRECTORY}/prefix)
file(REMOVE_RECURSE ${WORK_DIRECTORY})
run(${CMAKE_COMMAND} --install ${BUILD_DIRECTORY} --prefix ${prefix})
foreach(file ${BINDIR}/pyplaypen ${LIBEXECDIR}/pyplaypen/pyplaypen-zygote ${DATADIR}/pyplaypen/python/pyplaypen
             include/pyplaypen/sandbox.h include/pyplaypen/limits.h)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# As another project would: only the prefix is known to it. Its program goes into the prefix too, so
# that the zygote beside it is the installed one.
run(${CMAKE_COMMAND} -S ${PROJECT_DIRECTORY} -B ${WORK_DIRECTORY}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
    -DSANITIZE=${SANITIZE} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_INSTALL_PREFIX=${prefix}
    -DCMAKE_INSTALL_BINDIR=${BINDIR})
run(${CMAKE_COMMAND} --build ${WORK_DIRECTORY}/build --target install)
run(${prefix}/${BINDIR}/consumer)
if(NOT output STREQUAL "2\n")
  message(FATAL_ERROR "the consumer printed '${output}', not 2")
endif()
run(${prefix}/${BINDIR}/pyplaypen exec "1 + 1")
if(NOT output MATCHES "\"return_value\": ?2")
  message(FATAL_ERROR "the installed command printed ${output}")
endif()
