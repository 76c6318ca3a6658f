#include "metadata/table_metadata.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "metadata/destination_version.h"
#include "metadata/key_hash.h"

namespace thalweg::metadata {

namespace {

using base::ErrorCode;

std::unexpected<base::Error> differs(const TableMetadata& table, std::string message) {
  auto failure = base::fail(ErrorCode::destination_table_differs, std::move(message));
  failure.error().table = table.quoted_name;
  return failure;
}

// "1 2 3" (int2vector) or "{1,2,3}" (int2[]).
std::vector<int16_t> parse_numbers(std::string_view text) {
  std::vector<int16_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int16_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec == std::errc{}) numbers.push_back(number);
    at = parsed.ec == std::errc{} ? parsed.ptr : at + 1;
  }
  return numbers;
}

std::optional<std::vector<uint16_t>> source_columns(const TableMetadata& table, std::span<const int16_t> attributes) {
  std::vector<uint16_t> columns;
  for (const int16_t attribute : attributes) {
    const auto found = std::ranges::find(table.columns, attribute, &Column::attribute);
    if (attribute <= 0 || found == table.columns.end()) return std::nullopt;
    columns.push_back(static_cast<uint16_t>(found - table.columns.begin()));
  }
  return columns;
}

// Not float (-0 = 0), numeric (1.0 = 1.00), char(n) (trailing blanks), interval (30 days = 1 month), jsonb and other
// types that have several forms of equal values.
bool has_exact_equality(base::TypeId type) {
  constexpr std::array<uint32_t, 14> kTypes{16,     // boolean
                                            17,     // bytea
                                            18,     // "char"
                                            19,     // name
                                            20,     // bigint
                                            21,     // smallint
                                            23,     // integer
                                            25,     // text
                                            26,     // oid
                                            1043,   // character varying
                                            1082,   // date
                                            1114,   // timestamp
                                            1184,   // timestamptz
                                            2950};  // uuid
  return std::ranges::find(kTypes, type.value) != kTypes.end();
}

// Built-in types have their oid everywhere; of others the source tells no name.
std::string name_of_source_type(pg::Connection& connection, TypeCatalog& types, base::TypeId type) {
  if (type.value >= kFirstDatabaseOid) return "a type of its own database";
  const auto known = types.find(connection, type);
  return known ? (*known)->name : "a type that the destination's release does not have";
}

base::Result<void> check_type(pg::Connection& connection, TypeCatalog& types, const TableMetadata& table,
                              const Column& column) {
  const bool source_is_builtin = column.source_type.value < kFirstDatabaseOid;
  const bool fits =
      source_is_builtin ? column.type->value_type == column.source_type : column.type->oid.value >= kFirstDatabaseOid;
  // A domain of the source over a built-in type may stand as that type here; its values are the base type's.
  if (fits || (!source_is_builtin && column.type->kind == TypeKind::base)) return {};
  return differs(table, fmt::format("column {} of {} has type {} at the destination; at the source it has {}",
                                    column.quoted_name, table.quoted_name, column.type->name,
                                    name_of_source_type(connection, types, column.source_type)));
}

base::Result<void> load_columns(pg::Connection& connection, TypeCatalog& types, TableMetadata& table) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT attname, attnum, atttypid, attgenerated <> '', attidentity = 'a', "
                                  "coalesce(collisdeterministic, true) FROM pg_catalog.pg_attribute "
                                  "LEFT JOIN pg_catalog.pg_collation c ON c.oid = attcollation "
                                  "WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped",
                                  {std::to_string(table.destination.value)}));
  for (const auto& source : table.source.columns) {
    size_t row = 0;
    while (row < rows.size() && rows.text(row, 0) != source.name) ++row;
    if (row == rows.size()) {
      return differs(table, fmt::format("{} has no column {} at the destination", table.quoted_name,
                                        pg::quote_identifier(source.name)));
    }
    Column column;
    column.name = source.name;
    column.quoted_name = pg::quote_identifier(source.name);
    column.source_type = source.type;
    column.attribute = static_cast<int16_t>(rows.integer(row, 1));
    column.source_key = source.is_key;
    column.written = !rows.boolean(row, 3);
    column.identity_always = rows.boolean(row, 4);
    auto type = types.find(connection, {static_cast<uint32_t>(rows.integer(row, 2))});
    if (!type && type.error().code == ErrorCode::destination_table_differs) {
      return differs(table, fmt::format("column {} of {} cannot be read at the destination: {}", column.quoted_name,
                                        table.quoted_name, type.error().message));
    }
    THALWEG_ASSIGN(column.type, std::move(type));
    column.in_sets = column.type->array_type.value != 0 && column.type->kind != TypeKind::array &&
                     column.type->kind != TypeKind::composite && column.type->has_binary_input;
    column.exact_equality = rows.boolean(row, 5) && has_exact_equality(column.type->value_type);
    if (rows.boolean(row, 5)) {
      const bool is_enumeration = column.type->kind == TypeKind::enumeration;
      column.key_form = is_enumeration ? KeyForm::bytes : key_form(column.type->value_type.value);
    }
    THALWEG_TRY(check_type(connection, types, table, column));
    table.columns.push_back(std::move(column));
  }
  return {};
}

