#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/rule_definitions.h"
#include "simulation/relational.h"
#include "simulation/scheduler.h"

// Row rules as the seed makes them. Their effect is worked out here over whole rows, with nothing of the engine's.

namespace thalweg::simulation {

enum class Truth : uint8_t { no, yes, unknown };

// The engine gets the text, the model the function.
struct Condition {
  std::string text;
  std::function<Truth(const Row&)> holds;
};

// Such that the changes that pass fit what is at the destination: no update finds that its row is missing.
struct TableRules {
  enum class Kind : uint8_t {
    subset,   // of the rows; updates bring rows in and take them out
    inserts,  // of some rows, and nothing else: of a table without a key
    nothing,
  };
  Kind kind = Kind::subset;
  std::vector<Condition> positive;
  std::vector<Condition> negative;

  // The change that the destinations get of one of the table; none: they get nothing.
  std::optional<Change> passed(const Change& change) const;
  control::RulesDefinition definition() const;

 private:
  bool keeps(const Row& row) const;
};

// `reads_all_columns`: else the conditions read the key only. Keys are below `keys`.
TableRules make_rules(Scheduler& scheduler, const TableShape& shape, bool reads_all_columns, int64_t keys);
std::string describe(const TableRules& rules);

}  // namespace thalweg::simulation
