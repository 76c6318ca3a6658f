#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>

#include "base/log.h"
#include "instantiation/comparison.h"
#include "instantiation/instantiation_state.h"
#include "instantiation/rewrites.h"
#include "instantiation/row_security.h"
#include "pg/text_array.h"
#include "rules/insert_filter.h"
#include "rules/rule_errors.h"
#include "rules/source_table.h"

// Checks before an instantiation makes anything, and their refusals.

namespace thalweg::instantiation {

using base::ErrorCode;

namespace {

base::Result<std::unique_ptr<Side>> open_side(const base::Conninfo& conninfo, const InstantiationOptions& of,
                                              const std::atomic<bool>& stop) {
  pg::ConnectOptions options;
  options.application_name = "thalweg instantiation " + of.stream_id;
  options.abandon = &stop;
  options.board = of.board;
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, options));
  auto side = std::make_unique<Side>(std::move(connection));
  THALWEG_TRY(side->catalogue.open());
  return side;
}

std::unexpected<base::Error> names_differ(const TableName& table, std::string message) {
  base::Error error =
      base::fail(ErrorCode::destination_table_differs, std::move(message), base::ErrorSide::destination).error();
  error.table = table.quoted();
  return std::unexpected(std::move(error));
}

}  // namespace

base::Result<void> Instantiation::State::connect() {
  // Both at once: a server's first look at its catalogs costs it more than the connection.
  auto source_opened =
      std::async(std::launch::async, [this] { return open_side(options.source_conninfo, options, stop); });
  auto destination_opened = open_side(options.destination_conninfo, options, stop);
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
      const bool others_go_on = !found.empty() || !known.empty();
      if (!options.stops_tables || !others_go_on) return missing_at_source(name);
      absent.insert(name);
      base::log_event(base::LogLevel::warning, "table_missing",
                      {{"stream", options.stream_id}, {"table", name.quoted()}});
      continue;
    }
    THALWEG_TRY(check_source_table(shape->second, takes_inserts_only(name)));
    THALWEG_TRY(check_taken_along(shape->second));
    THALWEG_TRY(read_transformations(shape->second));
    const auto sent = sent_tables.find(name);
    THALWEG_TRY(
        source->catalogue.types_of(sent == sent_tables.end() ? shape->second : sent->second.shape, seen, types));
    shapes.push_back(std::move(shape->second));
  }
  name_shapes();
  return read_rules();
}

void Instantiation::State::name_shapes() {
  names = options.names;
  for (const TableShape& shape : shapes) names.add_parts(shape);
  for (const TableShape& shape : shapes) shapes_there.push_back(named_there(shape, names));
  for (auto& [name, sent] : sent_tables) sent.shape = named_there(std::move(sent.shape), names);
}

base::Result<void> Instantiation::State::read_transformations(const TableShape& shape) {
  const auto steps = options.transformations.find(shape.name);
  if (steps == options.transformations.end()) return {};
  THALWEG_ASSIGN(sent_tables[shape.name], sent_table(source->connection, shape, steps->second, options.source_name));
  return check_constants(source->connection, shape, steps->second);
}

// Of tables that exchange names, the one whose rows were masked is not copied in the clear under the other's name.
base::Result<void> Instantiation::State::check_taken_along(const TableShape& shape) {
  const auto record = known.find(shape.name);
  if (record != known.end() && (!record->second.copy_again || record->second.planned)) return {};
  const auto steps_of = [&](const TableName& name) {
    const auto found = options.transformations.find(name);
    return found == options.transformations.end() ? transform::Steps{} : found->second;
  };
  for (const auto& [before, captured] : known) {
    if (captured.identity.relation != shape.oid) continue;
    THALWEG_TRY(check_left_behind(before, steps_of(before), shape.name, steps_of(shape.name)));
  }
  return {};
}

// Of every table, although few are to be copied: a rule that does not fit is refused before anything flows.
base::Result<void> Instantiation::State::read_rules() {
  for (const TableShape& shape : shapes) {
    const auto sets = options.rules.find(shape.name);
    if (sets == options.rules.end()) continue;
    THALWEG_ASSIGN(const auto table, rules::read_table(source->connection, shape.name.schema, shape.name.name));
    if (!table) {
      return base::fail(ErrorCode::missing_table, fmt::format("{} does not exist at the source.", shape.name.quoted()),
                        base::ErrorSide::source);
    }
    std::string& filter = row_filters[shape.name];
    for (const rules::RuleSets& each : sets->second) {
      auto passed = rules::insert_filter(each, *table, options.source_name);
      if (!passed) return std::unexpected(rules::error_of(passed.error(), *table));
      if (passed->empty()) continue;
      filter = filter.empty() ? std::move(*passed) : fmt::format("({}) AND ({})", filter, *passed);
    }
  }
  return {};
}

