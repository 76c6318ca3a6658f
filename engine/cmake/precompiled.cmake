# thalweg_precompile(TARGET [tests])
#
# Gives TARGET the precompiled standard headers; one file for all libraries of the tree, one for all tests. With it come
# the options of tests: their own sources are compiled with -O1 in every tree, in half of the time; what they test is not.
# Only system headers: nothing of ours is precompiled, so a change of ours never rebuilds everything.
# Objects made with it come from the compiler cache in another checkout too: gcc says itself what its file holds
# (-fpch-preprocess); clang's file holds absolute paths, so the cache goes by a sum of the headers' text beside it
# (CCACHE_PCH_EXTSUM), and the option that names the header again is left out.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()

function(thalweg_precompile target)
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
      target_compile_options(${owner} PRIVATE -O1)
    endif()
    target_precompile_headers(${owner} PRIVATE ${headers})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      thalweg_sum_of_headers(${owner} ${headers})
    else()
      target_compile_options(${owner} PRIVATE -fpch-preprocess)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if("tests" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# Writes what the headers come to, as a hash, where ccache looks for it. A newer package of one of them configures anew.
function(thalweg_sum_of_headers owner)
  list(TRANSFORM ARGN PREPEND "#include " OUTPUT_VARIABLE includes)
  list(JOIN includes "\n" text)
  set(source ${CMAKE_BINARY_DIR}/${owner}_sum.cc)
  file(WRITE ${source} "${text}\n")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 -E -M ${source} OUTPUT_VARIABLE rule COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 -E -P ${source} OUTPUT_VARIABLE headers
                  COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 sum "${headers}")
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${owner}.dir/cmake_pch.hxx.pch.sum "${sum}\n")
  string(REGEX MATCHALL "/usr/[^ \\\n]+" files "${rule}")
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
endfunction()