// A value may lose something where it is stored: the old value of the source is compared as it would have been stored.
base::Result<void> load_modifiers(pg::Connection& connection, TableMetadata& table) {
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query("SELECT attnum, (WITH RECURSIVE base AS (SELECT atttypid AS type, atttypmod AS modifier UNION "
                       "ALL SELECT t.typbasetype, t.typtypmod FROM base JOIN pg_catalog.pg_type t ON t.oid = base.type "
                       "WHERE t.typtype = 'd') SELECT pg_catalog.format_type(type, modifier) FROM base "
                       "WHERE modifier >= 0 LIMIT 1) FROM pg_catalog.pg_attribute "
                       "WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped",
                       {std::to_string(table.destination.value)}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto column =
        std::ranges::find(table.columns, static_cast<int16_t>(rows.integer(row, 0)), &Column::attribute);
    if (column != table.columns.end() && !rows.is_null(row, 1)) column->stored_as = rows.text(row, 1);
  }
  return {};
}

// The destination's primary key, else a unique index over NOT NULL columns, whose columns are in the source's replica
// identity; else that identity itself.
void choose_identity(TableMetadata& table, const pg::Rows& indexes) {
  for (const bool primary : {true, false}) {
    for (size_t row = 0; row < indexes.size() && table.identity.empty(); ++row) {
      if (indexes.boolean(row, 1) != primary || !indexes.boolean(row, 2) || !indexes.boolean(row, 4) ||
          !indexes.boolean(row, 7))
        continue;
      const auto columns = source_columns(table, parse_numbers(indexes.text(row, 3)));
      if (!columns || columns->empty()) continue;
      if (!std::ranges::all_of(*columns, [&](uint16_t c) { return table.columns[c].source_key; })) continue;
      table.identity = *columns;
      table.identity_index = static_cast<uint32_t>(indexes.integer(row, 0));
    }
  }
  if (!table.identity.empty() || table.source.replica_identity == 'f') return;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].source_key) table.identity.push_back(column);
  }
}

// The columns that decide whether two rows collide in an index, as far as they come from the source as they are.
std::optional<UniqueKey> unique_key(const TableMetadata& table, const pg::Rows& indexes, size_t row) {
  UniqueKey key{.index = static_cast<uint32_t>(indexes.integer(row, 0)),
                .columns = {},
                .nulls_collide = indexes.boolean(row, 5),
                .is_referenced = indexes.boolean(row, 6),
                .is_exact = !indexes.boolean(row, 8),
                .is_whole = indexes.boolean(row, 2) && indexes.boolean(row, 7)};
  const bool is_exclusion = indexes.boolean(row, 9);  // its operators need not be equality
  bool has_unknown = is_exclusion;
  for (const int16_t attribute : is_exclusion ? std::vector<int16_t>{} : parse_numbers(indexes.text(row, 11))) {
    const auto found = std::ranges::find(table.columns, attribute, &Column::attribute);
    if (attribute > 0 && found != table.columns.end() && found->written) {
      key.columns.push_back(static_cast<uint16_t>(found - table.columns.begin()));
      key.is_exact = key.is_exact && tells_apart(found->key_form);
    } else {
      key.is_exact = key.is_whole = false;
      has_unknown = has_unknown || attribute == 0 || indexes.boolean(row, 10);
    }
  }
  // Nothing of it comes from the source: it collides, if at all, by values that the destination makes.
  if (key.columns.empty() && !has_unknown) return std::nullopt;
  return key;
}

uint64_t hash_of_table(base::RelationId table) { return mix_hash(0x7461626C65ULL, table.value); }