// Only a destination that has copied the table knows which relation it was. One that the stream publishes, under a name
// that none of its tables has, may be that, or another table's.
base::Result<void> Instantiation::State::missing_at_source(const TableName& name) {
  base::Error error =
      base::fail(ErrorCode::missing_table, fmt::format("{} does not exist at the source.", name.quoted()),
                 base::ErrorSide::source)
          .error();
  error.table = name.quoted();
  THALWEG_ASSIGN(
      const pg::Rows rows,
      source->connection.query(
          "SELECT DISTINCT n.nspname, c.relname, c.oid FROM pg_catalog.pg_publication p "
          "JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid "
          "JOIN pg_catalog.pg_class c ON c.oid = r.prrelid "
          "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname IN ($1, $2) ORDER BY 1, 2",
          {options.publications.changes, options.publications.inserts}));
  std::string others;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TableName other{std::string(rows.text(i, 0)), std::string(rows.text(i, 1))};
    const auto is_it = [&](const auto& record) { return record.second.identity.relation == rows.integer(i, 2); };
    if (std::ranges::find(options.tables, other) != options.tables.end() || std::ranges::any_of(known, is_it)) continue;
    others += (others.empty() ? "" : ", ") + other.quoted();
  }
  if (!others.empty()) {
    error.message += fmt::format(
        " If it was renamed, it may be one that the stream publishes under another name: {}. Then follow the rename at "
        "a destination that has copied the table, or put its present name into the stream.",
        others);
  }
  return std::unexpected(std::move(error));
}

base::Result<void> Instantiation::State::read_records() {
  const TableRecords before = std::exchange(known, {});
  THALWEG_ASSIGN(bool exists, bookkeeping->exists());
  if (!exists || fresh) return {};
  THALWEG_TRY(bookkeeping->upgrade());
  THALWEG_ASSIGN(std::vector<TableRecord> records, bookkeeping->tables());
  for (TableRecord& record : records) {
    record.inserts_only = takes_inserts_only(record.table);
    known.emplace(record.table, std::move(record));
  }
  keep_passing_troubles(known, before);
  return {};
}

base::Result<void> Instantiation::State::look_at_tables() {
  std::vector<WatchedTable> watched = to_watch(known);
  for (const TableName& name : options.tables) {
    if (!known.contains(name)) watched.push_back({.name = name, .was = {}});
  }
  if (known.empty()) return {};
  THALWEG_ASSIGN(SourceTables now, look_at_source(source->connection, options.publications, watched));
  THALWEG_TRY(follow_renames(now));
  THALWEG_TRY(follow_other_names());
  THALWEG_TRY(forget_others());
  // Whether a partition was truncated with its table shows once the stream has come that far.
  for (const TableName& name : Rewrites().settle(known, now, {}, {})) {
    THALWEG_TRY(bookkeeping->set_identity(name, known.at(name).identity));
  }
  const RecordChanges changes = compare(known, now, progress.clock().unix_now());
  THALWEG_TRY(store(*bookkeeping, known, changes));
  for (const TableName& name : options.tables) THALWEG_TRY(stop_or_refuse(name));
  return {};
}

