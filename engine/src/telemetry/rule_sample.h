#pragma once

#include <cstdint>
#include <string>

namespace thalweg::telemetry {

// Changes of a table that its rules have judged since the capture started, by what became of them.
struct RuleSample {
  std::string schema_name;  // as the stream's definition names the table
  std::string table_name;
  uint64_t passed = 0;  // as they were
  uint64_t dropped = 0;
  uint64_t became_inserts = 0;  // updates that brought a row into the subset
  uint64_t became_deletes = 0;  // and those that took one out
};

}  // namespace thalweg::telemetry
