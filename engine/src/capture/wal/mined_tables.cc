#include "capture/wal/mined_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "pg/text_array.h"
#include "wal/wal_format.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;

constexpr const char* kTables =
    "SELECT c.oid, bool_or(p.pubupdate), c.relkind = 'r', coalesce(a.amname = 'heap', true), "
    "pg_catalog.format('%I.%I', n.nspname, c.relname) "
    "FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid "
    "JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE p.pubname = ANY ($1::text[]) GROUP BY 1, 3, 4, 5 ORDER BY 5";

constexpr const char* kSettings =
    "SELECT pg_catalog.current_setting('wal_level'), pg_catalog.current_setting('full_page_writes'), "
    "pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_encoding'), "
    "pg_catalog.current_setting('block_size')";

base::Result<void> refuse(std::string_view table, std::string_view why) {
  base::Error error =
      base::fail(ErrorCode::unsupported_table, fmt::format("{} {}. Capture it by logical decoding.", table, why))
          .error();
  error.table = table;
  return std::unexpected(std::move(error));
}

}  // namespace

base::Result<MinedTables> MinedTables::read(pg::Connection& source, const std::vector<std::string>& publications) {
  const std::string names = pg::text_array(publications);
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kTables, {names}));
  MinedTables tables;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view name = rows.text(i, 4);
    if (!rows.boolean(i, 2)) THALWEG_TRY(refuse(name, "is partitioned, and log mining has its partitions only"));
    if (!rows.boolean(i, 3)) THALWEG_TRY(refuse(name, "is not of the access method heap, which log mining reads"));
    tables.tables_.emplace(static_cast<uint32_t>(rows.integer(i, 0)),
                           rows.boolean(i, 1) ? mining::Wanted::everything : mining::Wanted::inserts);
  }
  return tables;
}

std::vector<uint32_t> MinedTables::oids() const {
  std::vector<uint32_t> oids;
  for (const auto& [oid, wanted] : tables_) oids.push_back(oid);
  return oids;
}

base::Result<void> check_source(pg::Connection& source) {
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kSettings));
  if (rows.text(0, 0) != "logical") {
    return base::fail(ErrorCode::wal_level_too_low, fmt::format("The source's wal_level is {}.", rows.text(0, 0)));
  }
  if (rows.text(0, 1) != "on") {
    return base::fail(ErrorCode::full_page_writes_off,
                      "The source's full_page_writes is off: its WAL does not have all that is changed.");
  }
  if (rows.boolean(0, 2)) {
    return base::fail(ErrorCode::source_read_only,
                      "The source is a standby: its WAL can be mined at its primary only.");
  }
  if (rows.text(0, 3) != "UTF8") {
    return base::fail(ErrorCode::unsupported_table,
                      fmt::format("The source's database has the encoding {}; log mining reads UTF8. Capture it by "
                                  "logical decoding.",
                                  rows.text(0, 3)),
                      base::ErrorSide::source);
  }
  constexpr std::string_view kBlockBytes = "8192";
  if (rows.text(0, 4) != kBlockBytes) {
    return base::fail(
        ErrorCode::unsupported_version,
        fmt::format("The source's blocks have {} bytes; log mining reads those of {}.", rows.text(0, 4), kBlockBytes),
        base::ErrorSide::source);
  }
  constexpr int kPerMajor = 10'000;
  const int version = source.server_version() / kPerMajor;
  const auto is_it = [&](const wal::WalFormat& format) { return format.version == version; };
  if (std::ranges::none_of(wal::wal_formats(), is_it)) {
    return base::fail(ErrorCode::unsupported_version,
                      fmt::format("Log mining does not know the WAL of PostgreSQL {}.", version),
                      base::ErrorSide::source);
  }
  return {};
}

base::Result<void> check_checkpoint(pg::Connection& source) {
  THALWEG_ASSIGN(const pg::Rows rows, source.query("SELECT full_page_writes FROM pg_catalog.pg_control_checkpoint()"));
  if (rows.boolean(0, 0)) return {};
  return base::fail(ErrorCode::full_page_writes_off,
                    "The source's last checkpoint was made while full_page_writes was off: run CHECKPOINT there.");
}

}  // namespace thalweg::capture
