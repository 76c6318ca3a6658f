#include "transform/sql_mask.h"

#include <utility>

#include <fmt/format.h>

namespace thalweg::transform {

std::string sql_mask(const pg::Connection& connection, const Mask& mask, const std::string& column,
                     const std::string& type) {
  switch (mask.kind) {
    case MaskKind::null:
      return fmt::format("CAST(NULL AS {})", type);
    case MaskKind::constant:
      return fmt::format("CAST({} AS {})", connection.quote_literal(mask.value), type);
    case MaskKind::partial: {
      const uint64_t kept = uint64_t{mask.keep_first} + mask.keep_last;
      return fmt::format(
          "CAST(CASE WHEN pg_catalog.char_length({0}) > {1} THEN pg_catalog.concat(pg_catalog.\"left\"({0}, {2}), "
          "pg_catalog.repeat('*', pg_catalog.char_length({0}) - {1}), pg_catalog.\"right\"({0}, {3})) "
          "ELSE pg_catalog.repeat('*', pg_catalog.char_length({0})) END AS {4})",
          column, kept, mask.keep_first, mask.keep_last, type);
    }
  }
  return column;
}

base::Result<void> check_constant(pg::Connection& connection, const Mask& mask, const std::string& type,
                                  const std::string& table, const std::string& column) {
  const auto refuse = [&](std::string_view why) -> base::Result<void> {
    base::Error error = base::fail(base::ErrorCode::transformation_refused,
                                   fmt::format("The constant that masks column {} of {} {}.", column, table, why))
                            .error();
    error.table = table;
    return std::unexpected(std::move(error));
  };
  const auto written =
      connection.query(fmt::format("SELECT pg_catalog.format('%s', CAST($1::text AS {}))", type), {mask.value});
  if (!written) {
    // PostgreSQL's class "data exception": the text is none of the type's.
    if (!written.error().sqlstate.starts_with("22")) return std::unexpected(written.error());
    return refuse(fmt::format("is no {}: {}", type, written.error().message));
  }
  if (written->text(0, 0) == mask.value) return {};
  return refuse(fmt::format("must be written as PostgreSQL writes a value of {}: {}", type, written->text(0, 0)));
}

}  // namespace thalweg::transform
