# README and docs against the program's own words and the sources.
add_test(NAME docs COMMAND ${PYPLAYPEN_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/docs_test.py ${CMAKE_SOURCE_DIR}
                           $<TARGET_FILE:pyplaypen>)
set_tests_properties(docs PROPERTIES LABELS "integration" TIMEOUT 120)
