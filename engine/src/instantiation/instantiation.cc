#include "instantiation/instantiation.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>

#include "base/log.h"
#include "instantiation/bookkeeping.h"
#include "instantiation/captured_tables.h"
#include "instantiation/catalogue.h"
#include "instantiation/comparison.h"
#include "instantiation/copier.h"
#include "instantiation/ddl.h"
#include "instantiation/destination_schema.h"
#include "pg/value_forms.h"

namespace thalweg::instantiation {

using base::ErrorCode;

namespace {

struct Side {
  pg::Connection connection;
  Catalogue catalogue;
  explicit Side(pg::Connection the_connection) : connection(std::move(the_connection)), catalogue(connection) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
};

base::Result<std::unique_ptr<Side>> open_side(const base::Conninfo& conninfo, const std::string& stream_id) {
  pg::ConnectOptions options;
  options.application_name = "thalweg instantiation " + stream_id;
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, options));
  auto side = std::make_unique<Side>(std::move(connection));
  THALWEG_TRY(side->catalogue.open());
  return side;
}

}  // namespace

struct Instantiation::State {
  InstantiationOptions options;
  Progress& progress;
  const std::atomic<bool>& stop;
  std::unique_ptr<Side> source;
  std::unique_ptr<Side> destination;
  std::optional<Bookkeeping> bookkeeping;
  bool fresh = false;
  std::vector<TableShape> shapes;                 // of the source, in the options' order
  TableRecords known;                             // tables with a history
  std::map<TableName, TableIdentity> identities;  // of tables that are about to be copied
  std::set<TableName> to_create;
  std::vector<TypeShape> types;

  State(InstantiationOptions the_options, Progress& the_progress, const std::atomic<bool>& the_stop)
      : options(std::move(the_options)), progress(the_progress), stop(the_stop) {}

  base::Result<void> connect();
  base::Result<void> read_source();
  base::Result<void> read_records();
  base::Result<void> check_destination(const TableShape& shape, const TableShape* there);
  base::Result<void> look_at_tables();
  base::Result<void> follow_renames(const SourceTables& now);
  base::Result<void> forget_others();
  base::Result<void> stop_or_refuse(const TableName& name);
  base::Result<void> make_room();
  bool is_copied(const TableRecord& record) const { return options.initial_copy || record.copy_again; }
  // Whether it is to be checked, and copied perhaps; the changes of others come, or are left out, whatever it is now.
  bool is_examined(const TableName& name) const {
    const auto record = known.find(name);
    return record == known.end() || !record->second.trouble;
  }
  base::Result<void> create_all(const Warn& warn);
  base::Result<void> rehearse();
  base::Result<void> show_progress();
  base::Result<void> plan(Copier& copier, CopyTable& table, std::vector<KeyRange>& ranges);
  base::Result<void> copy_tables(const Snapshot& snapshot);
  const TableShape& shape_of(const TableName& name) const {
    return *std::ranges::find(shapes, name, &TableShape::name);
  }
};

base::Result<void> Instantiation::State::connect() {
  // Both at once: a server's first look at its catalogs costs it more than the connection.
  auto source_opened =
      std::async(std::launch::async, [this] { return open_side(options.source_conninfo, options.stream_id); });
  auto destination_opened = open_side(options.destination_conninfo, options.stream_id);
  THALWEG_ASSIGN(source, source_opened.get());
  THALWEG_ASSIGN(destination, std::move(destination_opened));
  bookkeeping.emplace(destination->connection, options.stream_id);
  return {};
}

base::Result<void> Instantiation::State::read_source() {
  THALWEG_ASSIGN(Catalogue::Tables found, source->catalogue.tables(options.tables));
  std::set<uint32_t> seen;
  for (const TableName& name : options.tables) {
    if (!is_examined(name)) continue;
    const auto shape = found.find(name);
    if (shape == found.end()) {
      base::Error error =
          base::fail(ErrorCode::missing_table, fmt::format("{} does not exist at the source.", name.quoted())).error();
      error.table = name.quoted();
      return std::unexpected(std::move(error));
    }
    THALWEG_TRY(check_source_table(shape->second));
    THALWEG_TRY(source->catalogue.types_of(shape->second, seen, types));
    shapes.push_back(std::move(shape->second));
  }
  return {};
}

