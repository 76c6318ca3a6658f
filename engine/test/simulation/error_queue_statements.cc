// The error queue in schema thalweg: the statements of parking.cc and error_queue.cc.

#include <algorithm>

#include <fmt/format.h>

#include "simulation/destination_session.h"
#include "simulation/text_values.h"

namespace thalweg::simulation {

namespace {

// Columns of a ParkedRow.
enum Column : size_t {
  kCommitLsn,
  kEndLsn,
  kMicros,
  kXid,
  kLcrs,
  kTables,
  kCode,
  kMessage,
  kSqlstate,
  kFailure,
  kHashes
};

// Of rows, of rows that are needed, of tables, of their parents, of tables whose keys came or went.
void add_hashes(const ParkedRow& parked, Row& row) {
  for (size_t i = kHashes; i < parked.columns.size(); ++i) row.push_back(bytea(parked.columns[i]));
}

constexpr size_t kSmallBytes = 64 * 1024;  // parked_execution.cc's

// Of {"1","2"}.
std::vector<int64_t> ids_of(const std::string& text) {
  std::vector<int64_t> ids;
  for (size_t at = text.find_first_of("0123456789"); at != std::string::npos;
       at = text.find_first_of("0123456789", text.find('"', at))) {
    ids.push_back(std::stoll(text.substr(at)));
  }
  return ids;
}

std::string error_lock(int64_t id) { return fmt::format("e{}", id); }

}  // namespace

Outcome DestinationSession::error_queue_statement(const std::string& sql, const Parameters& parameters, bool& known) {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  if (is("WITH RECURSIVE me AS (")) return rows({{"t", "thalweg", ""}});  // bookkeeping_trust.inc
  // The tables' names. Here nothing is ever copied: nobody else holds the queue.
  if (is("SELECT coalesce((to_jsonb(t) -> 'identity' ->> 'relation')::bigint, 0), schema_name, ")) {
    std::vector<Row> names;
    for (size_t i = 0; i < shapes().size(); ++i) {
      names.push_back({std::to_string(shapes()[i].oid), "public", shapes()[i].name, "public", shapes_there()[i].name});
    }
    return rows(std::move(names));
  }
  if (is("SELECT coalesce(to_jsonb(t) ->> 'destination_schema', schema_name), ")) return rows({});
  if (sql.contains("WITH named AS MATERIALIZED (")) return rows({});  // of tables that were copied again
  if (is("SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended('thalweg error queue ")) {
    return rows({{"t"}});
  }
  if (is("INSERT INTO thalweg.error_queue (")) return park(parameters);
  if (is("INSERT INTO thalweg.error_queue_chunk ")) return add_chunk(parameters);
  if (is("SELECT id, commit_lsn, xid, lcrs, tables, code, ")) return show_parked(false);
  if (is("SELECT id, commit_lsn, end_lsn, commit_micros, ")) return show_parked(true);
  if (is("SELECT hashes, read_hashes, table_hashes, parent_hashes, ")) {
    std::vector<Row> found;
    for (const auto& [id, parked] : destination_.committed().error_queue) add_hashes(parked, found.emplace_back());
    return rows(std::move(found));
  }
  if (is("SELECT frames FROM thalweg.error_queue_chunk WHERE error_id = ")) {
    const auto& queue = destination_.committed().error_queue;
    const auto parked = queue.find(integer(parameters[0]));
    if (parked == queue.end()) return rows({});
    const auto chunk = parked->second.chunks.find(integer(parameters[1]));
    return chunk == parked->second.chunks.end() ? rows({}) : rows({{bytea(chunk->second)}});
  }
  if (is("SELECT error_id, frames FROM thalweg.error_queue_chunk WHERE error_id = ANY ")) {
    return show_small(*parameters[0].bytes);
  }
  if (is("SELECT to_hex(hashtextextended(concat_ws(chr(31), code, ")) return rows({});  // causes: nobody looks at them
  if (is("SELECT count(*), count(*) FILTER (WHERE (code <> ")) {
    const std::string total = std::to_string(destination_.committed().error_queue.size());
    return rows({{total, total}});
  }
  if (is("UPDATE thalweg.error_queue SET code = ")) {
    return note_parked(integer(parameters[3]), {*parameters[0].bytes, *parameters[1].bytes, *parameters[2].bytes});
  }
  if (is("WITH freed AS MATERIALIZED (SELECT id FROM thalweg.error_queue ")) return mark_freed(parameters);
  if (is("WITH gone AS (DELETE FROM thalweg.error_queue ")) {
    const Outcome gone = delete_parked(sql, integer(parameters[0]));
    return gone.ok() && gone.affected == 0 ? error("22012", "division by zero") : gone;
  }
  if (is("DELETE FROM thalweg.error_queue")) return delete_parked(sql, integer(parameters[0]));
  known = false;
  return {};
}

Outcome DestinationSession::park(const Parameters& parameters) {
  ParkedRow row{.commit_lsn = lsn(parameters[1]), .columns = {}, .chunks = {}};
  for (size_t i = 1; i < parameters.size(); ++i) row.columns.push_back(*parameters[i].bytes);
  // Its unique key: waits for a session of a dead engine that has parked the same and not committed.
  const std::string key = fmt::format("q{}", base::to_string(row.commit_lsn));
  if (Outcome locked = lock(key, Locks::Mode::exclusive); !locked.ok()) return locked;
  for (const auto& [id, parked] : destination_.working().error_queue) {
    if (parked.commit_lsn == row.commit_lsn) return error("23505", "duplicate key value");
  }
  const int64_t id = destination_.next_error_id();
  if (Outcome locked = lock(error_lock(id), Locks::Mode::exclusive); !locked.ok()) return locked;
  change([id, row](DestinationState& state) { state.error_queue[id] = row; },
         [id](DestinationState& state) { state.error_queue.erase(id); });
  return affected(1);
}

Outcome DestinationSession::add_chunk(const Parameters& parameters) {
  const int64_t number = integer(parameters[2]);
  const std::string frames = *parameters[3].bytes;
  for (const auto& [id, parked] : destination_.working().error_queue) {
    if (parked.commit_lsn != lsn(parameters[1])) continue;
    change([id, number, frames](DestinationState& state) { state.error_queue[id].chunks[number] = frames; },
           [id, number](DestinationState& state) { state.error_queue[id].chunks.erase(number); });
    return affected(1);
  }
  return affected(0);
}

Outcome DestinationSession::show_parked(bool with_hashes) {
  const auto& queue = destination_.committed().error_queue;
  std::vector<std::pair<base::Lsn, int64_t>> order;
  for (const auto& [id, parked] : queue) order.emplace_back(parked.commit_lsn, id);
  std::ranges::sort(order);
  std::vector<Row> found;
  for (const auto& [commit_lsn, id] : order) {
    const auto& columns = queue.at(id).columns;
    const std::string number = std::to_string(id);
    if (with_hashes) {
      found.push_back({number, columns[kCommitLsn], columns[kEndLsn], columns[kMicros], columns[kXid], columns[kLcrs]});
      add_hashes(queue.at(id), found.back());
      found.back().insert(found.back().end(), {columns[kCode], columns[kTables], "{}"});
    } else {
      found.push_back({number, columns[kCommitLsn], columns[kXid], columns[kLcrs], columns[kTables], columns[kCode],
                       columns[kMessage], columns[kSqlstate], "2026-01-01T00:00:00.000000Z", "0", "0", "0", "0"});
    }
  }
  return rows(std::move(found));
}

Outcome DestinationSession::note_parked(int64_t id, const std::array<std::string, 3>& cause) {
  if (Outcome locked = lock(error_lock(id), Locks::Mode::exclusive); !locked.ok()) return locked;
  auto& queue = destination_.working().error_queue;
  const auto found = queue.find(id);
  if (found == queue.end()) return affected(0);
  const ParkedRow before = found->second;
  ParkedRow after = before;
  std::ranges::copy(cause, after.columns.begin() + kCode);
  change([id, after](DestinationState& state) { state.error_queue[id] = after; },
         [id, before](DestinationState& state) { state.error_queue[id] = before; });
  return affected(1);
}

// Whole transactions, none of which has a second chunk.
Outcome DestinationSession::show_small(const std::string& ids) {
  std::vector<Row> found;
  const auto& queue = destination_.committed().error_queue;
  for (const int64_t id : ids_of(ids)) {
    const auto parked = queue.find(id);
    if (parked == queue.end() || parked->second.chunks.size() != 1) continue;
    const std::string& frames = parked->second.chunks.begin()->second;
    if (frames.size() <= kSmallBytes) found.push_back({std::to_string(id), bytea(frames)});
  }
  return rows(std::move(found));
}

// Those that nobody else is at work on.
Outcome DestinationSession::mark_freed(const Parameters& parameters) {
  uint64_t marked = 0;
  for (const int64_t id : ids_of(*parameters[2].bytes)) {
    if (!destination_.locks().try_acquire(channel().pid, error_lock(id), Locks::Mode::exclusive)) continue;
    if (!destination_.working().error_queue.contains(id)) continue;
    const Outcome noted = note_parked(id, {*parameters[0].bytes, *parameters[1].bytes, ""});
    if (!noted.ok()) return noted;
    ++marked;
  }
  return affected(marked);
}

// Waits for another session that has taken it out and not committed: then it is gone.
Outcome DestinationSession::delete_parked(const std::string& sql, int64_t id) {
  if (Outcome locked = lock(error_lock(id), Locks::Mode::exclusive); !locked.ok()) return locked;
  auto& queue = destination_.working().error_queue;
  const auto found = queue.find(id);
  if (found == queue.end()) return affected(0);
  const ParkedRow before = found->second;
  const bool chunks = sql.starts_with("DELETE FROM thalweg.error_queue_chunk ");
  const auto back = [id, before](DestinationState& state) { state.error_queue[id] = before; };
  if (chunks) {
    change([id](DestinationState& state) { state.error_queue[id].chunks.clear(); }, back);
  } else {
    change([id](DestinationState& state) { state.error_queue.erase(id); }, back);
  }
  return affected(1);
}

}  // namespace thalweg::simulation
