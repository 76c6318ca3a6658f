#include "search/searched_key.h"

#include <string_view>

#include <fmt/format.h>

namespace thalweg::search {

namespace {

constexpr const char* kSendFunction =
    "SELECT pg_catalog.format('%I.%I', n.nspname, p.proname), pg_catalog.format_type(t.oid, $2::pg_catalog.int4), "
    "pg_catalog.format_type(t.oid, -1) "
    "FROM pg_catalog.pg_type t JOIN pg_catalog.pg_proc p ON p.oid = t.typsend "
    "JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE t.oid = $1::pg_catalog.oid";

constexpr const char* kColumn =
    "SELECT c.oid, a.attnum, a.atttypid, a.atttypmod FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = $3 AND a.attnum > 0 "
    "AND NOT a.attisdropped AND a.attgenerated = '' "
    "WHERE n.nspname = $1 AND c.relname = $2";

// Of RFC 6901.
std::string escaped(std::string_view member) {
  std::string out;
  for (const char letter : member) {
    if (letter == '~') {
      out += "~0";
    } else if (letter == '/') {
      out += "~1";
    } else {
      out += letter;
    }
  }
  return out;
}

std::unexpected<base::Error> refused(const std::string& column, std::string_view why) {
  return base::fail(base::ErrorCode::invalid_request, fmt::format("/key/{}: {}", escaped(column), why));
}

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace

base::Result<std::optional<std::string>> binary_of(pg::Connection& source, const std::string& text, base::TypeId type,
                                                   int32_t type_modifier) {
  const std::string oid = std::to_string(type.value);
  const std::string modifier = std::to_string(type_modifier);
  THALWEG_ASSIGN(const pg::Rows found, source.query(kSendFunction, {oid, modifier}));
  if (found.size() == 0) return std::nullopt;
  // A cast to a type with a modifier cuts and rounds: such a value is another one.
  const auto rows = source.query(
      fmt::format("SELECT pg_catalog.encode({}(CAST($1 AS {})), 'hex'){}", found.text(0, 0), found.text(0, 1),
                  type_modifier < 0
                      ? std::string()
                      : fmt::format(" WHERE CAST($1 AS {}) = CAST($1 AS {})", found.text(0, 1), found.text(0, 2))),
      {text});
  if (rows && rows->size() == 0) return std::nullopt;
  if (rows) return bytes_of(rows->text(0, 0));
  if (source.broken()) return std::unexpected(rows.error());
  return std::nullopt;
}

base::Result<void> check_key(pg::Connection& source, const telemetry::SearchRequest& request,
                             const capture::MaskedColumns& masked) {
  if (!request.table) return {};
  for (const auto& [column, value] : request.key) {
    THALWEG_ASSIGN(const pg::Rows rows, source.query(kColumn, {request.table->first, request.table->second, column}));
    if (rows.size() == 0) return {};
    if (rows.is_null(0, 1)) return refused(column, "the table has no such column, or its values are generated");
    const capture::ColumnId id(static_cast<uint32_t>(rows.integer(0, 0)), static_cast<int16_t>(rows.integer(0, 1)));
    if (masked.is_masked(id, base::Lsn{UINT64_MAX - 1})) {
      return refused(column, "the stream masks or drops this column: nobody may search by its values");
    }
    if (!value) continue;
    THALWEG_ASSIGN(const auto binary, binary_of(source, *value, {static_cast<uint32_t>(rows.integer(0, 2))},
                                                static_cast<int32_t>(rows.integer(0, 3))));
    if (!binary) return refused(column, "the column's type refuses this value");
  }
  return {};
}

}  // namespace thalweg::search
