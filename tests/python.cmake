# The child's CPython part. One binary with an interpreter in it; every case that dirties it forks.
add_executable(python_tests
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_call.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_compile_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_classify_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_describe_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_epilogue_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_evaluate_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_project_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_projectors_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_speed_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unit/python_state_test.cc)

target_compile_definitions(python_tests PRIVATE
  PYPLAYPEN_TEST_PYTHON="${PYPLAYPEN_PYTHON}"
  PYPLAYPEN_TEST_SHARE="${CMAKE_CURRENT_LIST_DIR}/../share/python")
target_link_libraries(python_tests PRIVATE project_settings GTest::gtest)
pyplaypen_link_plain(python_tests python)
target_link_libraries(python_tests PRIVATE Python3::Python)
include(GoogleTest)
gtest_discover_tests(python_tests DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
