add_library(thalweg_warnings INTERFACE)
target_compile_options(thalweg_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wnull-dereference -Werror)
# gcc 12 reports false positives in its own <expected> and string code at -O2.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(thalweg_warnings INTERFACE -Wno-maybe-uninitialized -Wno-null-dereference -Wno-restrict
                         -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
# clang reports std::get_temporary_buffer inside gcc 12's own stable_sort and stable_partition. gcc still looks at ours.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(thalweg_warnings INTERFACE -Wno-deprecated-declarations)
endif()
