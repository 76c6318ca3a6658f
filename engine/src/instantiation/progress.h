#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "instantiation/table_name.h"

// How far the initial copy is, readable at any time.

namespace thalweg::instantiation {

// indexing: its rows are there; keys, constraints, indexes or foreign keys are being made, or wait for a worker.
enum class CopyState : int { waiting, copying, indexing, copied };

struct TableProgress {
  TableName table;
  CopyState state = CopyState::waiting;
  int64_t rows_estimated = 0;
  int64_t rows_copied = 0;
  int64_t bytes_copied = 0;
  int64_t ranges_total = 0;
  int64_t ranges_copied = 0;
  int64_t indexes_total = 0;  // keys, constraints, indexes and foreign keys that the engine makes
  int64_t indexes_built = 0;  // or left out with a warning
  double seconds = 0;         // spent on its rows
  base::Lsn copied_at = {};   // lowest snapshot of its ranges; zero: not finished
  int64_t errors_discarded = 0;
};

struct ProgressReport {
  std::optional<base::UnixMicros> started_at;  // none: nothing to copy was ever found
  std::optional<base::UnixMicros> finished_at;
  std::vector<TableProgress> tables;
  std::vector<std::string> warnings;
};

// Counters of one table. Writers: every copy worker (fetch_add, relaxed). Reader: anybody (relaxed): numbers to look
// at, nothing is decided by them.
class TableCounters {
 public:
  explicit TableCounters(TableName name) : table(std::move(name)) {}
  const TableName table;
  std::atomic<CopyState> state{CopyState::waiting};
  std::atomic<int64_t> rows_estimated{0};
  std::atomic<int64_t> rows{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> ranges_total{0};
  std::atomic<int64_t> ranges_copied{0};
  std::atomic<int64_t> indexes_total{0};
  std::atomic<int64_t> indexes_built{0};
  std::atomic<int64_t> before_nanos{0};  // spent before a restart of the engine
  std::atomic<uint64_t> copied_at{0};    // position; zero: not finished
  std::atomic<int64_t> errors_discarded{0};
  std::atomic<int64_t> begun_nanos{0};  // monotonic; 0: not begun
  std::atomic<int64_t> ended_nanos{0};
};

// Thread-safe: a mutex guards the list; the counters are atomic.
class Progress {
 public:
  explicit Progress(const base::Clock& clock) : clock_(clock) {}

  void begin(std::optional<base::UnixMicros> started_at, std::optional<base::UnixMicros> finished_at,
             std::vector<std::string> warnings);
  void finish(base::UnixMicros at);
  void warn(std::string warning);
  // The table's counters, made on first use; they live as long as the Progress.
  TableCounters& table(const TableName& name);
  void clear();
  void begin_table(TableCounters& counters);
  void end_rows(TableCounters& counters);
  // Records the indexes to build, before any of them is built.
  void plan_indexes(TableCounters& counters, int64_t total, int64_t built);
  void add_built(TableCounters& counters, int64_t built);

  ProgressReport report() const;
  const base::Clock& clock() const { return clock_; }

 private:
  int64_t nanos() const;

  const base::Clock& clock_;
  mutable std::mutex mutex_;
  std::optional<base::UnixMicros> started_at_;
  std::optional<base::UnixMicros> finished_at_;
  std::vector<std::string> warnings_;
  std::vector<std::unique_ptr<TableCounters>> tables_;
};

}  // namespace thalweg::instantiation
