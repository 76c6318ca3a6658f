add_library(thalweg_sanitizers INTERFACE)
if(THALWEG_SANITIZER STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(THALWEG_SANITIZER STREQUAL "thread")
  set(flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT THALWEG_SANITIZER STREQUAL "none")
  message(FATAL_ERROR "THALWEG_SANITIZER is '${THALWEG_SANITIZER}', not none, address or thread")
endif()
# Environment of tests under a sanitizer: the first finding ends the test.
set(THALWEG_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
if(flags)
  # Sanitizer builds check assertions too, whatever the build type says.
  target_compile_options(thalweg_sanitizers INTERFACE -O1 -g1 ${flags} -UNDEBUG)
  target_link_options(thalweg_sanitizers INTERFACE ${flags})
endif()
# Coverage for libFuzzer in every library that a fuzz target reaches, not in the target alone.
if(THALWEG_FUZZ)
  target_compile_options(thalweg_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(thalweg_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
endif()
