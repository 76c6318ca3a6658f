#include "mining/mined_table.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "mining/catalog_columns.h"
#include "mining/type_forms.h"
#include "pg/connection.h"

namespace thalweg::mining {

namespace {

using dictionary::Catalog;
using dictionary::Dictionary;
using dictionary::Row;

constexpr uint32_t kFirstNormalOid = 16384;

// The table whose values outside of their rows a TOAST table has: its name says it (create_toast_table of
// src/backend/catalog/toasting.c), and every statement that gives a table another TOAST table renames that.
std::optional<uint32_t> owner_of_toast(std::string_view name) {
  constexpr std::string_view kPrefix = "pg_toast_";
  uint32_t oid = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto [stopped, failed] = std::from_chars(name.data() + kPrefix.size(), end, oid);
  return failed == std::errc{} && stopped == end ? std::optional{oid} : std::nullopt;
}

std::optional<Row> row_of(const Dictionary& dictionary, Catalog catalog, uint32_t oid, base::Xid viewer) {
  std::optional<Row> row;
  dictionary.rows_with_key(catalog, 0, oid, viewer, [&](Row found) { row = std::move(found); });
  return row;
}

// The attnums that identify a row (RelationGetIndexAttrBitmap of src/backend/utils/cache/relcache.c, for the replica
// identity).
std::vector<int64_t> key_of(const Dictionary& dictionary, uint32_t table, char identity, base::Xid viewer) {
  std::vector<int64_t> key;
  if (identity != 'd' && identity != 'i') return key;
  constexpr size_t kByTable = 1;
  dictionary.rows_with_key(Catalog::pg_index, kByTable, table, viewer, [&](const Row& index) {
    const bool is_identity =
        identity == 'd' ? integer(index, index_at::primary) != 0 : integer(index, index_at::identity) != 0;
    if (!is_identity || integer(index, index_at::valid) == 0 || integer(index, index_at::immediate) == 0) return;
    std::string_view numbers = text(index, index_at::key);
    for (int64_t left = integer(index, index_at::key_columns); left > 0 && !numbers.empty(); --left) {
      const size_t end = std::min(numbers.find(' '), numbers.size());
      key.push_back(std::stoll(std::string{numbers.substr(0, end)}));
      numbers.remove_prefix(std::min(end + 1, numbers.size()));
    }
  });
  return key;
}

std::unexpected<base::Error> unknown_type(const Dictionary& dictionary, const MinedTable& table,
                                          const MinedColumn& column, base::Xid viewer) {
  const auto type = row_of(dictionary, Catalog::pg_type, column.stored.type, viewer);
  base::Error error =
      base::fail(base::ErrorCode::unsupported_table,
                 fmt::format("Values of column {} cannot be read from the WAL: their type, {}, is none of those that "
                             "are known, or is made of one that is not.",
                             column.name, type ? text(*type, type_at::name) : std::to_string(column.stored.type)))
          .error();
  error.table = pg::quote_table(table.description.schema_name, table.description.table_name);
  return std::unexpected(std::move(error));
}

bool same_column(const MinedColumn& one, const MinedColumn& other) {
  return one.name == other.name && one.is_sent == other.is_sent && one.stored.type == other.stored.type &&
         one.stored.length == other.stored.length && one.stored.align == other.stored.align &&
         one.stored.has_missing == other.stored.has_missing && one.stored.missing == other.stored.missing;
}

}  // namespace

bool same_description(const lcr::TableDescription& one, const lcr::TableDescription& other) {
  return one.schema_name == other.schema_name && one.table_name == other.table_name &&
         one.replica_identity == other.replica_identity &&
         std::ranges::equal(one.columns, other.columns, [](const auto& a, const auto& b) {
           return a.name == b.name && a.type == b.type && a.type_modifier == b.type_modifier && a.is_key == b.is_key;
         });
}

bool reads_as(const MinedTable& one, const MinedTable& other) {
  return one.oid == other.oid && one.toast == other.toast && one.is_identity_full == other.is_identity_full &&
         same_description(one.description, other.description) &&
         std::ranges::equal(one.columns, other.columns, same_column);
}

base::Result<std::shared_ptr<const MinedTable>> read_table(const Dictionary& dictionary, uint32_t oid, base::Xid viewer,
                                                           const IsWanted& is_wanted) {
  const auto relation = row_of(dictionary, Catalog::pg_class, oid, viewer);
  if (!relation || oid < kFirstNormalOid) return nullptr;
  const char kind = letter(*relation, class_at::kind);
  if ((kind != 'r' && kind != 't') || letter(*relation, class_at::persistence) != 'p') return nullptr;
  if (integer(*relation, class_at::rewrite) != 0) return nullptr;
  const auto schema =
      row_of(dictionary, Catalog::pg_namespace, static_cast<uint32_t>(integer(*relation, class_at::schema)), viewer);
  if (!schema) return nullptr;
  auto table = std::make_shared<MinedTable>();
  table->oid = oid;
  table->toast = static_cast<uint32_t>(integer(*relation, class_at::toast));
  const std::optional<uint32_t> owner =
      kind == 't' ? owner_of_toast(text(*relation, class_at::name)) : std::optional{oid};
  const Wanted wanted = owner ? is_wanted(*owner) : Wanted::everything;
  table->is_toast = kind == 't' && wanted != Wanted::nothing;
  table->is_wanted = kind == 'r' && wanted != Wanted::nothing;
  const char identity = letter(*relation, class_at::identity);
  table->is_identity_full = identity == 'f';
  table->description = {.relation = {oid},
                        .version = 0,
                        .schema_name = text(*schema, 1),
                        .table_name = text(*relation, class_at::name),
                        .replica_identity = identity,
                        .columns = {}};
  if (!table->is_wanted) return table;
  const std::vector<int64_t> key = key_of(dictionary, oid, identity, viewer);
  const bool identifies = identity == 'f' || !key.empty();
  table->is_inserts_only = wanted == Wanted::inserts || (wanted == Wanted::identified && !identifies);
  TypeForms forms(dictionary, viewer);
  for (const Row& row : attributes_of(dictionary, oid, viewer)) {
    MinedColumn column{.name = text(row, attribute_at::name), .stored = forms.attribute(row)};
    column.is_sent = !column.stored.is_dropped && letter(row, attribute_at::generated) == '\0';
    if (column.is_sent) {
      if (!column.stored.form) return unknown_type(dictionary, *table, column, viewer);
      table->description.columns.push_back(
          {.name = column.name,
           .type = {column.stored.type},
           .type_modifier = static_cast<int32_t>(integer(row, attribute_at::modifier)),
           .is_key = identity == 'f' || std::ranges::find(key, integer(row, attribute_at::number)) != key.end()});
    }
    table->columns.push_back(std::move(column));
  }
  return table;
}

}  // namespace thalweg::mining
