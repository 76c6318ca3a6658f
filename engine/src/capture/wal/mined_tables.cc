#include "capture/wal/mined_tables.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "pg/text_array.h"
#include "wal/wal_format.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;
using mining::Wanted;
using nlohmann::json;

constexpr mode_t kMode = 0600;

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
  Tables tables;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view name = rows.text(i, 4);
    if (!rows.boolean(i, 2)) THALWEG_TRY(refuse(name, "is partitioned, and log mining has its partitions only"));
    if (!rows.boolean(i, 3)) THALWEG_TRY(refuse(name, "is not of the access method heap, which log mining reads"));
    tables.emplace(static_cast<uint32_t>(rows.integer(i, 0)),
                   rows.boolean(i, 1) ? Wanted::everything : Wanted::inserts);
  }
  // Behind whatever changed the publications.
  THALWEG_ASSIGN(const pg::Rows end, source.query("SELECT pg_catalog.pg_current_wal_insert_lsn()"));
  MinedTables read;
  read.reads_.push_back({base::parse_lsn(end.text(0, 0)).value_or(base::Lsn{}), tables});
  read.wanted_ = std::move(tables);
  return read;
}

base::Result<void> MinedTables::recall(const std::filesystem::path& file, base::Lsn needed_from) {
  THALWEG_ASSIGN(std::vector<Read> earlier, load(file));
  // Of a timeline that the source has left.
  while (!earlier.empty() && earlier.back().from > reads_.back().from) earlier.pop_back();
  const bool is_news = earlier.empty() || earlier.back().tables != reads_.back().tables;
  // Tables that are as they were, are so from there on.
  if (!is_news) reads_.back().from = earlier.back().from;
  if (!is_news) earlier.pop_back();
  reads_.insert(reads_.begin(), earlier.begin(), earlier.end());
  const size_t known = reads_.size();
  while (reads_.size() > 1 && reads_[1].from <= needed_from) reads_.erase(reads_.begin());
  if (is_news || reads_.size() != known) THALWEG_TRY(save(file));
  enter(needed_from);
  return {};
}

base::Result<MinedTables> MinedTables::recalled(const std::filesystem::path& file, base::Lsn needed_from) {
  MinedTables tables;
  THALWEG_ASSIGN(tables.reads_, load(file));
  if (tables.reads_.empty()) return tables;
  tables.wanted_ = tables.reads_.back().tables;
  tables.enter(needed_from);
  return tables;
}

// Rows before the first read are as by it. A table that came later is as by the read with which it came.
bool MinedTables::enter(base::Lsn record) {
  const auto next =
      std::find_if(std::next(reads_.begin()), reads_.end(), [&](const Read& read) { return read.from > record; });
  then_ = static_cast<size_t>(std::prev(next) - reads_.begin());
  next_ = next == reads_.end() ? base::Lsn{UINT64_MAX} : next->from;
  for (auto& entry : wanted_) {
    const uint32_t table = entry.first;
    Wanted& wanted = entry.second;
    const auto known =
        std::find_if(std::prev(next), reads_.end(), [&](const Read& read) { return read.tables.contains(table); });
    wanted = known->tables.at(table);
    // The source had changed the publication some moments before the read that says so. Updates without an identity it
    // takes only of what was given up; those that are from before they were taken back, the copy has, and apply skips.
    const bool changes = std::any_of(known, reads_.end(), [&](const Read& read) {
      const auto there = read.tables.find(table);
      return there != read.tables.end() && there->second != wanted;
    });
    if (changes) wanted = Wanted::identified;
  }
  return true;
}

base::Result<std::vector<MinedTables::Read>> MinedTables::load(const std::filesystem::path& file) {
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) return std::vector<Read>{};
  THALWEG_ASSIGN(const std::string text, base::read_file(file));
  try {
    std::vector<Read> reads;
    for (const json& read : json::parse(text)) {
      reads.push_back({base::parse_lsn(read.at("from").get<std::string>()).value_or(base::Lsn{}), {}});
      Tables& tables = reads.back().tables;
      for (const uint32_t table : read.at("everything")) tables.emplace(table, Wanted::everything);
      for (const uint32_t table : read.at("inserts")) tables.emplace(table, Wanted::inserts);
    }
    return reads;
  } catch (const json::exception& exception) {
    return base::fail(ErrorCode::file_error, fmt::format("{} is damaged: {}", file.string(), exception.what()),
                      base::ErrorSide::engine);
  }
}

base::Result<void> MinedTables::save(const std::filesystem::path& file) const {
  json out = json::array();
  for (const Read& read : reads_) {
    json everything = json::array();
    json inserts = json::array();
    for (const auto& [table, wanted] : read.tables) (wanted == Wanted::inserts ? inserts : everything).push_back(table);
    out.push_back({{"from", base::to_string(read.from)}, {"everything", everything}, {"inserts", inserts}});
  }
  return base::write_file_atomically(file, out.dump(), kMode);
}

std::vector<uint32_t> MinedTables::oids() const {
  std::vector<uint32_t> oids;
  for (const auto& [oid, wanted] : wanted_) oids.push_back(oid);
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
