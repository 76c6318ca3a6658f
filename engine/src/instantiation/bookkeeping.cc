#include "instantiation/bookkeeping.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "pg/bookkeeping_trust.h"

namespace thalweg::instantiation {
namespace {

using nlohmann::json;

constexpr const char* kCreateTables = R"sql(
DO $do$
BEGIN
  -- One owner for all of it, whoever's stream comes first: the others are members of that role.
  EXECUTE coalesce((SELECT format('SET LOCAL ROLE %I', pg_get_userbyid(nspowner)) FROM pg_catalog.pg_namespace
                    WHERE nspname = 'thalweg' AND pg_has_role(nspowner, 'MEMBER')), 'SET LOCAL ROLE NONE');
END
$do$;
CREATE TABLE IF NOT EXISTS thalweg.instantiation (
  stream_id text PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  warnings text[] NOT NULL DEFAULT '{}'
);
CREATE TABLE IF NOT EXISTS thalweg.stream_table (
  stream_id text NOT NULL,
  schema_name text NOT NULL,
  table_name text NOT NULL,
  created boolean NOT NULL,
  planned boolean NOT NULL DEFAULT false,
  rows_estimated bigint NOT NULL DEFAULT 0,
  copied_from pg_lsn,
  copied_to pg_lsn,
  seconds double precision NOT NULL DEFAULT 0,
  constraints_done boolean NOT NULL DEFAULT false,
  identity jsonb,
  trouble jsonb,
  stopped boolean NOT NULL DEFAULT false,
  copy_again boolean NOT NULL DEFAULT false,
  range_key jsonb,
  truncations jsonb NOT NULL DEFAULT '[]',
  partitions jsonb NOT NULL DEFAULT '{}',
  errors_discarded bigint NOT NULL DEFAULT 0,
  destination_schema text,
  destination_table text,
  PRIMARY KEY (stream_id, schema_name, table_name)
);
CREATE TABLE IF NOT EXISTS thalweg.copy_range (
  stream_id text NOT NULL,
  schema_name text NOT NULL,
  table_name text NOT NULL,
  range integer NOT NULL,
  lower_key jsonb,
  upper_key jsonb,
  snapshot_lsn pg_lsn,
  copied_rows bigint NOT NULL DEFAULT 0,
  copied_bytes bigint NOT NULL DEFAULT 0,
  copied_at timestamptz,
  PRIMARY KEY (stream_id, schema_name, table_name, range)
);
SET LOCAL ROLE NONE;
)sql";

constexpr const char* kUpgrade = R"sql(
ALTER TABLE thalweg.stream_table ADD COLUMN IF NOT EXISTS identity jsonb,
  ADD COLUMN IF NOT EXISTS trouble jsonb, ADD COLUMN IF NOT EXISTS stopped boolean NOT NULL DEFAULT false,
  ADD COLUMN IF NOT EXISTS copy_again boolean NOT NULL DEFAULT false, ADD COLUMN IF NOT EXISTS range_key jsonb,
  ADD COLUMN IF NOT EXISTS truncations jsonb NOT NULL DEFAULT '[]',
  ADD COLUMN IF NOT EXISTS partitions jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN IF NOT EXISTS errors_discarded bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS destination_schema text, ADD COLUMN IF NOT EXISTS destination_table text
)sql";

std::string to_json(const TableTrouble& trouble) {
  return json{{"kind", name_of(trouble.kind)}, {"reason", trouble.reason}, {"since", trouble.since.value}}.dump();
}

std::optional<TableTrouble> trouble_from_json(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  const auto kind = trouble_kind(document.value("kind", ""));
  if (!kind) return std::nullopt;
  return TableTrouble{
      .kind = *kind, .reason = document.value("reason", ""), .since = {document.value("since", int64_t{0})}, .now = {}};
}

// [[xid, "commit LSN"], ...]
std::vector<Truncation> truncations_from_json(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  std::vector<Truncation> truncations;
  if (!document.is_array()) return truncations;
  for (const json& entry : document) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_unsigned() || !entry[1].is_string()) continue;
    truncations.push_back(
        {.xid = entry[0], .commit_lsn = base::parse_lsn(entry[1].get<std::string>()).value_or(base::Lsn{})});
  }
  return truncations;
}