// The stream has a table under the name that one of its others bears at the source now: that one it is. Also where the
// earlier name is another table's, which then comes in as a new one; unless changes were left out since.
base::Result<void> Instantiation::State::follow_renames(const SourceTables& now) {
  for (const TableName& to : options.tables) {
    const SourceTable* const named = now.find(to);
    if (known.contains(to) || named == nullptr) continue;
    const auto record = std::ranges::find_if(known, [&](const auto& entry) {
      const bool lost_nothing = !entry.second.stopped && !entry.second.copy_again;
      return entry.second.identity.relation == named->now.relation &&
             (lost_nothing || std::ranges::find(options.tables, entry.first) == options.tables.end());
    });
    if (record == known.end()) continue;
    DestinationSchema schema(destination->connection, destination->catalogue);
    const TableName from = record->first;
    const TableName there = options.names.of(to);
    THALWEG_TRY(destination->connection.script("BEGIN"));
    auto renamed = schema.rename_table(record->second.there, there);
    if (renamed) renamed = bookkeeping->rename_table(record->second, to, there);
    // "Another table has its name" is over: this one has its own again, and the stream did not go on.
    const bool was_replaced = record->second.trouble && record->second.trouble->kind == TroubleKind::replaced;
    const bool is_well = was_replaced && !record->second.stopped && !record->second.copy_again;
    if (renamed && is_well) renamed = bookkeeping->accept(to, record->second.identity, {});
    THALWEG_TRY(destination->connection.script(renamed ? "COMMIT" : "ROLLBACK"));
    THALWEG_TRY(renamed);
    base::log_event(
        base::LogLevel::info, "table_renamed",
        {{"stream", options.stream_id}, {"from", from.quoted()}, {"to", to.quoted()}, {"destination", there.quoted()}});
    auto moved = known.extract(record);
    moved.key() = to;
    moved.mapped().table = to;
    moved.mapped().there = there;
    if (is_well) moved.mapped().trouble.reset();
    moved.mapped().inserts_only = takes_inserts_only(to);
    known.insert(std::move(moved));
  }
  return {};
}

// Before any is renamed: one by one, a table could get the name that another one of the stream has only left, or is
// about to leave, and the rows of one would go into the other.
base::Result<void> Instantiation::State::check_other_names() {
  for (const auto& [name, record] : known) {
    const TableName& there = options.names.of(name);
    const bool is_wanted = std::ranges::find(options.tables, name) != options.tables.end();
    if (!is_wanted || record.there == there) continue;
    for (const auto& [other, has] : known) {
      if (other == name || has.there != there) continue;
      return names_differ(name, fmt::format("{} is to be {} at the destination, which is what {} has been there. Give "
                                            "one of them a third name first.",
                                            name.quoted(), there.quoted(), other.quoted()));
    }
    THALWEG_ASSIGN(const std::set<TableName> existing, destination->catalogue.existing({record.there, there}));
    if (existing.empty() && record.finished && !record.copy_again) {
      return names_differ(name, fmt::format("{} has been {} at the destination and is to be {}: neither is there.",
                                            name.quoted(), record.there.quoted(), there.quoted()));
    }
  }
  return {};
}