base::Result<void> Instantiation::State::read_records() {
  const TableRecords before = std::exchange(known, {});
  THALWEG_ASSIGN(bool exists, bookkeeping->exists());
  if (!exists || fresh) return {};
  THALWEG_TRY(bookkeeping->upgrade());
  THALWEG_ASSIGN(std::vector<TableRecord> records, bookkeeping->tables());
  for (TableRecord& record : records) {
    // A rename is not recorded: it can be seen at the source for as long as it lasts.
    const auto seen = before.find(record.table);
    if (!record.trouble && seen != before.end()) record.trouble = seen->second.trouble;
    known.emplace(record.table, std::move(record));
  }
  return {};
}

base::Result<void> Instantiation::State::look_at_tables() {
  std::vector<WatchedTable> watched = to_watch(known);
  for (const TableName& name : options.tables) {
    if (!known.contains(name)) watched.push_back({.name = name, .was = {}});
  }
  if (known.empty()) return {};
  THALWEG_ASSIGN(const SourceTables now, look_at_source(source->connection, options.publication, watched));
  THALWEG_TRY(follow_renames(now));
  THALWEG_TRY(forget_others());
  const RecordChanges changes = compare(known, now, progress.clock().unix_now());
  THALWEG_TRY(store(*bookkeeping, known, changes));
  for (const TableName& name : options.tables) THALWEG_TRY(stop_or_refuse(name));
  return {};
}

// The stream has a table under the name that one of its others bears at the source now: that one it is.
base::Result<void> Instantiation::State::follow_renames(const SourceTables& now) {
  for (const TableName& to : options.tables) {
    const SourceTable* const named = now.find(to);
    if (known.contains(to) || named == nullptr) continue;
    const auto record = std::ranges::find_if(known, [&](const auto& one) {
      return one.second.identity.relation == named->now.relation &&
             std::ranges::find(options.tables, one.first) == options.tables.end();
    });
    if (record == known.end()) continue;
    DestinationSchema schema(destination->connection, destination->catalogue);
    const TableName from = record->first;
    THALWEG_TRY(destination->connection.script("BEGIN"));
    auto renamed = schema.rename_table(from, to);
    if (renamed) renamed = bookkeeping->rename_table(from, to);
    THALWEG_TRY(destination->connection.script(renamed ? "COMMIT" : "ROLLBACK"));
    THALWEG_TRY(renamed);
    base::log_event(base::LogLevel::info, "table_renamed",
                    {{"stream", options.stream_id}, {"from", from.quoted()}, {"to", to.quoted()}});
    auto moved = known.extract(record);
    moved.key() = to;
    moved.mapped().table = to;
    known.insert(std::move(moved));
  }
  return {};
}

// Tables that the stream has no longer: should they come back, they are copied.
base::Result<void> Instantiation::State::forget_others() {
  for (auto record = known.begin(); record != known.end();) {
    if (std::ranges::find(options.tables, record->first) != options.tables.end()) {
      ++record;
      continue;
    }
    THALWEG_TRY(bookkeeping->remove_table(record->first));
    record = known.erase(record);
  }
  return {};
}

base::Result<void> Instantiation::State::stop_or_refuse(const TableName& name) {
  const auto found = known.find(name);
  if (found == known.end() || !found->second.trouble) return {};
  TableRecord& record = found->second;
  if (record.stopped || (record.trouble->loses_nothing() && record.constraints_done)) return {};
  if (!options.stops_tables || record.trouble->loses_nothing()) {
    return std::unexpected(trouble_error(name, *record.trouble));
  }
  record.stopped = true;
  THALWEG_TRY(bookkeeping->set_trouble(name, record.identity, *record.trouble, true));
  base::log_event(base::LogLevel::warning, "table_stopped",
                  {{"stream", options.stream_id}, {"table", name.quoted()}, {"reason", record.trouble->reason}});
  return {};
}

