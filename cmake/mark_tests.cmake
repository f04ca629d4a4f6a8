# Read by ctest, once a suite, after its test cases were discovered: gives `long` and RUN_SERIAL to
# those whose names ask for it. In: suite, cases.
foreach(case IN LISTS cases)
  if(case MATCHES "LongRun")
    set_tests_properties("${case}" PROPERTIES LABELS "${suite};long" TIMEOUT 900)
  endif()
  if(case MATCHES "RunsAlone")
    set_tests_properties("${case}" PROPERTIES RUN_SERIAL ON)
  endif()
endforeach()
