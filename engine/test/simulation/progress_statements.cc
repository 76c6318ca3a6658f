// Apply's bookkeeping at the destination, in schema thalweg: the statements of progress.cc, progress_writer.cc and
// recorder.cc.

#include <set>

#include <fmt/format.h>

#include "apply/applier/progress_writer.h"
#include "simulation/destination_session.h"
#include "simulation/text_values.h"

namespace thalweg::simulation {

namespace {

const std::string kStreamLock = "stream";

// A row keeps its lock when it takes another number (ProgressWriter).
int64_t row_of(int64_t number) { return number == 0 ? 0 : (number - 1) % apply::ProgressWriter::kRowsMax + 1; }
std::string progress_lock(int64_t number) { return fmt::format("p{}", row_of(number)); }

std::set<int64_t> rows_of(const std::map<int64_t, ProgressRow>& progress) {
  std::set<int64_t> rows;
  for (const auto& [number, row] : progress) rows.insert(row_of(number));
  return rows;
}

}  // namespace

Outcome DestinationSession::progress_statement(const std::string& sql, const Parameters& parameters, bool& known) {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  if (is("SELECT pg_catalog.pg_advisory_xact_lock(")) return rows({{""}});
  if (is("SELECT s.source_system_identifier, ")) return find_stream();
  if (is("SELECT max(version), EXISTS (SELECT FROM pg_catalog.pg_attribute "))
    return rows({{"1", "t", "t", "t", "t", "t"}});
  if (is("SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended('thalweg stream ")) {
    // The session's, not the transaction's.
    return rows({{destination_.locks().try_acquire(-channel().pid, "advisory", Locks::Mode::exclusive) ? "t" : "f"}});
  }
  if (is("SELECT pg_catalog.format('server process %s")) return rows({{"another session"}});
  if (is("UPDATE thalweg.stream SET epoch = epoch + 1")) return begin_epoch();
  if (is("SELECT low_watermark, ranges FROM thalweg.apply_progress") || is("DELETE FROM thalweg.apply_progress") ||
      is("INSERT INTO thalweg.apply_progress ") || is("UPDATE thalweg.stream SET low_watermark = $2")) {
    return fold_progress(sql, parameters);
  }
  if (is("WITH current AS (SELECT FROM thalweg.stream")) return create_progress_row(parameters);
  if (is("WITH touched AS (UPDATE thalweg.apply_progress")) return write_progress(sql, parameters);
  if (is("UPDATE thalweg.stream SET low_watermark = greatest(")) return record(sql, parameters);
  if (is("WITH RECURSIVE blocker(pid) AS (SELECT unnest(pg_catalog.pg_blocking_pids(")) {
    return blockers(static_cast<int>(integer(parameters[0])));
  }
  known = false;
  return {};
}

// Those that the session waits for, and those that they wait for in turn.
Outcome DestinationSession::blockers(int pid) {
  std::set<int> found;
  std::vector<int> open{pid};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    for (const int blocker : destination_.locks().blockers(next)) {
      if (found.insert(blocker).second) open.push_back(blocker);
    }
  }
  std::vector<Row> pids;
  for (const int blocker : found) pids.push_back({std::to_string(blocker)});
  return rows(std::move(pids));
}

Outcome DestinationSession::find_stream() {
  const DestinationState& state = destination_.committed();
  if (!state.stream) return rows({});
  base::Lsn low_watermark = state.stream->low_watermark;
  for (const auto& [applier, row] : state.progress) low_watermark = std::max(low_watermark, row.low_watermark);
  return rows({{"7000", "1", "postgres", "thalweg_simulated", "0/0", base::to_string(low_watermark)}});
}

Outcome DestinationSession::begin_epoch() {
  if (Outcome locked = lock(kStreamLock, Locks::Mode::exclusive); !locked.ok()) return locked;
  if (!destination_.working().stream) return rows({});
  change([](DestinationState& state) { ++state.stream->epoch; },
         [](DestinationState& state) { --state.stream->epoch; });
  const StreamRow& stream = *destination_.working().stream;
  return rows({{std::to_string(stream.epoch), base::to_string(stream.low_watermark)}});
}

// Waits for whoever has written to one of the rows and not committed.
Outcome DestinationSession::lock_progress() {
  for (const int64_t row : rows_of(destination_.working().progress)) {
    if (Outcome locked = lock(progress_lock(row), Locks::Mode::exclusive); !locked.ok()) return locked;
  }
  return affected(0);
}

