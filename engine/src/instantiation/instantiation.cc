#include "instantiation/instantiation.h"

#include <algorithm>

#include "base/log.h"
#include "instantiation/instantiation_state.h"
#include "pg/text_array.h"

namespace thalweg::instantiation {

Instantiation::Instantiation(InstantiationOptions options, Progress& progress, const std::atomic<bool>& stop)
    : state_(std::make_unique<State>(std::move(options), progress, stop)) {}

Instantiation::~Instantiation() = default;

base::Result<void> Instantiation::connect() { return state_->connect(); }

base::Result<Assessment> Instantiation::assess(bool fresh) {
  State& s = *state_;
  s.fresh = fresh;
  if (!s.destination) THALWEG_TRY(s.connect());
  THALWEG_TRY(s.read_records());
  THALWEG_TRY(s.look_at_tables());
  THALWEG_TRY(s.look_at_definitions());
  Assessment assessment;
  for (const TableShape& shape : s.shapes) {
    auto record = s.known.find(shape.name);
    assessment.needs_snapshot = assessment.needs_snapshot || record == s.known.end() || !record->second.finished;
    assessment.needs_constraints =
        assessment.needs_constraints || record == s.known.end() || !record->second.constraints_done;
  }
  if (assessment.needs_snapshot) {
    THALWEG_TRY(s.check_row_security());
    THALWEG_TRY(s.rehearse());
  }
  THALWEG_TRY(s.show_progress());
  return assessment;
}

PublishedTables Instantiation::published_tables() const {
  PublishedTables published;
  for (const TableName& name : state_->options.tables) {
    if (state_->absent.contains(name)) continue;
    std::vector<TableName>& out = state_->takes_inserts_only(name) ? published.inserts : published.changes;
    const auto record = state_->known.find(name);
    if (record == state_->known.end() || !record->second.trouble) {
      out.push_back(name);
    } else if (record->second.trouble->loses_nothing()) {
      out.push_back(record->second.trouble->now);
    }
  }
  return published;
}

base::Result<void> Instantiation::identify() {
  State& s = *state_;
  std::vector<WatchedTable> watched;
  for (const TableShape& shape : s.shapes) {
    const auto record = s.known.find(shape.name);
    if (record == s.known.end() || s.waits_for_copy(shape)) {
      watched.push_back({.name = shape.name, .was = {}});
    }
  }
  if (watched.empty()) return {};
  THALWEG_ASSIGN(const SourceTables now, look_at_source(s.source->connection, s.options.publications, watched));
  for (const WatchedTable& table : watched) {
    if (const SourceTable* const found = now.find(table.name)) s.identities[table.name] = found->now;
  }
  return {};
}

// The rows of tables that are to be copied again go, and what is recorded of them.
base::Result<void> Instantiation::State::make_room() {
  DestinationSchema schema(destination->connection, destination->catalogue);
  for (const TableShape& shape : shapes) {
    const auto record = known.find(shape.name);
    if (record == known.end() || !record->second.copy_again || record->second.planned) continue;
    const bool create = to_create.contains(shape.name);
    if (!create) {
      THALWEG_TRY(schema.add_partitions(shape_there(shape), record->second.created,
                                        [&](std::string warning) { return bookkeeping->warn(warning); }));
      THALWEG_TRY(schema.empty_table(shape_there(shape).name));
    }
    THALWEG_TRY(bookkeeping->begin_copy_again(shape.name, create, identities[shape.name]));
  }
  return {};
}

// Whether ranges of another snapshot can join those that are copied.
base::Result<bool> Instantiation::State::may_resume(const TableShape& shape) {
  // Bounds of another key say nothing of this one. Apply finds the rows of the span by the primary key: it is the only
  // one that the destination has by then.
  if (takes_inserts_only(shape.name)) return false;  // nor does what moved come at all
  if (shape.replica_identity != 'd' || known.at(shape.name).range_key != key_columns(shape)) return false;
  // A change of a toasted row does not carry the values that it leaves as they are. Where its key moves from a range
  // of this snapshot into one of the last, neither has the row.
  std::vector<std::string> oids{std::to_string(shape.oid)};
  for (const TableShape& partition : shape.partitions) oids.push_back(std::to_string(partition.oid));
  THALWEG_ASSIGN(const pg::Rows toasts,
                 source->connection.query("SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = ANY ($1::oid[]) "
                                          "AND reltoastrelid <> 0)",
                                          {pg::text_array(oids)}));
  if (toasts.boolean(0, 0)) return false;
  // Rows of two snapshots can contradict each other in whatever else is unique.
  THALWEG_ASSIGN(const pg::Rows unique,
                 destination->connection.query(
                     "SELECT EXISTS (SELECT FROM pg_catalog.pg_index WHERE (indisunique OR indisexclusion) AND NOT "
                     "indisprimary AND indrelid IN (SELECT to_regclass($1) UNION SELECT relid FROM "
                     "pg_catalog.pg_partition_tree(to_regclass($1))))",
                     {shape_there(shape).name.quoted()}));
  return !unique.boolean(0, 0);
}

// Tables of an interrupted copy go on with the ranges that are left, or start anew: without what was copied.
base::Result<void> Instantiation::State::prepare_resumption() {
  DestinationSchema schema(destination->connection, destination->catalogue);
  const Warn warn = [&](std::string warning) { return bookkeeping->warn(warning); };
  std::map<TableName, std::pair<bool, bool>> ranges;  // any copied, any left
  THALWEG_ASSIGN(const std::vector<RangeRecord> records, bookkeeping->ranges());
  for (const RangeRecord& record : records) {
    auto& [copied, left] = ranges[record.table];
    (record.copied ? copied : left) = true;
  }
  for (const TableShape& shape : shapes) {
    const auto record = known.find(shape.name);
    if (record == known.end() || !waits_for_copy(shape)) continue;
    const auto [copied, left] = ranges[shape.name];
    if (record->second.planned && !left) continue;
    if (!to_create.contains(shape.name)) {
      THALWEG_TRY(schema.add_partitions(shape_there(shape), record->second.created, warn));
    }
    if (copied) {
      THALWEG_ASSIGN(const bool resumes, may_resume(shape));
      if (resumes) continue;
      base::log_event(base::LogLevel::info, "table_copy_starts_anew",
                      {{"stream", options.stream_id}, {"table", shape.name.quoted()}});
      if (!to_create.contains(shape.name)) THALWEG_TRY(schema.empty_table(shape_there(shape).name));
    }
    if (record->second.planned) THALWEG_TRY(bookkeeping->forget_plan(shape.name));
    // Nothing is left of what was copied: it is the table of the next snapshot.
    THALWEG_TRY(bookkeeping->begin_copy_again(shape.name, false, identities[shape.name]));
  }
  return {};
}

base::Result<void> Instantiation::prepare() {
  State& s = *state_;
  pg::Connection& connection = s.destination->connection;
  auto prepared = [&]() -> base::Result<void> {
    // A range of a killed engine's worker must be noted by now, or never.
    const auto resumed = [](const auto& entry) { return entry.second.planned && !entry.second.finished; };
    if (std::ranges::any_of(s.known, resumed)) THALWEG_TRY(s.end_predecessors());
    THALWEG_TRY(connection.script("BEGIN"));
    THALWEG_TRY(s.bookkeeping->create_tables());
    if (s.fresh) THALWEG_TRY(s.bookkeeping->forget());
    THALWEG_TRY(s.bookkeeping->create_tables());
    THALWEG_TRY(s.bookkeeping->begin());
    THALWEG_TRY(
        DestinationSchema(connection, s.destination->catalogue)
            .create(s.types, s.missing_tables(), [&](std::string warning) { return s.bookkeeping->warn(warning); }));
    std::vector<NewTable> added;
    for (const TableShape& shape : s.shapes) {
      if (s.known.contains(shape.name)) continue;
      added.push_back(
          {shape.name, s.shape_there(shape).name, s.to_create.contains(shape.name), s.identities[shape.name]});
    }
    if (!added.empty()) THALWEG_TRY(s.bookkeeping->add_tables(added));
    THALWEG_TRY(s.prepare_resumption());
    THALWEG_TRY(s.make_room());
    THALWEG_TRY(connection.script("COMMIT"));
    return {};
  }();
  if (!prepared) {
    if (!connection.broken()) static_cast<void>(connection.script("ROLLBACK"));  // the first failure is the answer
    return prepared;
  }
  s.fresh = false;
  s.to_create.clear();
  THALWEG_TRY(s.read_records());
  return s.show_progress();
}

base::Result<bool> Instantiation::copy(const std::string& snapshot_name, base::Lsn consistent_point) {
  auto copied = state_->copy({snapshot_name, consistent_point});
  // A session that was given up, or cancelled, says so; why it was is what counts.
  if (!copied && state_->stop) return interrupted();
  return copied;
}

base::Result<bool> Instantiation::State::copy(const Snapshot& snapshot) {
  bool complete = true;
  const auto waits = [&](const TableShape& shape) { return waits_for_copy(shape); };
  if (std::ranges::any_of(shapes, waits)) {
    THALWEG_ASSIGN(complete, copy_tables(snapshot));
  }
  std::vector<FinishedTable> without_rows;
  for (const TableShape& shape : shapes) {
    if (known.at(shape.name).finished || waits(shape)) continue;
    without_rows.push_back({.table = shape.name});
    progress.table(shape.name).state = CopyState::copied;
  }
  if (!without_rows.empty()) THALWEG_TRY(bookkeeping->finish_tables(without_rows, snapshot.consistent_point));
  THALWEG_TRY(read_records());
  return complete;
}

base::Result<base::Lsn> Instantiation::add_constraints(base::Lsn applied) {
  State& s = *state_;
  base::Lsn postponed_to;
  std::vector<TableName> ready;
  std::vector<const TableShape*> created;
  for (const TableShape& shape : s.shapes) {
    const TableRecord& record = s.known.at(shape.name);
    if (record.constraints_done) continue;
    // Rows of several snapshots can contradict each other until apply has passed the youngest.
    bool consistent = record.copied_from == record.copied_to || record.copied_to <= applied;
    if (!consistent) {
      postponed_to = std::max(postponed_to, record.copied_to);
      continue;
    }
    ready.push_back(shape.name);
    if (record.created) created.push_back(&shape);
  }
  if (!ready.empty()) THALWEG_TRY(s.end_predecessors());
  THALWEG_ASSIGN(const Builds builds, s.plan_indexes(created));
  THALWEG_TRY(s.build_indexes(builds));
  // A foreign key needs both its tables, from one state of the source: tables of different snapshots do not qualify.
  std::set<base::Lsn> positions;
  for (const auto& [name, record] : s.known) positions.insert(record.copied_to);
  if (positions.size() > 1 && *positions.rbegin() > applied) postponed_to = std::max(postponed_to, *positions.rbegin());
  if (postponed_to) return postponed_to;
  THALWEG_TRY(s.build_foreign_keys(builds));
  THALWEG_TRY(s.bookkeeping->constraints_done(ready));
  THALWEG_TRY(s.bookkeeping->finish());
  THALWEG_TRY(s.read_records());
  THALWEG_ASSIGN(std::optional<InstantiationRecord> record, s.bookkeeping->read());
  if (record && record->finished_at) s.progress.finish(*record->finished_at);
  return base::Lsn{};
}

base::Result<std::vector<CopiedTable>> Instantiation::copied_tables() {
  std::vector<CopiedTable> out;
  for (const auto& [name, record] : state_->known) {
    TableName there = record.there;
    TableName stream_table = name;
    if (record.trouble && record.trouble->loses_nothing() && there == name) {
      // Somebody may have renamed the destination's, too.
      THALWEG_ASSIGN(const auto existing, state_->destination->catalogue.existing({name}));
      if (existing.empty()) stream_table = there = record.trouble->now;
    }
    out.push_back(
        {there, stream_table, record.identity.relation, record.copied_from, record.copied_to, record.stopped});
  }
  return out;
}

base::Result<void> Instantiation::show_copied() {
  State& s = *state_;
  THALWEG_TRY(s.read_records());
  for (const auto& [name, table] : s.known) {
    if (std::ranges::find(s.options.tables, name) == s.options.tables.end()) continue;
    TableCounters& counters = s.progress.table(name);
    counters.copied_at = table.copied_from.value;
    counters.errors_discarded = table.errors_discarded;
  }
  return {};
}

base::Result<base::Lsn> Instantiation::youngest_snapshot(pg::Connection& destination, std::string_view stream_id) {
  return Bookkeeping(destination, std::string(stream_id)).youngest_snapshot();
}

base::Result<void> Instantiation::forget(pg::Connection& destination, std::string_view stream_id) {
  return Bookkeeping(destination, std::string(stream_id)).forget();
}

}  // namespace thalweg::instantiation
