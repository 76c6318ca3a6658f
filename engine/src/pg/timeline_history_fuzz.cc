#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pg/timeline_history.h"

// Input: a history file, of timeline 9.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto history =
      thalweg::pg::TimelineHistory::parse(9, std::string_view{reinterpret_cast<const char*>(data), size});
  if (!history) return 0;
  for (int timeline = 0; timeline < 9; ++timeline) {
    const auto end = history->end_of(timeline);
    if (end && !history->holds(timeline, *end)) std::abort();
  }
  return 0;
}