base::Result<void> Instantiation::State::check_destination(const TableShape& shape, const TableShape* there) {
  if (!there) {
    to_create.insert(shape.name);
    return {};
  }
  THALWEG_TRY(check_same_table(shape, *there));
  if (!options.initial_copy || known.contains(shape.name)) return {};
  THALWEG_ASSIGN(pg::Rows rows,
                 destination->connection.query(fmt::format("SELECT EXISTS (SELECT FROM {})", read_from(*there))));
  if (!rows.boolean(0, 0)) return {};
  base::Error error = base::fail(ErrorCode::destination_table_not_empty,
                                 fmt::format("{} has rows at the destination.", shape.name.quoted()))
                          .error();
  error.table = shape.name.quoted();
  return std::unexpected(std::move(error));
}

base::Result<void> Instantiation::State::create_all(const Warn& warn) {
  std::vector<const TableShape*> missing;
  for (const TableShape& shape : shapes) {
    if (to_create.contains(shape.name)) missing.push_back(&shape);
  }
  return DestinationSchema(destination->connection, destination->catalogue).create(types, missing, warn);
}

base::Result<void> Instantiation::State::rehearse() {
  pg::Connection& connection = destination->connection;
  auto rehearsed = [&]() -> base::Result<void> {
    THALWEG_TRY(connection.script("BEGIN; SET LOCAL session_replication_role = replica"));
    THALWEG_TRY(bookkeeping->create_tables());
    THALWEG_TRY(create_all([](std::string) -> base::Result<void> { return {}; }));
    // Apply and copy need these rights on every table, new or old.
    for (const TableShape& shape : shapes) {
      THALWEG_ASSIGN(
          pg::Rows rows,
          connection.query("SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p "
                           "WHERE NOT has_table_privilege($1::text, p)",
                           {shape.name.quoted()}));
      if (rows.size() == 0) continue;
      return base::fail(
          ErrorCode::insufficient_privilege,
          fmt::format("The destination's user has no {} privilege on {}.", rows.text(0, 0), shape.name.quoted()));
    }
    return {};
  }();
  if (!connection.broken()) {
    if (auto undone = connection.script("ROLLBACK"); !undone && rehearsed) return std::unexpected(undone.error());
  }
  return rehearsed;
}

base::Result<void> Instantiation::State::show_progress() {
  progress.clear();
  THALWEG_ASSIGN(bool exists, bookkeeping->exists());
  if (!exists || fresh) return {};
  THALWEG_ASSIGN(std::optional<InstantiationRecord> record, bookkeeping->read());
  if (record) progress.begin(record->started_at, record->finished_at, record->warnings);
  THALWEG_ASSIGN(std::vector<RangeRecord> ranges, bookkeeping->ranges());
  for (const auto& [name, table] : known) {
    if (std::ranges::find(options.tables, name) == options.tables.end()) continue;
    TableCounters& counters = progress.table(name);
    counters.rows_estimated = table.rows_estimated;
    counters.before_nanos = static_cast<int64_t>(table.seconds * 1e9);
    if (table.finished) counters.state = CopyState::copied;
  }
  for (const RangeRecord& range : ranges) {
    if (std::ranges::find(options.tables, range.table) == options.tables.end()) continue;
    TableCounters& counters = progress.table(range.table);
    counters.ranges_total += 1;
    if (!range.copied) continue;
    counters.ranges_copied += 1;
    counters.rows += range.rows;
    counters.bytes += range.bytes;
  }
  return {};
}

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
  THALWEG_TRY(s.read_source());
  THALWEG_ASSIGN(const Catalogue::Tables there, s.destination->catalogue.tables(s.options.tables));
  for (const TableShape& shape : s.shapes) {
    const auto found = there.find(shape.name);
    THALWEG_TRY(s.check_destination(shape, found == there.end() ? nullptr : &found->second));
  }
  Assessment assessment;
  for (const TableShape& shape : s.shapes) {
    auto record = s.known.find(shape.name);
    assessment.needs_snapshot = assessment.needs_snapshot || record == s.known.end() || !record->second.finished;
    assessment.needs_constraints =
        assessment.needs_constraints || record == s.known.end() || !record->second.constraints_done;
  }
  if (assessment.needs_snapshot) THALWEG_TRY(s.rehearse());
  THALWEG_TRY(s.show_progress());
  return assessment;
}