// The stream wants another name for a table at the destination than the one under which it has been filled.
base::Result<void> Instantiation::State::follow_other_names() {
  THALWEG_TRY(check_other_names());
  for (auto& [name, record] : known) {
    const TableName& there = options.names.of(name);
    const bool is_wanted = std::ranges::find(options.tables, name) != options.tables.end();
    if (!is_wanted || record.there == there) continue;
    DestinationSchema schema(destination->connection, destination->catalogue);
    THALWEG_TRY(destination->connection.script("BEGIN"));
    auto renamed = schema.rename_table(record.there, there);
    if (renamed) renamed = bookkeeping->rename_table(record, name, there);
    THALWEG_TRY(destination->connection.script(renamed ? "COMMIT" : "ROLLBACK"));
    THALWEG_TRY(renamed);
    base::log_event(base::LogLevel::info, "destination_table_renamed",
                    {{"stream", options.stream_id},
                     {"table", name.quoted()},
                     {"from", record.there.quoted()},
                     {"to", there.quoted()}});
    record.there = there;
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
  if (const auto steps = options.transformations.find(shape.name); steps != options.transformations.end()) {
    THALWEG_TRY(check_takes_columns(shape, steps->second, shape_there(shape).name, there));
  }
  if (!there) {
    to_create.insert(shape.name);
    return {};
  }
  const auto record = known.find(shape.name);
  // A table that two snapshots have filled has had its key from the second one's first row on.
  const bool key_follows = record != known.end() && record->second.created && !record->second.constraints_done &&
                           (!record->second.finished || record->second.copied_from == record->second.copied_to);
  THALWEG_TRY(
      check_same_table(sent_shape(shape), *there, key_follows ? KeyAtDestination::follows : KeyAtDestination::needed));
  // Partitions are added before the rows go, and are not to be in anything's way.
  if (record != known.end() && !record->second.finished && is_copied(record->second) &&
      gets_partitions(shape_there(shape), *there, record->second.created)) {
    THALWEG_TRY(DestinationSchema(destination->connection, destination->catalogue)
                    .check_partition_names(shape_there(shape), *there));
  }
  if (!options.initial_copy || record != known.end()) return {};
  return DestinationSchema(destination->connection, destination->catalogue).check_empty(*there);
}

// Definitions can have changed since somebody accepted what they call: what is about to be made is judged as it is now.
base::Result<void> Instantiation::State::check_code(const Catalogue::Tables& there) {
  std::vector<CarriedTable> carried;
  for (const TableShape& shape : shapes) {
    const auto record = known.find(shape.name);
    const auto found = there.find(shape_there(shape).name);
    const TableShape* const existing = found == there.end() ? nullptr : &found->second;
    const bool follows = record != known.end() && !record->second.constraints_done;
    if (existing != nullptr && !follows) continue;
    carried.push_back(carried_table(shape_there(shape), existing, follows && record->second.created));
    carried.back().table = shape.name;
  }
  return check_called_code(source->connection, destination->connection, carried, options.accepted_code);
}

// In one snapshot: what is checked is what is made.
base::Result<void> Instantiation::State::look_at_definitions() {
  std::vector<TableName> wanted;
  for (const TableName& name : options.tables) wanted.push_back(options.names.of(name));
  THALWEG_ASSIGN(const Catalogue::Tables there, destination->catalogue.tables(wanted));
  pg::Connection& connection = source->connection;
  THALWEG_TRY(connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"));
  auto looked = [&]() -> base::Result<void> {
    THALWEG_TRY(read_source());
    for (const TableShape& shape : shapes) {
      const auto found = there.find(shape_there(shape).name);
      THALWEG_TRY(check_destination(shape, found == there.end() ? nullptr : &found->second));
    }
    return check_code(there);
  }();
  if (!connection.broken()) {
    if (auto ended = connection.script("ROLLBACK"); !ended && looked) return std::unexpected(ended.error());
  }
  return looked;
}

std::vector<const TableShape*> Instantiation::State::missing_tables() const {
  std::vector<const TableShape*> missing;
  for (const TableShape& shape : shapes) {
    if (to_create.contains(shape.name)) missing.push_back(&shape_there(shape));
  }
  return missing;
}

// Before rows are deleted that the copy could not bring again.
base::Result<void> Instantiation::State::check_row_security() {
  std::vector<TableName> read;
  std::vector<TableName> written;
  for (const TableShape& shape : shapes) {
    const auto record = known.find(shape.name);
    if (record != known.end() && record->second.finished) continue;
    written.push_back(shape_there(shape).name);
    if (record == known.end() ? options.initial_copy : is_copied(record->second)) read.push_back(shape.name);
  }
  THALWEG_TRY(instantiation::check_row_security(source->connection, read, base::ErrorSide::source));
  return instantiation::check_row_security(destination->connection, written, base::ErrorSide::destination);
}

// Apply and copy need these rights on every table, new or old.
base::Result<void> Instantiation::State::check_privileges() {
  std::vector<std::string> tables;
  for (const TableShape& shape : shapes) tables.push_back(shape_there(shape).name.quoted());
  THALWEG_ASSIGN(const pg::Rows lacking,
                 destination->connection.query("SELECT p, t FROM unnest($1::text[]) WITH ORDINALITY AS n(t, place), "
                                               "unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p "
                                               "WHERE NOT has_table_privilege(t, p) ORDER BY place LIMIT 1",
                                               {pg::text_array(tables)}));
  if (lacking.size() == 0) return {};
  return base::fail(
      ErrorCode::insufficient_privilege,
      fmt::format("The destination's user has no {} privilege on {}.", lacking.text(0, 0), lacking.text(0, 1)),
      base::ErrorSide::destination);
}

base::Result<void> Instantiation::State::rehearse() {
  pg::Connection& connection = destination->connection;
  auto rehearsed = [&]() -> base::Result<void> {
    THALWEG_TRY(connection.script("BEGIN; SET LOCAL session_replication_role = replica"));
    THALWEG_TRY(bookkeeping->create_tables());
    THALWEG_TRY(DestinationSchema(connection, destination->catalogue).rehearse(types, missing_tables()));
    return check_privileges();
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
    counters.copied_at = table.copied_from.value;
    counters.errors_discarded = table.errors_discarded;
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

}  // namespace thalweg::instantiation
