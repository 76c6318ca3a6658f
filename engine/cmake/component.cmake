# thalweg_component(NAME [SINGLE_THREADED] [USES component...] [PRIVATE target...])
#
# Declares src/NAME as the library thalweg_NAME. Its sources, tests, fuzzers and benchmarks are told apart by their
# file names: x.cc, x_test.cc, x_fuzz.cc, x_bench.cc. USES names the components whose headers it may include. The tree of
# the thread sanitizer has no fuzzers, and no tests of a component that is SINGLE_THREADED: none of them has two threads.
function(thalweg_component name)
  cmake_parse_arguments(ARG "SINGLE_THREADED" "" "USES;PRIVATE" ${ARGN})
  string(COMPARE EQUAL "${THALWEG_SANITIZER}" "thread" looks_for_races)
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")

  if(sources)
    add_library(thalweg_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(thalweg_${name} PRIVATE thalweg_warnings)
    thalweg_precompile(thalweg_${name})
  else()
    add_library(thalweg_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(thalweg_${name} ${scope} ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(thalweg_${name} ${scope} fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json Threads::Threads
                        thalweg_sanitizers)
  foreach(used ${ARG_USES})
    target_link_libraries(thalweg_${name} ${scope} thalweg_${used})
  endforeach()
  if(ARG_PRIVATE)
    target_link_libraries(thalweg_${name} ${scope} ${ARG_PRIVATE})
  endif()

  if(looks_for_races AND ARG_SINGLE_THREADED)
    set_target_properties(thalweg_${name} PROPERTIES EXCLUDE_FROM_ALL ON) # but for others that use it
  endif()
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${dir}/*_test.cc)
  if(tests AND NOT (looks_for_races AND ARG_SINGLE_THREADED))
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE thalweg_${name} thalweg_test_support thalweg_warnings GTest::gtest
                          GTest::gtest_main)
    thalweg_precompile(${name}_test tests)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT "${THALWEG_TEST_ENVIRONMENT}")
  endif()

  file(GLOB_RECURSE benches CONFIGURE_DEPENDS ${dir}/*_bench.cc)
  foreach(bench ${benches})
    get_filename_component(target ${bench} NAME_WE)
    add_executable(${target} EXCLUDE_FROM_ALL ${bench})
    target_link_libraries(${target} PRIVATE thalweg_${name} thalweg_warnings benchmark::benchmark)
  endforeach()

  # A fuzzer defines LLVMFuzzerTestOneInput. Its corpus lies in test/corpus/<fuzzer name>/ and is replayed by ctest
  # in the other trees through cmake/fuzz_replay_main.cc, with libFuzzer itself only where THALWEG_FUZZ is on.
  file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS ${dir}/*_fuzz.cc)
  if(looks_for_races)
    set(fuzzers)
  endif()
  foreach(fuzzer ${fuzzers})
    get_filename_component(target ${fuzzer} NAME_WE)
    add_executable(${target} ${fuzzer})
    target_link_libraries(${target} PRIVATE thalweg_${name} thalweg_warnings)
    if(THALWEG_FUZZ)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      set(replay_only -runs=0)
    else()
      target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/fuzz_replay_main.cc)
    endif()
    add_test(NAME ${target}_corpus
             COMMAND ${target} ${replay_only} ${CMAKE_CURRENT_SOURCE_DIR}/test/corpus/${target})
    set_tests_properties(${target}_corpus PROPERTIES ENVIRONMENT "${THALWEG_TEST_ENVIRONMENT}")
  endforeach()
endfunction()
