add_library(thalweg_warnings INTERFACE)
target_compile_options(thalweg_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wnull-dereference -Werror)
# gcc 12 reports false positives in its own <expected> and string code at -O2.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(thalweg_warnings INTERFACE -Wno-maybe-uninitialized -Wno-null-dereference -Wno-restrict
                         -Wno-stringop-overflow -Wno-array-bounds)
endif()
