#pragma once

#include <cstdint>
#include <string>

namespace thalweg::telemetry {

// Where a table's rules are evaluated first: at the source, whose output plugin then does not send what they drop.
struct RulePlace {
  bool inserts_at_source = false;
  bool updates_at_source = false;
  std::string reason;  // why an engine evaluates them for inserts or updates; empty: nobody has asked the source
};

// Changes of a table that its rules have judged since the capture started, by what became of them. Changes that the
// source has not sent are not among them.
struct RuleSample {
  std::string schema_name;  // as the stream's definition names the table
  std::string table_name;
  uint64_t passed = 0;  // as they were
  uint64_t dropped = 0;
  uint64_t became_inserts = 0;  // updates that brought a row into the subset
  uint64_t became_deletes = 0;  // and those that took one out
  uint64_t by_policy = 0;       // of all these: those that a rule's policy decided, since its condition could not be
  RulePlace place = {};
};

}  // namespace thalweg::telemetry
