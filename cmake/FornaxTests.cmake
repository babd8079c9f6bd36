# One GoogleTest program bin/<area>_test per area: tests/<area>_test.cpp, or all of tests/<area>/.
# What several areas need lies in tests/support/ and tests/samples/. Each GoogleTest case is a test of ctest.

find_package(GTest REQUIRED)
include(GoogleTest)

set(test_environment OMP_WAIT_POLICY=passive)
if(FORNAX_SANITIZE MATCHES "address")
  list(APPEND test_environment ASAN_OPTIONS=detect_stack_use_after_return=1)
  list(APPEND test_environment UBSAN_OPTIONS=print_stacktrace=1)
endif()

# The generic suites over the table of samples. Off: not every row passes yet (HACKING.md, "Suites").
option(FORNAX_BUILD_SUITES "Build tests/suites and tests/samples" OFF)
file(GLOB support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
if(FORNAX_BUILD_SUITES)
  file(GLOB sample_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/samples/*.cpp")
  list(APPEND support_sources ${sample_sources})
endif()
if(support_sources)
  add_library(fornax_test_support STATIC ${support_sources})
  target_link_libraries(fornax_test_support PRIVATE fornax_options fornax_static GTest::gtest
                                                    fornax_third_party_headers)
endif()

# The sources of bin/fornax without its main, for the areas that test them.
set(areas_with_tool tools fuzz)
file(GLOB tool_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/fornax/*.cpp")
list(FILTER tool_sources EXCLUDE REGEX "/main\\.cpp$")
add_library(fornax_tool STATIC ${tool_sources})
target_link_libraries(fornax_tool PRIVATE fornax_options fornax_static fornax_third_party_headers)

# Likewise of bin/fornax-bench.
file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
list(FILTER bench_sources EXCLUDE REGEX "/main\\.cpp$")
add_library(fornax_bench_parts STATIC ${bench_sources})
target_link_libraries(fornax_bench_parts PRIVATE fornax_options fornax_static
                                                 fornax_third_party_headers)

# fornax_test_variant(AREA NAME SETTINGS…): the whole program once more, as one test, with these
# environment variables. Called by tests/<area>/variants.cmake.
function(fornax_test_variant area name)
  add_test(NAME ${area}.variant.${name} COMMAND ${area}_test --gtest_brief=1)
  set_tests_properties(${area}.variant.${name} PROPERTIES ENVIRONMENT
                       "${test_environment};${ARGN}" TIMEOUT 600)
endfunction()

# fornax_test(AREA SOURCES…)
function(fornax_test area)
  set(target ${area}_test)
  add_executable(${target} ${ARGN})
  target_compile_definitions(${target} PRIVATE FX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(area IN_LIST areas_with_tool)
    target_link_libraries(${target} PRIVATE fornax_tool)
  elseif(area STREQUAL "bench")
    target_link_libraries(${target} PRIVATE fornax_bench_parts)
  endif()
  target_link_libraries(
    ${target} PRIVATE fornax_options $<TARGET_NAME_IF_EXISTS:fornax_test_support> fornax_static
                      fornax_third_party_headers GTest::gtest GTest::gtest_main)
  gtest_discover_tests(
    ${target}
    DISCOVERY_MODE PRE_TEST
    TEST_PREFIX "${area}."
    DISCOVERY_TIMEOUT 60
    PROPERTIES ENVIRONMENT "${test_environment}" TIMEOUT 600)
  include("${PROJECT_SOURCE_DIR}/tests/${area}/variants.cmake" OPTIONAL)
endfunction()

file(GLOB test_entries CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE
     "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/tests/*")
list(REMOVE_ITEM test_entries support samples install records)
if(NOT FORNAX_BUILD_SUITES)
  list(REMOVE_ITEM test_entries suites)
endif()
foreach(entry IN LISTS test_entries)
  if(entry MATCHES "^(.*)_test\\.cpp$")
    set(area "${CMAKE_MATCH_1}")
    file(GLOB area_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${area}/*.cpp")
    fornax_test(${area} "${PROJECT_SOURCE_DIR}/tests/${entry}" ${area_sources})
  elseif(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/${entry}")
    file(GLOB area_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${entry}/*.cpp")
    if(area_sources AND NOT EXISTS "${PROJECT_SOURCE_DIR}/tests/${entry}_test.cpp")
      fornax_test(${entry} ${area_sources})
    endif()
  endif()
endforeach()

if(FORNAX_INSTALL AND FORNAX_BUILD_SHARED AND NOT FORNAX_SANITIZE)
  add_test(NAME install.outside_program
           COMMAND "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}"
                   "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DDEPS=${FORNAX_DEPS}" "-DCOMPILER=${CMAKE_CXX_COMPILER}" -P
                   "${PROJECT_SOURCE_DIR}/tests/install/run.cmake")
  set_tests_properties(install.outside_program PROPERTIES TIMEOUT 900)
endif()

# Recorded calls of another implementation, replayed by schema; what is carried here passes whole.
file(GLOB record_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/records/*.jsonl.gz")
if(record_files)
  add_test(NAME records.replay
           COMMAND fornax replay --exceptions "${PROJECT_SOURCE_DIR}/tests/records/exceptions.txt"
                   ${record_files})
  set_tests_properties(records.replay PROPERTIES ENVIRONMENT "${test_environment}" TIMEOUT 900)
endif()
