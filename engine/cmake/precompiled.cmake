# thalweg_precompile(TARGET [tests])
#
# Gives TARGET the precompiled standard headers; one file for all libraries of the tree, one for all tests.
# Only system headers: nothing of ours is precompiled, so a change of ours never rebuilds everything.
# Only for gcc: clang writes the absolute path of every header into its file, so ccache could not serve it to another
# checkout; and a file that forgets an include still fails in the trees that clang builds.
function(thalweg_precompile target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(owner thalweg_precompiled)
  set(headers <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque> <expected>
      <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <string>
      <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
  if("tests" IN_LIST ARGN)
    string(APPEND owner _tests)
    list(APPEND headers <gtest/gtest.h>)
  endif()
  if(NOT TARGET ${owner})
    if(NOT EXISTS ${CMAKE_BINARY_DIR}/${owner}.cc)
      file(WRITE ${CMAKE_BINARY_DIR}/${owner}.cc "")
    endif()
    add_library(${owner} OBJECT ${CMAKE_BINARY_DIR}/${owner}.cc)
    # The warnings too: -Wpedantic undefines a macro, and gcc then refuses a header that was precompiled without it.
    target_link_libraries(${owner} PRIVATE fmt::fmt spdlog::spdlog Threads::Threads thalweg_sanitizers thalweg_warnings)
    if("tests" IN_LIST ARGN)
      target_link_libraries(${owner} PRIVATE GTest::gtest)
    endif()
    target_compile_options(${owner} PRIVATE -fpch-preprocess)  # for ccache
    target_precompile_headers(${owner} PRIVATE ${headers})
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