// Folds the rows of earlier appliers, as a start does.
Outcome DestinationSession::fold_progress(const std::string& sql, const Parameters& parameters) {
  if (sql.starts_with("SELECT")) {
    const bool locks = sql.ends_with("FOR UPDATE");
    if (locks) {
      if (Outcome locked = lock_progress(); !locked.ok()) return locked;
    }
    std::vector<Row> found;
    for (const auto& [number, row] : (locks ? destination_.working() : destination_.committed()).progress) {
      found.push_back({base::to_string(row.low_watermark), bytea(row.ranges)});
    }
    return rows(std::move(found));
  }
  if (sql.starts_with("DELETE")) {
    if (Outcome locked = lock_progress(); !locked.ok()) return locked;
    const auto before = destination_.working().progress;
    change([](DestinationState& state) { state.progress.clear(); },
           [before](DestinationState& state) { state.progress = before; });
    return affected(before.size());
  }
  if (sql.starts_with("INSERT")) {
    const ProgressRow row{
        .epoch = integer(parameters[1]), .low_watermark = lsn(parameters[2]), .ranges = *parameters[3].bytes};
    change([row](DestinationState& state) { state.progress[0] = row; },
           [](DestinationState& state) { state.progress.erase(0); });
    return affected(1);
  }
  const base::Lsn before = destination_.working().stream->low_watermark;
  const base::Lsn after = lsn(parameters[1]);
  change([after](DestinationState& state) { state.stream->low_watermark = after; },
         [before](DestinationState& state) { state.stream->low_watermark = before; });
  return affected(1);
}

Outcome DestinationSession::create_progress_row(const Parameters& parameters) {
  if (Outcome locked = lock(kStreamLock, Locks::Mode::shared); !locked.ok()) return locked;
  const int64_t applier = integer(parameters[1]);
  const ProgressRow row{.epoch = integer(parameters[2]), .low_watermark = lsn(parameters[3]), .ranges = {}};
  const std::vector<Row> made{{std::to_string(kProgressOid), std::to_string(kProgressEpochIndex)}};
  if (!destination_.working().stream || destination_.working().stream->epoch != row.epoch) return rows({});
  if (Outcome locked = lock(progress_lock(applier), Locks::Mode::exclusive); !locked.ok()) return locked;
  const auto found = destination_.working().progress.find(applier);
  if (found != destination_.working().progress.end()) {
    return rows(found->second.epoch == row.epoch ? made : std::vector<Row>{});
  }
  change([applier, row](DestinationState& state) { state.progress[applier] = row; },
         [applier](DestinationState& state) { state.progress.erase(applier); });
  return rows(made);
}

Outcome DestinationSession::write_progress(const std::string& sql, const Parameters& parameters) {
  const ProgressRow row{
      .epoch = integer(parameters[4]), .low_watermark = lsn(parameters[0]), .ranges = *parameters[1].bytes};
  Outcome outcome = update_progress(integer(parameters[3]), integer(parameters[5]), row,
                                    sql.find("AND epoch = $5") != std::string::npos);
  if (!outcome.ok() || outcome.affected == 1) return outcome.ok() ? rows({{"1"}}) : outcome;
  return error("22012", "division by zero");
}

// The row as the data layer gets it.
Outcome DestinationSession::write_progress(const lcr::FrameView& frame, bool fenced) {
  std::vector<lcr::Value> values;
  const auto at = [&](size_t column) {
    const auto bytes = values[column].bytes;
    return Parameter{.bytes = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
  };
  (frame.old_tuple().exists() ? frame.old_tuple() : frame.new_tuple()).read(values);
  const int64_t number = integer(at(1));
  frame.new_tuple().read(values);
  const ProgressRow row{.epoch = integer(at(2)), .low_watermark = lsn(at(3)), .ranges = *at(4).bytes};
  return update_progress(number, integer(at(1)), row, fenced);
}

Outcome DestinationSession::update_progress(int64_t number, int64_t next, const ProgressRow& row, bool fenced) {
  if (Outcome locked = lock(progress_lock(number), Locks::Mode::exclusive); !locked.ok()) return locked;
  const auto found = destination_.working().progress.find(number);
  if (found == destination_.working().progress.end() || (fenced && found->second.epoch != row.epoch)) {
    return affected(0);
  }
  const ProgressRow before = found->second;
  change(
      [number, next, row](DestinationState& state) {
        state.progress.erase(number);
        state.progress[next] = row;
      },
      [number, next, before](DestinationState& state) {
        state.progress.erase(next);
        state.progress[number] = before;
      });
  return affected(1);
}

Outcome DestinationSession::record(const std::string& sql, const Parameters& parameters) {
  const bool fenced = sql.find("AND epoch = $3") != std::string::npos;
  if (Outcome locked = lock(kStreamLock, Locks::Mode::exclusive); !locked.ok()) return locked;
  auto& stream = destination_.working().stream;
  if (!stream || (fenced && stream->epoch != integer(parameters[2]))) return affected(0);
  const base::Lsn before = stream->low_watermark;
  const base::Lsn after = std::max(before, lsn(parameters[1]));
  change([after](DestinationState& state) { state.stream->low_watermark = after; },
         [before](DestinationState& state) { state.stream->low_watermark = before; });
  return affected(1);
}

}  // namespace thalweg::simulation
