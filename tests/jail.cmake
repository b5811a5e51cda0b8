# Tests of the jail, and of commands that are run directly.
pyplaypen_test(jail_test
  LABELS unit
  SOURCES unit/jail/cgroup_test.cc unit/jail/descendants_test.cc unit/jail/landlock_test.cc unit/jail/launch_test.cc
          unit/jail/privilege_test.cc
  LIBRARIES pyplaypen_jail pyplaypen_policy pyplaypen_sys)
pyplaypen_test(pids_cap_test
  LABELS unit
  SOURCES unit/policy/pids_cap_test.cc
  LIBRARIES pyplaypen_policy pyplaypen_sys)
pyplaypen_test(output_test
  LABELS unit
  SOURCES unit/supervisor/output_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_jail pyplaypen_sys)
pyplaypen_test(cli_test
  LABELS unit
  SOURCES unit/cli/options_test.cc unit/cli/stdin_program_test.cc
  LIBRARIES pyplaypen_cli pyplaypen_policy)

add_executable(deny_syscalls fault/deny_syscalls.cc)
set_target_properties(deny_syscalls PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(deny_syscalls PRIVATE project_settings)

# The same tests on kernels that lack something; the numbers are those of every architecture
# (include/uapi/asm-generic/unistd.h).
set(without_landlock 444,445,446)
set(without_close_range 436)
set(without_pidfd 424,434)
foreach(kernel IN ITEMS without_landlock without_close_range without_pidfd)
  add_test(NAME jail_test.${kernel}
           COMMAND deny_syscalls ${${kernel}} -- $<TARGET_FILE:jail_test>)
  set_tests_properties(jail_test.${kernel} PROPERTIES LABELS "fault" TIMEOUT 120)
endforeach()

# The command as a black box: as the user who runs the tests, as an ordinary one, and on older kernels.
set(run_test ${PYPLAYPEN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/integration/run_test.py --bin $<TARGET_FILE:pyplaypen>)
add_test(NAME run_test COMMAND ${run_test})
add_test(NAME run_test.ordinary_user COMMAND ${run_test} --ordinary-user)
# Commands of all of them run as one user, whose processes are counted together.
set_tests_properties(run_test run_test.ordinary_user
                     PROPERTIES LABELS "integration" TIMEOUT 300 RESOURCE_LOCK commands)
foreach(kernel IN ITEMS without_landlock without_close_range without_pidfd)
  add_test(NAME run_test.${kernel} COMMAND deny_syscalls ${${kernel}} -- ${run_test})
  add_test(NAME run_test.ordinary_user.${kernel}
           COMMAND deny_syscalls ${${kernel}} -- ${run_test} --ordinary-user)
  set_tests_properties(run_test.${kernel} run_test.ordinary_user.${kernel}
                       PROPERTIES LABELS "integration;fault" TIMEOUT 300 RESOURCE_LOCK commands)
endforeach()

# Isolation by itself, on kernels and in containers that lack something, too.
pyplaypen_test(isolate_test
  LABELS integration
  SOURCES integration/isolate_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_jail pyplaypen_sys)
foreach(kernel IN ITEMS without_landlock without_close_range without_pidfd)
  add_test(NAME isolate_test.${kernel}
           COMMAND deny_syscalls ${${kernel}} -- $<TARGET_FILE:isolate_test>)
  set_tests_properties(isolate_test.${kernel} PROPERTIES LABELS "integration;fault" TIMEOUT 300)
endforeach()
add_executable(deny_namespaces fault/deny_namespaces.cc)
set_target_properties(deny_namespaces PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(deny_namespaces PRIVATE project_settings pyplaypen_jail)
set(namespaces_test ${PYPLAYPEN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/integration/namespaces_test.py --build ${CMAKE_BINARY_DIR})
add_test(NAME namespaces_test COMMAND ${namespaces_test})
add_test(NAME namespaces_test.ordinary_user COMMAND ${namespaces_test} --ordinary-user)
set_tests_properties(namespaces_test namespaces_test.ordinary_user PROPERTIES LABELS "integration" TIMEOUT 300)
pyplaypen_test(sandbox_namespaces_test
  LABELS integration
  SOURCES integration/sandbox_namespaces_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_jail pyplaypen_sys)
add_dependencies(sandbox_namespaces_test pyplaypen_zygote)