std::vector<TableName> Instantiation::published_tables() const {
  std::vector<TableName> out;
  for (const TableName& name : state_->options.tables) {
    const auto record = state_->known.find(name);
    if (record == state_->known.end() || !record->second.trouble) {
      out.push_back(name);
    } else if (record->second.trouble->loses_nothing()) {
      out.push_back(record->second.trouble->now);
    }
  }
  return out;
}

base::Result<void> Instantiation::identify() {
  State& s = *state_;
  std::vector<WatchedTable> watched;
  for (const TableShape& shape : s.shapes) {
    const auto record = s.known.find(shape.name);
    if (record == s.known.end() || (record->second.copy_again && !record->second.planned)) {
      watched.push_back({.name = shape.name, .was = {}});
    }
  }
  if (watched.empty()) return {};
  THALWEG_ASSIGN(const SourceTables now, look_at_source(s.source->connection, s.options.publication, watched));
  for (const WatchedTable& one : watched) {
    if (const SourceTable* const found = now.find(one.name)) s.identities[one.name] = found->now;
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
      THALWEG_TRY(schema.add_partitions(shape, [&](std::string warning) { return bookkeeping->warn(warning); }));
      THALWEG_TRY(schema.empty_table(shape.name));
    }
    THALWEG_TRY(bookkeeping->begin_copy_again(shape.name, create, identities[shape.name]));
  }
  return {};
}