base::Result<void> load_keys(pg::Connection& connection, TableMetadata& table) {
  const bool knows_nulls_not_distinct = connection.server_version() >= 150000;
  const std::string oid = std::to_string(table.destination.value);
  // An index that is being built concurrently already refuses rows once it is ready.
  THALWEG_ASSIGN(
      const pg::Rows indexes,
      connection.query(
          fmt::format(
              "SELECT i.indexrelid, i.indisprimary, i.indimmediate, "
              "(SELECT string_agg(k.attnum::text, ' ' ORDER BY k.place) FROM "
              "unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) WHERE k.place <= i.indnkeyatts), "
              "NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid "
              "AND a.attnum = ANY (i.indkey::int2[]) AND NOT a.attnotnull), {}, "
              "EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' "
              "AND f.conindid = i.indexrelid AND f.confrelid = i.indrelid), "
              "i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL, "
              "i.indpred IS NOT NULL OR i.indexprs IS NOT NULL OR i.indisexclusion "
              "OR EXISTS (SELECT FROM pg_catalog.pg_collation c WHERE c.oid = ANY (i.indcollation::oid[]) "
              "AND NOT c.collisdeterministic), i.indisexclusion, "
              "EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid "
              "AND a.attnum = ANY (i.indkey::int2[]) AND a.attgenerated <> ''), "
              // Another equality than the type's: a collation that is not bytewise, an operator class of its own.
              "(SELECT string_agg(CASE WHEN c.collisdeterministic IS FALSE OR NOT (o.opcdefault OR "
              "o.opcname ~ '_pattern_ops$') THEN '0' ELSE k.attnum::text END, ' ' ORDER BY k.place) FROM "
              "unnest(i.indkey::int2[], i.indcollation::oid[], i.indclass::oid[]) WITH ORDINALITY "
              "AS k(attnum, coll, class, place) LEFT JOIN pg_catalog.pg_collation c ON c.oid = k.coll "
              "JOIN pg_catalog.pg_opclass o ON o.oid = k.class) "
              "FROM pg_catalog.pg_index i WHERE i.indrelid = $1::oid AND (i.indisunique OR i.indisexclusion) "
              "AND i.indisready ORDER BY i.indisprimary DESC, i.indexrelid",
              knows_nulls_not_distinct ? "i.indnullsnotdistinct" : "false"),
          {oid}));
  for (size_t row = 0; row < indexes.size(); ++row) {
    table.is_referenced = table.is_referenced || indexes.boolean(row, 6);
    if (auto key = unique_key(table, indexes, row)) table.unique_keys.push_back(std::move(*key));
  }
  choose_identity(table, indexes);
  table.identity_is_possible =
      table.identity_index != 0 && std::ranges::none_of(table.unique_keys, [&](const auto& key) {
        return key.index == table.identity_index && key.is_exact;
      });

  THALWEG_ASSIGN(const pg::Rows foreign,
                 connection.query("SELECT f.conindid, f.conkey::text, f.confkey::text, i.indkey::text, f.confrelid "
                                  "FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_index i "
                                  "ON i.indexrelid = f.conindid WHERE f.contype = 'f' AND f.conrelid = $1::oid",
                                  {oid}));
  for (size_t row = 0; row < foreign.size(); ++row) {
    const uint64_t parent_hash = hash_of_table({static_cast<uint32_t>(foreign.integer(row, 4))});
    if (std::ranges::find(table.parent_hashes, parent_hash) == table.parent_hashes.end()) {
      table.parent_hashes.push_back(parent_hash);
    }
    const auto child = parse_numbers(foreign.text(row, 1));
    const auto parent = parse_numbers(foreign.text(row, 2));
    std::vector<int16_t> ordered;  // the child's columns in the order of the parent's index
    for (const int16_t attribute : parse_numbers(foreign.text(row, 3))) {
      const auto place = std::ranges::find(parent, attribute);
      if (place != parent.end()) ordered.push_back(child[static_cast<size_t>(place - parent.begin())]);
    }
    const auto columns = source_columns(table, ordered);
    if (!columns || ordered.size() != child.size()) continue;
    table.foreign_keys.push_back({.parent_index = static_cast<uint32_t>(foreign.integer(row, 0)), .columns = *columns});
  }
  return {};
}

}  // namespace

