#include "instantiation/progress.h"

#include <algorithm>

namespace thalweg::instantiation {

int64_t Progress::nanos() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.steady_now().time_since_epoch()).count();
}

void Progress::begin(std::optional<base::UnixMicros> started_at, std::optional<base::UnixMicros> finished_at,
                     std::vector<std::string> warnings) {
  std::lock_guard lock(mutex_);
  started_at_ = started_at;
  finished_at_ = finished_at;
  warnings_ = std::move(warnings);
}

void Progress::finish(base::UnixMicros at) {
  std::lock_guard lock(mutex_);
  finished_at_ = at;
}

void Progress::warn(std::string warning) {
  std::lock_guard lock(mutex_);
  warnings_.push_back(std::move(warning));
}

TableCounters& Progress::table(const TableName& name) {
  std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(tables_, [&](const auto& counters) { return counters->table == name; });
  if (found != tables_.end()) return **found;
  return *tables_.emplace_back(std::make_unique<TableCounters>(name));
}

void Progress::clear() {
  std::lock_guard lock(mutex_);
  tables_.clear();
  warnings_.clear();
}

void Progress::begin_table(TableCounters& counters) {
  int64_t none = 0;
  counters.begun_nanos.compare_exchange_strong(none, nanos());
  counters.state = CopyState::copying;
}

void Progress::end_rows(TableCounters& counters) {
  counters.ended_nanos = nanos();
  counters.state = counters.indexes_built < counters.indexes_total ? CopyState::indexing : CopyState::copied;
}

void Progress::plan_indexes(TableCounters& counters, int64_t total, int64_t built) {
  counters.indexes_total = total;
  counters.indexes_built = built;
  if (counters.state == CopyState::copied && built < total) counters.state = CopyState::indexing;
}

void Progress::add_built(TableCounters& counters, int64_t built) {
  if (counters.indexes_built.fetch_add(built) + built < counters.indexes_total) return;
  // A key that is made before the rows ends nothing.
  CopyState indexing = CopyState::indexing;
  counters.state.compare_exchange_strong(indexing, CopyState::copied);
}

ProgressReport Progress::report() const {
  std::lock_guard lock(mutex_);
  ProgressReport report{started_at_, finished_at_, {}, warnings_};
  for (const auto& counters : tables_) {
    int64_t begun = counters->begun_nanos;
    int64_t ended = counters->ended_nanos;
    int64_t spent = counters->before_nanos + (begun == 0 ? 0 : (ended == 0 ? nanos() : ended) - begun);
    report.tables.push_back({.table = counters->table,
                             .state = counters->state,
                             .rows_estimated = counters->rows_estimated,
                             .rows_copied = counters->rows,
                             .bytes_copied = counters->bytes,
                             .ranges_total = counters->ranges_total,
                             .ranges_copied = counters->ranges_copied,
                             .indexes_total = counters->indexes_total,
                             .indexes_built = counters->indexes_built,
                             .seconds = static_cast<double>(spent) * 1e-9,
                             .copied_at = {counters->copied_at},
                             .errors_discarded = counters->errors_discarded});
  }
  return report;
}

}  // namespace thalweg::instantiation
