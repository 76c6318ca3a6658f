#include "transform/sql_mask.h"

#include <utility>

#include <fmt/format.h>

#include "transform/keyed_hash.h"

namespace thalweg::transform {
namespace {

// HMAC-SHA256 of a text, by RFC 2104. Each pad is read once for the statement, in a query of its own.
std::string sql_hmac(const std::string& text) {
  return fmt::format(
      "pg_catalog.sha256((SELECT pg_catalog.decode(pg_catalog.current_setting('{}'), 'hex')) || pg_catalog.sha256("
      "(SELECT pg_catalog.decode(pg_catalog.current_setting('{}'), 'hex')) || pg_catalog.convert_to({}, 'UTF8')))",
      kOuterPadSetting, kInnerPadSetting, text);
}

}  // namespace

std::string sql_mask(const pg::Connection& connection, const Mask& mask, const std::string& column,
                     const std::string& type) {
  switch (mask.kind) {
    case MaskKind::null:
      return fmt::format("CAST(NULL AS {})", type);
    case MaskKind::constant:
      return sql_constant(connection, mask.value, type);
    case MaskKind::partial: {
      const uint64_t kept = uint64_t{mask.keep_first} + mask.keep_last;
      return fmt::format(
          "CAST(CASE WHEN pg_catalog.char_length({0}) > {1} THEN pg_catalog.concat(pg_catalog.\"left\"({0}, {2}), "
          "pg_catalog.repeat('*', pg_catalog.char_length({0}) - {1}), pg_catalog.\"right\"({0}, {3})) "
          "ELSE pg_catalog.repeat('*', pg_catalog.char_length({0})) END AS {4})",
          column, kept, mask.keep_first, mask.keep_last, type);
    }
    case MaskKind::hash:
      return fmt::format("CAST(pg_catalog.\"left\"(pg_catalog.encode({}, 'hex'), {}) AS {})", sql_hmac(column),
                         mask.digits, type);
    case MaskKind::digits:
      // OFFSET 0: one hash for all characters of a value.
      return fmt::format(
          "CAST(CASE WHEN {0} IS NOT NULL THEN (SELECT coalesce(pg_catalog.string_agg(CASE WHEN "
          "pg_catalog.strpos('0123456789', c.one) > 0 THEN CAST(pg_catalog.get_byte(h.hash, CAST((c.place - 1) % 32 AS "
          "integer)) % 10 AS text) ELSE c.one END, '' ORDER BY c.place), '') FROM (SELECT {1} OFFSET 0) h(hash), "
          "pg_catalog.string_to_table({0} COLLATE \"C\", NULL) WITH ORDINALITY c(one, place)) END AS {2})",
          column, sql_hmac(fmt::format("'{}' || {}", kDigitsPrefix, column)), type);
  }
  return column;
}

std::string sql_constant(const pg::Connection& connection, const std::string& constant, const std::string& type) {
  return fmt::format("CAST({} AS {})", connection.quote_literal(constant), type);
}

base::Result<void> check_constant(pg::Connection& connection, const std::string& constant, const std::string& type,
                                  const std::string& table, const std::string& column) {
  const auto refuse = [&](std::string_view why) -> base::Result<void> {
    base::Error error = base::fail(base::ErrorCode::transformation_refused,
                                   fmt::format("The constant for column {} of {} {}.", column, table, why))
                            .error();
    error.table = table;
    return std::unexpected(std::move(error));
  };
  const auto written =
      connection.query(fmt::format("SELECT pg_catalog.format('%s', CAST($1::text AS {}))", type), {constant});
  if (!written) {
    // PostgreSQL's class "data exception": the text is none of the type's.
    if (!written.error().sqlstate.starts_with("22")) return std::unexpected(written.error());
    return refuse(fmt::format("is no {}: {}", type, written.error().message));
  }
  if (written->text(0, 0) == constant) return {};
  return refuse(fmt::format("must be written as PostgreSQL writes a value of {}: {}", type, written->text(0, 0)));
}

}  // namespace thalweg::transform