size_t heap_bytes(const TableMetadata& table) {
  size_t bytes = sizeof(TableMetadata) + table.quoted_name.capacity() + table.identity.capacity() * sizeof(uint16_t);
  for (const auto& column : table.source.columns) bytes += sizeof(column) + column.name.capacity();
  for (const auto& column : table.columns) {
    bytes += sizeof(column) + column.name.capacity() + column.quoted_name.capacity();
  }
  for (const auto& key : table.unique_keys) bytes += sizeof(key) + key.columns.capacity() * sizeof(uint16_t);
  for (const auto& key : table.foreign_keys) bytes += sizeof(key) + key.columns.capacity() * sizeof(uint16_t);
  bytes += table.parent_hashes.capacity() * sizeof(uint64_t) + table.compared.capacity() * sizeof(uint16_t);
  for (const auto* statements : {&table.statements, &table.error_statements}) {
    for (const auto& statement : *statements) {
      bytes += sizeof(statement) + statement.sql.capacity() + statement.types.capacity() * sizeof(base::TypeId) +
               statement.sources.capacity() * sizeof(BindSource);
      for (const auto& error : statement.errors) bytes += sizeof(error) + error.capacity();
    }
  }
  return bytes;
}

// The identity finds the row, and a table without one looks for a row that is like the old one in everything.
base::Result<void> TableLoader::choose_compared(pg::Connection& connection, TableMetadata& table) const {
  const auto chosen = std::ranges::find_if(compared_, [&](const ComparedTable& compared) {
    return compared.table.empty() || compared.table == table.quoted_name;
  });
  if (chosen == compared_.end()) return {};
  for (const std::string& name : chosen->columns) {
    if (std::ranges::find(table.columns, name, &Column::name) != table.columns.end()) continue;
    return differs(table, fmt::format("conflict_detection compares column {} of {}, which its changes do not have",
                                      pg::quote_identifier(name), table.quoted_name));
  }
  if (table.keyless()) return {};
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    const Column& candidate = table.columns[column];
    const bool is_chosen = chosen->columns.empty() || has(chosen->columns, candidate.name);
    const bool finds_row = std::ranges::find(table.identity, column) != table.identity.end();
    if (is_chosen && candidate.written && !finds_row && !has(chosen->except, candidate.name)) {
      table.compared.push_back(column);
    }
  }
  if (table.compared.empty()) return {};
  return load_modifiers(connection, table);
}

base::Result<std::unique_ptr<const TableMetadata>> TableLoader::load(pg::Connection& connection,
                                                                     const SourceTable& source) {
  auto table = std::make_unique<TableMetadata>();
  table->generation = generations_.fetch_add(1, std::memory_order_relaxed) + 1;
  table->source_id = source.id;
  table->source = source.description;
  table->quoted_name = source.quoted_name;
  table->copied_from = source.copied_from;
  table->copied_to = source.copied_to;
  // A change of the destination after this look is noticed later; before it, it is in what follows.
  THALWEG_ASSIGN(const pg::Rows found,
                 connection.query(fmt::format("SELECT c.oid, c.relkind, {}, {} FROM pg_catalog.pg_class c JOIN "
                                              "pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                                              "WHERE n.nspname = $1 AND c.relname = $2",
                                              destination_version_sql(), has_triggers_sql()),
                                  {table->source.schema_name, table->source.table_name}));
  if (found.size() == 0) {
    auto failure =
        base::fail(ErrorCode::missing_table, fmt::format("{} does not exist at the destination", table->quoted_name),
                   base::ErrorSide::destination);
    failure.error().table = table->quoted_name;
    return failure;
  }
  const char kind = found.text(0, 1).front();
  if (kind != 'r' && kind != 'p') {
    return differs(*table, fmt::format("{} is not a table at the destination", table->quoted_name));
  }
  table->destination = {static_cast<uint32_t>(found.integer(0, 0))};
  table->destination_version = found.integer(0, 2);
  table->is_partitioned = kind == 'p';
  table->has_triggers = found.boolean(0, 3);
  table->table_hash = hash_of_table(table->destination);
  THALWEG_TRY(load_columns(connection, types_, *table));
  THALWEG_TRY(load_keys(connection, *table));
  THALWEG_TRY(choose_compared(connection, *table));
  THALWEG_ASSIGN(std::vector<HandlerStatement> statements, statements_of(*table, handlers_));
  for (HandlerStatement& statement : statements) {
    const bool is_of_errors = statement.time == HandlerTime::error;
    (is_of_errors ? table->error_statements : table->statements).push_back(std::move(statement));
  }
  return std::unique_ptr<const TableMetadata>(std::move(table));
}

}  // namespace thalweg::metadata