// The key of a note. One that was truncated may have been written to, too.
constexpr std::string_view kTruncated = "/truncated";

std::string key_of(const WrittenLeaf& leaf) {
  return fmt::format("{}{}", leaf.relation, leaf.truncated ? kTruncated : "");
}

// {"key": ["schema", "name", "commit LSN", "xid"], ...}
std::vector<WrittenLeaf> written_from_json(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  std::vector<WrittenLeaf> written;
  if (!document.is_object()) return written;
  for (const auto& [leaf, entry] : document.items()) {
    uint32_t relation = 0;
    const auto [end, error] = std::from_chars(leaf.data(), leaf.data() + leaf.size(), relation);
    const bool is_entry = entry.is_array() && entry.size() == 4 &&
                          std::ranges::all_of(entry, [](const json& part) { return part.is_string(); });
    if (error != std::errc{} || !is_entry) continue;
    written.push_back({.relation = relation,
                       .name = {entry[0].get<std::string>(), entry[1].get<std::string>()},
                       .commit_lsn = base::parse_lsn(entry[2].get<std::string>()).value_or(base::Lsn{}),
                       .xid = static_cast<uint32_t>(std::strtoul(entry[3].get<std::string>().c_str(), nullptr, 10)),
                       .truncated = leaf.ends_with(kTruncated)});
  }
  return written;
}

std::optional<KeyValues> key_values(const pg::Rows& rows, size_t row, size_t column) {
  if (rows.is_null(row, column)) return std::nullopt;
  json value = json::parse(rows.text(row, column), nullptr, false);
  if (!value.is_array()) return std::nullopt;
  KeyValues values;
  for (const json& item : value) values.push_back(item.is_string() ? item.get<std::string>() : "");
  return values;
}

base::Lsn lsn_at(const pg::Rows& rows, size_t row, size_t column) {
  return base::parse_lsn(rows.text(row, column)).value_or(base::Lsn{});
}

base::Result<void> done(base::Result<pg::Rows> rows) {
  if (!rows) return std::unexpected(rows.error());
  return {};
}

}  // namespace

base::Result<bool> Bookkeeping::exists() { return pg::trusted_bookkeeping(connection_, {"copy_range"}); }

base::Result<void> Bookkeeping::create_tables() {
  THALWEG_ASSIGN(bool there, exists());
  if (there) return {};
  THALWEG_TRY(pg::lock_bookkeeping(connection_));
  THALWEG_TRY(pg::create_bookkeeping_schema(connection_));
  THALWEG_TRY(connection_.script(kCreateTables));
  THALWEG_TRY(exists());  // somebody else may have made the schema: the caller's transaction ends then
  return {};
}

base::Result<void> Bookkeeping::upgrade() {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection_.query("SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = "
                                   "'thalweg.stream_table'::regclass AND attname IN ('truncations', 'partitions', "
                                   "'errors_discarded', 'destination_table') HAVING count(*) = 4)"));
  if (rows.boolean(0, 0)) return {};
  return done(connection_.script(kUpgrade));
}

base::Result<void> Bookkeeping::begin() {
  return done(
      connection_.query("INSERT INTO thalweg.instantiation (stream_id) VALUES ($1) ON CONFLICT (stream_id) DO UPDATE "
                        "SET finished_at = NULL",
                        {stream_id_}));
}

base::Result<std::optional<InstantiationRecord>> Bookkeeping::read() {
  THALWEG_ASSIGN(pg::Rows rows, connection_.query("SELECT (extract(epoch FROM started_at) * 1000000)::bigint, "
                                                  "(extract(epoch FROM finished_at) * 1000000)::bigint, "
                                                  "to_jsonb(warnings) FROM thalweg.instantiation WHERE stream_id = $1",
                                                  {stream_id_}));
  if (rows.size() == 0) return std::nullopt;
  InstantiationRecord record;
  record.started_at = {rows.integer(0, 0)};
  if (!rows.is_null(0, 1)) record.finished_at = base::UnixMicros{rows.integer(0, 1)};
  record.warnings = key_values(rows, 0, 2).value_or(KeyValues{});
  return record;
}

