# The code in the documentation: one test a page. See tools/check_snippets.py.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(tools ${PROJECT_SOURCE_DIR}/tools)

file(GLOB_RECURSE pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/docs/*.md)
foreach(page IN ITEMS README.md ARCHITECTURE.md LISTS pages)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${page})
    string(REPLACE "docs/docs/" "docs/" name docs/${page})
    add_test(NAME ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMAND Python3::Interpreter ${tools}/check_snippets.py --library $<TARGET_FILE:holdfast>
        --command $<TARGET_FILE:holdfast_command> ${page})
    set_tests_properties(${name} PROPERTIES LABELS docs TIMEOUT 300)
  endif()
endforeach()

add_test(NAME docs/check_snippets_test COMMAND Python3::Interpreter
  ${tools}/check_snippets_test.py $<TARGET_FILE:holdfast> $<TARGET_FILE:holdfast_command>)
set_tests_properties(docs/check_snippets_test PROPERTIES LABELS "docs;long" TIMEOUT 300)
