#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "instantiation/progress.h"
#include "instantiation/ranges.h"
#include "instantiation/schema_plan.h"
#include "instantiation/sent_table.h"
#include "instantiation/shape.h"

// The work of the copy workers, and the order in which they may do it.

namespace thalweg::instantiation {

// One table as the workers need it.
struct CopyTable {
  const TableShape* shape = nullptr;
  const TableShape* there = nullptr;  // as the destination has it, with the columns that are sent
  bool text = false;                  // the other database would not take some column's binary form (pg::value_forms)
  bool resumed = false;               // ranges were copied from an earlier snapshot: a row may be there already
  std::string row_filter = {};        // SQL that is TRUE for the rows to copy; empty: all
  const SentTable* sent = nullptr;    // its rows are transformed; null: they are copied as they are
  TableCounters* counters = nullptr;
};

struct RangeStep {
  int number = 0;
  KeyRange range;
};
// Statements that one worker runs in one transaction.
using BuildStep = std::vector<Statement>;
using Step = std::variant<RangeStep, BuildStep>;

// One table's work. The steps of a stage run at the same time; a stage begins when the one before it is complete.
struct TableWork {
  CopyTable table;
  std::vector<std::vector<Step>> stages = {};
  std::vector<TableName> locks = {};  // tables that nobody else may be at work on meanwhile
};

// Hands out steps, those that have to do with rows before all others: a table's rows, and what they wait for. Among
// them tables in the order given.
// Thread-safe: a mutex guards all.
class WorkQueue {
 public:
  explicit WorkQueue(std::vector<TableWork> works);

  struct Turn {
    size_t work = 0;
    const CopyTable* table = nullptr;  // it and the step live as long as the queue
    const Step* step = nullptr;
  };
  // Waits while what is left has to wait for what others do. nullopt: nothing is left, or end() was called.
  std::optional<Turn> take();
  // Once for each turn, when its step has succeeded; or when it cannot be done by now, and nothing more of its table is
  // to be handed out.
  void done(const Turn& turn);
  void postpone(const Turn& turn);
  void end();
  // Whether rows are still to be handed out.
  bool has_rows() const;

 private:
  struct Place {
    bool rows = false;
    size_t work = 0;
    // Rows first, then the order of the tables.
    bool operator<(const Place& other) const { return rows != other.rows ? rows : work < other.work; }
  };
  struct State {
    size_t stage = 0;
    size_t next = 0;  // of the stage's steps
    size_t running = 0;
    bool postponed = false;
  };
  Place place_of(size_t work) const;
  bool is_free(size_t work) const;
  void offer(size_t work);
  void leave(size_t work);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const std::vector<TableWork> works_;
  std::vector<size_t> last_rows_;  // by work: the number of stages up to its last one with rows
  std::vector<State> states_;
  std::set<Place> ready_;  // works with a step that may begin
  std::set<TableName> locked_;
  size_t unfinished_ = 0;
  size_t rows_left_ = 0;  // steps
  bool ended_ = false;
};

}  // namespace thalweg::instantiation
