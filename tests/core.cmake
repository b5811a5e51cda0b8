# Tests of the wire, the supervisor's state machine, and whole calls.
pyplaypen_test(frame_test
  LABELS unit
  SOURCES unit/wire/frame_test.cc unit/wire/codec_test.cc
  LIBRARIES pyplaypen_wire)
pyplaypen_test(call_state_test
  LABELS unit
  SOURCES unit/supervisor/call_state_test.cc unit/supervisor/enforcement_test.cc
          unit/supervisor/result_json_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_wire pyplaypen_sys nlohmann_json::nlohmann_json)

pyplaypen_test(execute_test
  LABELS integration
  SOURCES integration/execute_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_wire pyplaypen_sys)
add_dependencies(execute_test pyplaypen_zygote)