base::Result<std::vector<TableRecord>> Bookkeeping::tables() {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT schema_name, table_name, created, planned, copied_from, copied_to, rows_estimated, seconds, "
          "constraints_done, identity, trouble, stopped, copy_again, range_key, truncations, errors_discarded, "
          "coalesce(destination_schema, schema_name), coalesce(destination_table, table_name), partitions FROM "
          "thalweg.stream_table WHERE stream_id = $1 ORDER BY 1, 2",
          {stream_id_}));
  std::vector<TableRecord> records;
  for (size_t i = 0; i < rows.size(); ++i) {
    records.push_back({.table = {std::string(rows.text(i, 0)), std::string(rows.text(i, 1))},
                       .there = {std::string(rows.text(i, 16)), std::string(rows.text(i, 17))},
                       .created = rows.boolean(i, 2),
                       .planned = rows.boolean(i, 3),
                       .range_key = key_values(rows, i, 13).value_or(KeyColumns{}),
                       .finished = !rows.is_null(i, 5),
                       .constraints_done = rows.boolean(i, 8),
                       .copied_from = lsn_at(rows, i, 4),
                       .copied_to = lsn_at(rows, i, 5),
                       .rows_estimated = rows.integer(i, 6),
                       .seconds = std::stod(std::string(rows.text(i, 7))),
                       .identity = identity_from_json(rows.text(i, 9)),
                       .trouble = trouble_from_json(rows.text(i, 10)),
                       .stopped = rows.boolean(i, 11),
                       .copy_again = rows.boolean(i, 12),
                       .truncations = truncations_from_json(rows.text(i, 14)),
                       .written = written_from_json(rows.text(i, 18)),
                       .errors_discarded = rows.integer(i, 15)});
  }
  return records;
}

base::Result<std::vector<RangeRecord>> Bookkeeping::ranges() {
  THALWEG_ASSIGN(pg::Rows rows, connection_.query("SELECT schema_name, table_name, range, lower_key, upper_key, "
                                                  "copied_at IS NOT NULL, copied_rows, copied_bytes "
                                                  "FROM thalweg.copy_range WHERE stream_id = $1 ORDER BY 1, 2, 3",
                                                  {stream_id_}));
  std::vector<RangeRecord> records;
  for (size_t i = 0; i < rows.size(); ++i) {
    records.push_back({.table = {std::string(rows.text(i, 0)), std::string(rows.text(i, 1))},
                       .number = static_cast<int>(rows.integer(i, 2)),
                       .range = {key_values(rows, i, 3), key_values(rows, i, 4)},
                       .copied = rows.boolean(i, 5),
                       .rows = rows.integer(i, 6),
                       .bytes = rows.integer(i, 7)});
  }
  return records;
}

base::Result<base::Lsn> Bookkeeping::youngest_snapshot() {
  THALWEG_ASSIGN(const bool there, exists());
  if (!there) return base::Lsn{};
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection_.query("SELECT greatest((SELECT max(copied_to) FROM thalweg.stream_table WHERE stream_id = "
                                   "$1), (SELECT max(snapshot_lsn) FROM thalweg.copy_range WHERE stream_id = $1))",
                                   {stream_id_}));
  return lsn_at(rows, 0, 0);
}

base::Result<void> Bookkeeping::add_tables(const std::vector<NewTable>& tables) {
  json added = json::array();
  for (const NewTable& new_table : tables) {
    added.push_back({{"schema", new_table.table.schema},
                     {"name", new_table.table.name},
                     {"there_schema", new_table.there.schema},
                     {"there_name", new_table.there.name},
                     {"created", new_table.created},
                     {"identity", instantiation::to_json(new_table.identity)}});
  }
  return done(connection_.query(
      "INSERT INTO thalweg.stream_table (stream_id, schema_name, table_name, created, identity, destination_schema, "
      "destination_table) SELECT $1, t.schema, t.name, t.created, t.identity::jsonb, "
      "CASE WHEN (t.there_schema, t.there_name) <> (t.schema, t.name) THEN t.there_schema END, "
      "CASE WHEN (t.there_schema, t.there_name) <> (t.schema, t.name) THEN t.there_name END "
      "FROM jsonb_to_recordset($2::jsonb) AS t(schema text, name text, created boolean, identity text, "
      "there_schema text, there_name text)",
      {stream_id_, added.dump()}));
}

