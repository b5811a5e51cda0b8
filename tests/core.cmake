# Tests of the wire, the supervisor's state machine, and whole calls.
pyplaypen_test(frame_test
  LABELS unit
  SOURCES unit/wire/frame_test.cc unit/wire/codec_test.cc
  LIBRARIES pyplaypen_wire)
pyplaypen_test(call_state_test
  LABELS unit
  SOURCES unit/supervisor/call_state_test.cc unit/supervisor/enforcement_test.cc
          unit/supervisor/result_json_test.cc unit/supervisor/uid_range_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_wire pyplaypen_sys nlohmann_json::nlohmann_json)

set(lock_of_run_process commands)  # they run as the same user as those of run_test
foreach(name IN ITEMS cgroup container_root execute lifecycle run_process)
  pyplaypen_test(${name}_test
    LABELS integration
    SOURCES integration/${name}_test.cc
    LIBRARIES pyplaypen_supervisor pyplaypen_wire pyplaypen_sys
    TIMEOUT 300
    LOCK ${lock_of_${name}})
  add_dependencies(${name}_test pyplaypen_zygote)
endforeach()
# `exec` and `batch` as a black box; the cases of all users are in execute_test.
add_test(NAME exec_test
         COMMAND ${PYPLAYPEN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/integration/exec_test.py --bin $<TARGET_FILE:pyplaypen>)
set_tests_properties(exec_test PROPERTIES LABELS "integration" TIMEOUT 300)
pyplaypen_test(threads_test
  LABELS integration threads
  SOURCES integration/threads_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_sys
  TIMEOUT 300)
add_dependencies(threads_test pyplaypen_zygote)
