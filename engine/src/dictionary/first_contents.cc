#include "dictionary/first_contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace thalweg::dictionary {

namespace {

std::unexpected<base::Error> refusal(const CatalogDescription& catalog, std::string_view what) {
  return base::fail(base::ErrorCode::protocol_violation, fmt::format("The source's {} {}.", catalog.name, what));
}

// "(12,3)"
std::optional<Place> place_of(std::string_view text) {
  Place place;
  const auto block = std::from_chars(text.data() + 1, text.data() + text.size(), place.block);
  if (text.empty() || block.ec != std::errc{} || *block.ptr != ',') return std::nullopt;
  const auto offset = std::from_chars(block.ptr + 1, text.data() + text.size(), place.offset);
  return offset.ec == std::errc{} ? std::optional{place} : std::nullopt;
}

// Types of columns of which some part has no send function: array_send would fail.
constexpr const char* kUnsent =
    "WITH RECURSIVE part(whole, type) AS ("
    "  SELECT atttypid, atttypid FROM pg_catalog.pg_attribute WHERE atthasmissing "
    "UNION "
    "  SELECT part.whole, inside.type FROM part JOIN pg_catalog.pg_type t ON t.oid = part.type, LATERAL ("
    "    SELECT t.typelem WHERE t.typtype = 'b' AND t.typlen = -1 AND t.typelem <> 0 "
    "    UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd' "
    "    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a "
    "      WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped "
    "    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.typtype = 'r' AND r.rngtypid = t.oid "
    "    UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE t.typtype = 'm' AND r.rngmultitypid = t.oid"
    "  ) inside(type)), "
    "unsent AS (SELECT part.whole FROM part JOIN pg_catalog.pg_type t ON t.oid = part.type WHERE t.typsend = 0) ";

std::string expression(const CatalogColumn& column) {
  // A regproc would be printed as a name.
  if (column.kind == ColumnKind::oid) return fmt::format("{}::pg_catalog.oid", column.name);
  if (column.kind != ColumnKind::element) return std::string{column.name};
  return fmt::format(
      "CASE WHEN NOT atthasmissing THEN NULL WHEN NOT EXISTS (SELECT FROM unsent WHERE unsent.whole = atttypid) "
      "THEN pg_catalog.encode(pg_catalog.array_send({}), 'hex') END",
      column.name);
}

// The columns, in a form that parse_value() reads.
std::string select(const CatalogDescription& catalog) {
  bool has_element = false;
  std::vector<std::string> columns{"ctid"};
  for (const CatalogColumn& column : catalog.columns) {
    has_element = has_element || column.kind == ColumnKind::element;
    columns.push_back(expression(column));
  }
  return fmt::format("{}SELECT {} FROM pg_catalog.{}", has_element ? kUnsent : "", fmt::join(columns, ", "),
                     catalog.name);
}

base::Result<std::string> packed_row(const CatalogDescription& catalog, const pg::Rows& rows, size_t number) {
  Row row;
  for (size_t i = 0; i < catalog.columns.size(); ++i) {
    if (rows.is_null(number, i + 1)) {
      row.emplace_back();
      continue;
    }
    auto value = parse_value(catalog.columns[i].kind, rows.text(number, i + 1));
    if (!value) return refusal(catalog, fmt::format("has a value of another kind in {}", catalog.columns[i].name));
    row.push_back(std::move(*value));
  }
  return packed(row);
}

base::Result<CatalogContents> read(pg::Connection& source, const CatalogDescription& catalog) {
  CatalogContents contents;
  const auto file = source.query(
      "SELECT d.dattablespace, d.oid, pg_catalog.pg_relation_filenode($1::pg_catalog.oid) FROM pg_catalog.pg_database d"
      " WHERE d.datname = pg_catalog.current_database()",
      {std::to_string(catalog.oid)});
  if (!file) return std::unexpected(file.error());
  if (file->size() != 1) return refusal(catalog, "has no file");
  const auto number = [&](size_t column) { return static_cast<uint32_t>(file->integer(0, column)); };
  contents.file = {.tablespace = number(0), .database = number(1), .number = number(2)};
  const auto columns = source.query(
      "SELECT attname, attlen, attalign FROM pg_catalog.pg_attribute WHERE attrelid = $1::pg_catalog.oid AND attnum > 0"
      " ORDER BY attnum",
      {std::to_string(catalog.oid)});
  if (!columns) return std::unexpected(columns.error());
  for (size_t i = 0; i < columns->size(); ++i) {
    contents.columns.push_back({.name = std::string{columns->text(i, 0)},
                                .length = static_cast<int16_t>(columns->integer(i, 1)),
                                .align = columns->text(i, 2).empty() ? 'c' : columns->text(i, 2).front()});
  }
  const auto rows = source.query(select(catalog));
  if (!rows) return std::unexpected(rows.error());
  contents.rows.reserve(rows->size());
  for (size_t i = 0; i < rows->size(); ++i) {
    const auto place = place_of(rows->text(i, 0));
    if (!place) return refusal(catalog, "has a row without a place");
    auto row = packed_row(catalog, *rows, i);
    if (!row) return std::unexpected(row.error());
    contents.rows.push_back({.place = *place, .row = std::move(*row)});
  }
  return contents;
}

}  // namespace

base::Result<FirstContents> read_first_contents(pg::Connection& source, base::Lsn as_of) {
  FirstContents contents{.as_of = as_of, .catalogs = {}};
  for (size_t i = 0; i < kCatalogs; ++i) {
    auto catalog = read(source, description_of(static_cast<Catalog>(i)));
    if (!catalog) return std::unexpected(catalog.error());
    contents.catalogs.at(i) = std::move(*catalog);
  }
  return contents;
}

}  // namespace thalweg::dictionary