base::Result<void> Bookkeeping::update(const TableName& table, std::string_view set, std::string_view value) {
  return done(connection_.query(fmt::format("UPDATE thalweg.stream_table SET {} WHERE stream_id = $1 AND schema_name = "
                                            "$2 AND table_name = $3",
                                            set),
                                {stream_id_, table.schema, table.name, value}));
}

base::Result<void> Bookkeeping::set_identity(const TableName& table, const TableIdentity& identity) {
  return done(connection_.query(
      "UPDATE thalweg.stream_table SET identity = $4::jsonb WHERE stream_id = $1 AND schema_name = $2 AND table_name = "
      "$3 AND NOT copy_again AND (identity IS NULL OR identity->'relation' IN ('0', $5::jsonb))",
      {stream_id_, table.schema, table.name, instantiation::to_json(identity), std::to_string(identity.relation)}));
}

base::Result<void> Bookkeeping::set_trouble(const TableName& table, const TableIdentity& was,
                                            const TableTrouble& trouble, bool stopped) {
  return done(connection_.query(
      "UPDATE thalweg.stream_table SET trouble = $4::jsonb, stopped = $5::boolean WHERE stream_id = $1 AND schema_name "
      "= $2 AND table_name = $3 AND NOT copy_again AND (identity IS NULL OR identity = $6::jsonb) AND ($5::boolean OR "
      "NOT stopped)",
      {stream_id_, table.schema, table.name, to_json(trouble), stopped ? "true" : "false",
       instantiation::to_json(was)}));
}

base::Result<void> Bookkeeping::forget_truncations(base::Lsn below) {
  return done(connection_.query(
      "UPDATE thalweg.stream_table SET truncations = (SELECT coalesce(jsonb_agg(one), '[]') FROM "
      "jsonb_array_elements(truncations) one WHERE (one->>1)::pg_lsn >= $2::pg_lsn) WHERE stream_id = $1 AND EXISTS "
      "(SELECT FROM jsonb_array_elements(truncations) one WHERE (one->>1)::pg_lsn < $2::pg_lsn)",
      {stream_id_, base::to_string(below)}));
}

base::Result<void> Bookkeeping::note_partitions(const TableName& table, const std::vector<WrittenLeaf>& leaves) {
  json noted = json::object();
  for (const WrittenLeaf& leaf : leaves) {
    noted[key_of(leaf)] = {leaf.name.schema, leaf.name.name, base::to_string(leaf.commit_lsn),
                           std::to_string(leaf.xid)};
  }
  return update(table, "partitions = partitions || $4::jsonb", noted.dump());
}

base::Result<void> Bookkeeping::forget_partitions(const TableName& table, const std::vector<WrittenLeaf>& leaves) {
  json noted = json::object();
  for (const WrittenLeaf& leaf : leaves) noted[key_of(leaf)] = base::to_string(leaf.commit_lsn);
  return update(table,
                "partitions = (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(partitions) WHERE "
                "value->>2 IS DISTINCT FROM $4::jsonb->>key)",
                noted.dump());
}

base::Result<void> Bookkeeping::accept(const TableName& table, const TableIdentity& identity, base::Lsn applied) {
  return update(table,
                fmt::format("identity = $4::jsonb, trouble = NULL, partitions = (SELECT coalesce(jsonb_object_agg(key, "
                            "value), '{{}}') FROM jsonb_each(partitions) WHERE (value->>2)::pg_lsn >= '{}')",
                            base::to_string(applied)),
                instantiation::to_json(identity));
}

