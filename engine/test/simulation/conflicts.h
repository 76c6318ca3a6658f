#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "control/parameters.h"
#include "simulation/relational.h"
#include "simulation/scheduler.h"
#include "simulation/transformations.h"

// Changes that meet rows which somebody else has written at the destination: what becomes of them, and what the
// conflict log has to say. Worked out here row by row, with nothing of the engine's.

namespace thalweg::simulation {

enum class Conflict : uint8_t {
  none,  // a row that does not please the destination
  insert_exists,
  update_exists,
  update_missing,
  delete_missing,
  update_origin_differs,
  delete_origin_differs,
  multiple_unique_conflicts,
};
std::string_view name_of(Conflict kind);

// A row as texts by column; a column that is not known is left out.
using ShownRow = std::map<std::string, Value>;
ShownRow show_row(int table, const Row& row, const std::vector<bool>& known);
std::string shown_text(uint32_t type, const std::string& bytes);

// An entry of the conflict log, as it is or as it has to be.
struct LoggedConflict {
  base::Lsn commit_lsn;
  uint64_t change = 0;  // in its transaction, from 1
  std::string table;
  std::string operation;
  std::string kind;
  std::string sqlstate;
  std::string action;
  std::optional<ShownRow> before;
  std::optional<ShownRow> wanted;
  std::optional<ShownRow> there;
  bool is_other = false;  // of what has to be: the row that is there is not locked, and only its keys are known
  std::vector<std::pair<int, Row>> refused;  // of what is: rows of the transaction that the destination did not take
};
std::string describe(const LoggedConflict& entry);

// Handlers and detection of a stream: a text for the engine, and for the model.
struct ConflictRules {
  enum class Action : uint8_t { skip, discard, overwrite };  // skip: there is no handler
  struct Handler {
    Conflict kind;
    int table;  // -1: any
    Action action;
  };
  std::vector<Handler> handlers;
  int64_t retries = 0;  // of a row that does not please, before it is left out
  // By table: the columns that are compared with the row before the change.
  std::vector<std::set<size_t>> compared = std::vector<std::set<size_t>>(shapes().size());
  std::vector<bool> full_identity = std::vector<bool>(shapes().size());  // the source's

  bool parks = false;  // transactions with a row that does not please

  void write(control::StreamParameters& parameters) const;
  Action action_of(Conflict kind, Conflict general, int table) const;
};
ConflictRules make_conflict_rules(Scheduler& scheduler, const std::vector<bool>& full_identity,
                                  const Transformations& transformations);
std::string describe(const ConflictRules& rules);

// The changes of a transaction, in their order, and what the log says of it.
struct Applied {
  base::Lsn commit_lsn;
  std::span<const Change> changes;
  std::span<const LoggedConflict> logged;
  bool was_parked = false;  // and executed since: nothing is compared then, and nothing settled
};

// Applies to `data` what has committed together. Empty: the log is as it has to be; else what is wrong with it.
// Whether a parked transaction cannot be executed as it is.
bool is_stuck(Data data, std::span<const Change> changes);
std::string apply_with_conflicts(Data& data, const ConflictRules& rules, const std::vector<Applied>& transactions);

}  // namespace thalweg::simulation