base::Result<void> Instantiation::prepare() {
  State& s = *state_;
  pg::Connection& connection = s.destination->connection;
  auto prepared = [&]() -> base::Result<void> {
    THALWEG_TRY(connection.script("BEGIN"));
    THALWEG_TRY(s.bookkeeping->create_tables());
    if (s.fresh) THALWEG_TRY(s.bookkeeping->forget());
    THALWEG_TRY(s.bookkeeping->create_tables());
    THALWEG_TRY(s.bookkeeping->begin());
    THALWEG_TRY(s.create_all([&](std::string warning) { return s.bookkeeping->warn(warning); }));
    for (const TableShape& shape : s.shapes) {
      if (s.known.contains(shape.name)) continue;
      THALWEG_TRY(s.bookkeeping->add_table(shape.name, s.to_create.contains(shape.name), s.identities[shape.name]));
    }
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

base::Result<void> Instantiation::State::plan(Copier& copier, CopyTable& table, std::vector<KeyRange>& ranges) {
  THALWEG_ASSIGN(int64_t rows, estimate_rows(copier.source(), table.shape));
  THALWEG_ASSIGN(ranges, split(copier.source(), table.shape, rows, options.copy_range_rows));
  THALWEG_TRY(bookkeeping->plan_table(table.shape.name, rows, ranges));
  table.counters->rows_estimated = rows;
  table.counters->ranges_total = static_cast<int64_t>(ranges.size());
  return {};
}

base::Result<void> Instantiation::State::copy_tables(const Snapshot& snapshot) {
  Copier copier({options.stream_id, options.source_conninfo, options.destination_conninfo, options.copy_workers},
                progress, stop);
  THALWEG_TRY(copier.open(snapshot));
  THALWEG_ASSIGN(std::vector<RangeRecord> records, bookkeeping->ranges());

  std::vector<std::unique_ptr<CopyTable>> tables;
  std::vector<CopyTask> tasks;
  for (const TableShape& shape : shapes) {
    const TableRecord& record = known.at(shape.name);
    if (record.finished || !is_copied(record)) continue;
    auto& table = *tables.emplace_back(std::make_unique<CopyTable>());
    table.shape = shape;
    table.counters = &progress.table(shape.name);
    THALWEG_ASSIGN(const pg::ValueForms forms,
                   pg::value_forms(source->connection, "SELECT $1::oid", std::to_string(shape.oid)));
    table.text = forms.needs_text || forms.holds_type_oids;
    if (!record.planned) {
      std::vector<KeyRange> ranges;
      THALWEG_TRY(plan(copier, table, ranges));
      for (size_t i = 0; i < ranges.size(); ++i)
        tasks.push_back({&table, static_cast<int>(i) + 1, std::move(ranges[i])});
      continue;
    }
    for (const RangeRecord& range : records) {
      if (range.table != shape.name) continue;
      if (range.copied) {
        table.resumed = true;
      } else {
        tasks.push_back({&table, range.number, range.range});
      }
    }
  }
  // Big tables first: a long range that begins last would leave the other workers without work.
  std::ranges::stable_sort(tasks, std::greater{},
                           [](const CopyTask& task) { return task.table->counters->rows_estimated.load(); });
  THALWEG_TRY(copier.run(tasks));

  ProgressReport report = progress.report();
  for (const auto& table : tables) {
    auto shown = std::ranges::find(report.tables, table->shape.name, &TableProgress::table);
    progress.end_table(*table->counters);
    THALWEG_TRY(bookkeeping->finish_table(table->shape.name, snapshot.consistent_point, shown->seconds));
  }
  return {};
}

base::Result<void> Instantiation::copy(const std::string& snapshot_name, base::Lsn consistent_point) {
  State& s = *state_;
  const auto waits = [&](const TableShape& shape) {
    const TableRecord& record = s.known.at(shape.name);
    return !record.finished && s.is_copied(record);
  };
  if (std::ranges::any_of(s.shapes, waits)) THALWEG_TRY(s.copy_tables({snapshot_name, consistent_point}));
  for (const TableShape& shape : s.shapes) {
    if (s.known.at(shape.name).finished || waits(shape)) continue;
    THALWEG_TRY(s.bookkeeping->finish_table(shape.name, consistent_point, 0));
    s.progress.table(shape.name).state = CopyState::copied;
  }
  return s.read_records();
}

base::Result<base::Lsn> Instantiation::add_constraints(base::Lsn applied) {
  State& s = *state_;
  DestinationSchema schema(s.destination->connection, s.destination->catalogue);
  Warn warn = [&](std::string warning) -> base::Result<void> {
    THALWEG_TRY(s.bookkeeping->warn(warning));
    s.progress.warn(warning);
    return {};
  };
  base::Lsn postponed_to;
  std::vector<const TableShape*> ready;
  for (const TableShape& shape : s.shapes) {
    const TableRecord& record = s.known.at(shape.name);
    if (record.constraints_done) continue;
    // Rows of several snapshots can contradict each other until apply has passed the youngest.
    bool consistent = record.copied_from == record.copied_to || record.copied_to <= applied;
    if (consistent) {
      ready.push_back(&shape);
    } else {
      postponed_to = std::max(postponed_to, record.copied_to);
    }
  }
  for (const TableShape* shape : ready) {
    if (s.known.at(shape->name).created) THALWEG_TRY(schema.add_constraints(*shape, warn));
  }
  // A foreign key needs both its tables, from one state of the source: tables of different snapshots do not qualify.
  std::set<base::Lsn> positions;
  for (const auto& [name, record] : s.known) positions.insert(record.copied_to);
  if (positions.size() > 1 && *positions.rbegin() > applied) postponed_to = std::max(postponed_to, *positions.rbegin());
  if (postponed_to) return postponed_to;
  for (const TableShape* shape : ready) {
    if (s.known.at(shape->name).created) THALWEG_TRY(schema.add_foreign_keys(*shape, warn));
    THALWEG_TRY(s.bookkeeping->constraints_done(shape->name));
  }
  THALWEG_TRY(s.bookkeeping->finish());
  THALWEG_TRY(s.read_records());
  THALWEG_ASSIGN(std::optional<InstantiationRecord> record, s.bookkeeping->read());
  if (record && record->finished_at) s.progress.finish(*record->finished_at);
  return base::Lsn{};
}

base::Result<std::vector<CopiedTable>> Instantiation::copied_tables() {
  std::vector<CopiedTable> out;
  for (const auto& [name, record] : state_->known) {
    TableName there = name;
    if (record.trouble && record.trouble->loses_nothing()) {
      // Somebody may have renamed the destination's, too.
      THALWEG_ASSIGN(const auto existing, state_->destination->catalogue.existing({name}));
      if (existing.empty()) there = record.trouble->now;
    }
    out.push_back({there, record.identity.relation, record.copied_from, record.copied_to, record.stopped});
  }
  return out;
}

base::Result<void> Instantiation::forget(pg::Connection& destination, std::string_view stream_id) {
  return Bookkeeping(destination, std::string(stream_id)).forget();
}

}  // namespace thalweg::instantiation