base::Result<void> Bookkeeping::rename_table(const TableRecord& record, const TableName& to, const TableName& there) {
  const TableName& table = record.table;
  for (const char* in : {"thalweg.copy_range", "thalweg.stream_table"}) {
    THALWEG_TRY(connection_.query(fmt::format("UPDATE {} SET schema_name = $4, table_name = $5 WHERE stream_id = $1 "
                                              "AND schema_name = $2 AND table_name = $3",
                                              in),
                                  {stream_id_, table.schema, table.name, to.schema, to.name}));
  }
  const auto other_than = [&](const std::string& name) {
    return to == there ? std::string("NULL") : connection_.quote_literal(name);
  };
  THALWEG_TRY(connection_.query(
      fmt::format("UPDATE thalweg.stream_table SET destination_schema = {}, destination_table = {} WHERE stream_id = "
                  "$1 AND schema_name = $2 AND table_name = $3",
                  other_than(there.schema), other_than(there.name)),
      {stream_id_, to.schema, to.name}));
  if (record.there == there) return {};
  // Parked transactions are found by their tables' names: the old name may be given to another table.
  THALWEG_ASSIGN(const bool may_be_parked, pg::trusted_bookkeeping(connection_, {"error_queue"}));
  if (!may_be_parked) return {};
  return done(
      connection_.query("UPDATE thalweg.error_queue SET tables = array_replace(tables, $2::text, $3::text) "
                        "WHERE stream_id = $1 AND $2::text = ANY (tables)",
                        {stream_id_, record.there.quoted(), there.quoted()}));
}

base::Result<void> Bookkeeping::ask_for_copy(const TableName& table) {
  return done(connection_.query(
      "WITH forgotten AS (DELETE FROM thalweg.copy_range WHERE stream_id = $1 AND schema_name = $2 AND table_name = "
      "$3) "
      "UPDATE thalweg.stream_table SET copy_again = true, planned = false, copied_from = NULL, copied_to = NULL, "
      "constraints_done = false, trouble = NULL, stopped = false, seconds = 0, errors_discarded = 0 "
      "WHERE stream_id = $1 AND schema_name = $2 AND table_name = $3",
      {stream_id_, table.schema, table.name}));
}

base::Result<void> Bookkeeping::begin_copy_again(const TableName& table, bool created, const TableIdentity& identity) {
  return update(table, fmt::format("identity = $4::jsonb, partitions = '{{}}', created = created OR {}", created),
                instantiation::to_json(identity));
}

base::Result<void> Bookkeeping::remove_table(const TableName& table) {
  for (const char* from : {"thalweg.copy_range", "thalweg.stream_table"}) {
    THALWEG_TRY(connection_.query(
        fmt::format("DELETE FROM {} WHERE stream_id = $1 AND schema_name = $2 AND table_name = $3", from),
        {stream_id_, table.schema, table.name}));
  }
  return {};
}

base::Result<void> Bookkeeping::plan_tables(const std::vector<TablePlan>& plans) {
  // One statement, hence one transaction: a table's plan is there whole or not at all.
  json planned = json::array();
  for (const TablePlan& plan : plans) {
    json ranges = json::array();
    for (const KeyRange& range : plan.ranges) {
      ranges.push_back({{"lower", range.lower ? json(*range.lower) : json(nullptr)},
                        {"upper", range.upper ? json(*range.upper) : json(nullptr)}});
    }
    planned.push_back({{"schema", plan.table.schema},
                       {"name", plan.table.name},
                       {"rows", plan.rows_estimated},
                       {"key", plan.key},
                       {"ranges", std::move(ranges)}});
  }
  return done(connection_.query(
      "WITH plan AS (SELECT * FROM jsonb_to_recordset($2::jsonb) AS p(schema text, name text, rows bigint, key "
      "jsonb, ranges jsonb)), "
      "added AS (INSERT INTO thalweg.copy_range (stream_id, schema_name, table_name, range, lower_key, upper_key) "
      "  SELECT $1, schema, name, number, nullif(item->'lower', 'null'), nullif(item->'upper', 'null') FROM plan, "
      "  jsonb_array_elements(ranges) WITH ORDINALITY AS r(item, number)) "
      "UPDATE thalweg.stream_table t SET planned = true, rows_estimated = plan.rows, range_key = plan.key FROM "
      "plan "
      "WHERE (t.stream_id, t.schema_name, t.table_name) = ($1, plan.schema, plan.name)",
      {stream_id_, planned.dump()}));
}

base::Result<void> Bookkeeping::forget_plan(const TableName& table) {
  return done(connection_.query(
      "WITH forgotten AS (DELETE FROM thalweg.copy_range WHERE stream_id = $1 AND schema_name = $2 AND table_name = "
      "$3) "
      "UPDATE thalweg.stream_table SET planned = false, range_key = NULL, seconds = 0 "
      "WHERE stream_id = $1 AND schema_name = $2 AND table_name = $3",
      {stream_id_, table.schema, table.name}));
}

