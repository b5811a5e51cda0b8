# What holds when processes die, frames lie and the system runs out of things.
add_executable(pyplaypen_soak soak/disturber.cc soak/kinds.cc soak/main.cc)
set_target_properties(pyplaypen_soak PROPERTIES OUTPUT_NAME pyplaypen-soak
                                                RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(pyplaypen_soak PRIVATE project_settings project_sanitizers GTest::gtest  # of headers that it shares
                                             pyplaypen_supervisor pyplaypen_sys)
target_compile_definitions(pyplaypen_soak PRIVATE PYPLAYPEN_BUILD="${CMAKE_BINARY_DIR}")
add_dependencies(pyplaypen_soak pyplaypen_zygote)
# The short form of scripts/soak.
add_test(NAME soak COMMAND pyplaypen_soak --calls 1500)
add_test(NAME soak.ordinary_user COMMAND pyplaypen_soak --calls 1500 --ordinary-user)
set_tests_properties(soak soak.ordinary_user PROPERTIES LABELS "adversarial;slow" TIMEOUT 300 SKIP_RETURN_CODE 77)

pyplaypen_test(recovery_test
  LABELS integration fault
  SOURCES integration/recovery_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_sys
  TIMEOUT 120)
target_compile_definitions(recovery_test PRIVATE PYPLAYPEN_BUILD="${CMAKE_BINARY_DIR}")
add_dependencies(recovery_test pyplaypen_zygote)
pyplaypen_test(frames_test
  LABELS adversarial
  SOURCES adversarial/frames_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_sys
  TIMEOUT 120)
add_dependencies(frames_test pyplaypen_zygote)

foreach(name IN ITEMS stages steps)
  pyplaypen_test(${name}_test
    LABELS fault
    SOURCES fault/${name}_test.cc fault/intercept.cc
    LIBRARIES pyplaypen_supervisor pyplaypen_policy pyplaypen_sys
    LOCK commands  # theirs and others' are one user's, whose processes are counted together
    TIMEOUT 300)
  add_dependencies(${name}_test pyplaypen_zygote)
endforeach()

add_executable(fake_zygote fault/fake_zygote.cc)
set_target_properties(fake_zygote PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(fake_zygote PRIVATE project_settings project_sanitizers pyplaypen_wire pyplaypen_sys)
pyplaypen_test(peers_test
  LABELS fault
  SOURCES fault/peers_test.cc
  LIBRARIES pyplaypen_supervisor pyplaypen_sys
  TIMEOUT 120)
target_compile_definitions(peers_test PRIVATE PYPLAYPEN_FAKE_ZYGOTE="$<TARGET_FILE:fake_zygote>")
add_dependencies(peers_test fake_zygote)

# The same without root's rights.
add_executable(as_ordinary_user fault/as_ordinary_user.cc)
set_target_properties(as_ordinary_user PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(as_ordinary_user PRIVATE project_settings)
foreach(name IN ITEMS frames_test lifecycle_test peers_test recovery_test stages_test steps_test)
  add_test(NAME ${name}.ordinary_user COMMAND as_ordinary_user $<TARGET_FILE:${name}>)
  set_tests_properties(${name}.ordinary_user PROPERTIES LABELS "adversarial;fault" TIMEOUT 300
                                                         SKIP_RETURN_CODE 77)
endforeach()
