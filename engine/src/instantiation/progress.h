#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "instantiation/table_name.h"

// How far the initial copy is, readable at any time.

namespace thalweg::instantiation {

enum class CopyState : int { waiting, copying, copied };
std::string_view name_of(CopyState state);  // "WAITING", "COPYING", "COPIED"

struct TableProgress {
  TableName table;
  CopyState state = CopyState::waiting;
  int64_t rows_estimated = 0;
  int64_t rows_copied = 0;
  int64_t bytes_copied = 0;
  int64_t ranges_total = 0;
  int64_t ranges_copied = 0;
  double seconds = 0;
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
  std::atomic<int64_t> before_nanos{0};  // spent before a restart of the engine
  std::atomic<int64_t> begun_nanos{0};   // monotonic; 0: not begun
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
  void end_table(TableCounters& counters);

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