base::Result<void> Bookkeeping::range_copied(const TableName& table, int number, base::Lsn snapshot, int64_t rows,
                                             int64_t bytes) {
  THALWEG_ASSIGN(
      pg::Rows updated,
      connection_.query(
          "UPDATE thalweg.copy_range SET snapshot_lsn = $5::pg_lsn, copied_rows = $6::bigint, copied_bytes = "
          "$7::bigint, "
          "copied_at = now() WHERE stream_id = $1 AND schema_name = $2 AND table_name = $3 AND range = $4::integer "
          "AND copied_at IS NULL",
          {stream_id_, table.schema, table.name, std::to_string(number), base::to_string(snapshot),
           std::to_string(rows), std::to_string(bytes)}));
  if (updated.affected() == 1) return {};
  return base::fail(base::ErrorCode::stream_in_use,
                    fmt::format("Range {} of {} was copied by somebody else meanwhile", number, table.quoted()));
}

base::Result<void> Bookkeeping::finish_tables(const std::vector<FinishedTable>& tables, base::Lsn snapshot) {
  json finished = json::array();
  for (const FinishedTable& finished_table : tables)
    finished.push_back({{"schema", finished_table.table.schema},
                        {"name", finished_table.table.name},
                        {"seconds", finished_table.seconds}});
  return done(connection_.query(
      "WITH finished AS (SELECT f.schema, f.name, f.seconds, min(r.snapshot_lsn) AS oldest, max(r.snapshot_lsn) AS "
      "youngest FROM jsonb_to_recordset($2::jsonb) AS f(schema text, name text, seconds double precision) "
      "  LEFT JOIN thalweg.copy_range r ON (r.stream_id, r.schema_name, r.table_name) = ($1, f.schema, f.name) "
      "  GROUP BY 1, 2, 3) "
      "UPDATE thalweg.stream_table t SET copy_again = false, seconds = t.seconds + f.seconds, "
      "copied_from = coalesce(f.oldest, $3::pg_lsn), copied_to = coalesce(f.youngest, $3::pg_lsn) FROM finished f "
      "WHERE (t.stream_id, t.schema_name, t.table_name) = ($1, f.schema, f.name)",
      {stream_id_, finished.dump(), base::to_string(snapshot)}));
}

base::Result<void> Bookkeeping::constraints_done(const std::vector<TableName>& tables) {
  json complete = json::array();
  for (const TableName& table : tables) complete.push_back({{"schema", table.schema}, {"name", table.name}});
  return done(
      connection_.query("UPDATE thalweg.stream_table t SET constraints_done = true "
                        "FROM jsonb_to_recordset($2::jsonb) AS c(schema text, name text) "
                        "WHERE (t.stream_id, t.schema_name, t.table_name) = ($1, c.schema, c.name)",
                        {stream_id_, complete.dump()}));
}

base::Result<void> Bookkeeping::warn(const std::string& warning) {
  return done(connection_.query(
      "UPDATE thalweg.instantiation SET warnings = array_append(array_remove(warnings, $2), $2) WHERE stream_id = $1",
      {stream_id_, warning}));
}

base::Result<void> Bookkeeping::finish() {
  return done(connection_.query(
      "UPDATE thalweg.instantiation SET finished_at = coalesce(finished_at, now()) WHERE stream_id = $1",
      {stream_id_}));
}

base::Result<void> Bookkeeping::forget() {
  THALWEG_ASSIGN(bool there, exists());
  if (!there) return {};
  for (const char* table : {"thalweg.copy_range", "thalweg.stream_table", "thalweg.instantiation"}) {
    THALWEG_TRY(connection_.query(fmt::format("DELETE FROM {} WHERE stream_id = $1", table), {stream_id_}));
  }
  THALWEG_ASSIGN(pg::Rows others,
                 connection_.query(
                     "SELECT EXISTS (SELECT FROM thalweg.instantiation) OR EXISTS (SELECT FROM thalweg.stream_table)"));
  if (others.boolean(0, 0)) return {};
  return done(connection_.script("DROP TABLE thalweg.copy_range, thalweg.stream_table, thalweg.instantiation"));
}

}  // namespace thalweg::instantiation
