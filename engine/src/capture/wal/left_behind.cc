#include "capture/wal/left_behind.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "mining/builder.h"
#include "mining/change_sink.h"
#include "shipment/staged_wal.h"
#include "shipment/staging.h"
#include "wal/record_parts.h"
#include "wal/wal_reader.h"

namespace thalweg::capture {

namespace {

using nlohmann::json;

constexpr const char* kFile = "left-behind.json";
constexpr mode_t kMode = 0600;
constexpr size_t kFileBytesMax = size_t{256} << 20;
// In a message.
constexpr size_t kNamedMax = 20;
constexpr size_t kTablesMax = 5;

base::Lsn lsn_in(const json& document, const char* member) {
  return base::parse_lsn(document.at(member).get<std::string>()).value_or(base::Lsn{});
}

// The commits of transactions that changed a captured table.
class Collector final : public mining::ChangeSink {
 public:
  std::vector<LeftTransaction> found;

  base::Result<void> begin(base::Xid, const lcr::TransactionMark&) override { return {}; }
  base::Result<void> describe(const mining::MinedTable& table) override {
    const lcr::TableDescription& description = table.description;
    names_[description.relation] = description.schema_name + "." + description.table_name;
    return {};
  }
  base::Result<void> change(const lcr::RowFrame& row) override {
    open_[row.xid.value].insert(names_[row.relation]);
    return {};
  }
  base::Result<void> truncate(const mining::TruncateChange& truncate) override {
    for (const base::RelationId relation : truncate.relations) open_[truncate.xid.value].insert(names_[relation]);
    return {};
  }
  base::Result<void> message(base::Xid, std::string_view) override { return {}; }
  base::Result<void> rolled_back(base::Xid xid, base::Xid subxid, base::Lsn) override {
    if (!subxid) open_.erase(xid.value);
    return {};
  }
  base::Result<void> commit(base::Xid xid, const lcr::TransactionMark& mark) override {
    const auto node = open_.extract(xid.value);
    if (!node.empty()) found.push_back({.xid = xid, .commit = mark.commit_lsn, .tables = node.mapped()});
    return {};
  }
  base::Result<void> commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                     std::span<const base::Xid>) override {
    return commit(xid, mark);
  }

 private:
  std::map<base::RelationId, std::string> names_;
  std::map<uint32_t, std::set<std::string>> open_;
};

base::Result<base::Lsn> staged_end(const WalFolder& folder, const shipment::WalIdentity& staged) {
  THALWEG_ASSIGN(const auto segments, shipment::staged_segments(folder.staging(), staged.segment_bytes));
  std::error_code failed;
  const auto path = folder.staging() / staged.name_of(segments.back().begin);
  const uint64_t bytes = std::filesystem::file_size(path, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "look at " + path.string()));
  return base::Lsn{segments.back().begin.value + bytes};
}

base::Result<void> write(const WalFolder& folder, const LeftBehind& left) {
  json out = {{"timeline", left.timeline},
              {"end", base::to_string(left.end)},
              {"until", base::to_string(left.until)},
              {"transactions", json::array()}};
  for (const LeftTransaction& transaction : left.transactions) {
    out["transactions"].push_back({{"xid", transaction.xid.value},
                                   {"commit", base::to_string(transaction.commit)},
                                   {"tables", transaction.tables}});
  }
  return base::write_file_atomically(folder.path() / kFile, out.dump(), kMode);
}

}  // namespace

base::Result<void> note_left_behind(WalFolder& folder, const shipment::WalIdentity& source, const MinedTables& tables,
                                    uint64_t memory_bytes) {
  THALWEG_ASSIGN(const auto end, folder.left_at(source));
  if (!end) return {};
  // Of another switch, perhaps.
  std::error_code failed;
  std::filesystem::remove(folder.path() / kFile, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "remove " + (folder.path() / kFile).string()));
  THALWEG_ASSIGN(const auto state, folder.read_state());
  if (!state) return {};
  THALWEG_ASSIGN(const auto back, folder.back_to(*end, *state));
  if (!back) return {};
  THALWEG_ASSIGN(const auto segments, shipment::staged_segments(folder.staging(), source.segment_bytes));
  const auto timeline = static_cast<int>(segments.back().timeline);
  shipment::WalIdentity staged = source;
  staged.history = source.history.up_to(timeline);
  THALWEG_ASSIGN(const base::Lsn until, staged_end(folder, staged));
  LeftBehind left{.timeline = timeline, .end = *end, .until = until};
  if (until <= *end) return write(folder, left);
  THALWEG_ASSIGN(MiningBegin begun, folder.begin(*back));
  Collector collector;
  mining::Builder builder(begun.dictionary, {.from = *end,
                                             .is_wanted = [&](uint32_t table) { return tables.wanted(table); },
                                             .sink = &collector,
                                             .memory_bytes = memory_bytes});
  shipment::StagedWal wal({.directory = folder.staging(), .identity = staged},
                          base::Lsn{begun.from.value - begun.from.value % wal::kPageBytes});
  wal::WalReader reader({.start = begun.from,
                         .segment_bytes = staged.segment_bytes,
                         .system_identifier = staged.system_identifier,
                         .timeline_at = staged.timeline_at()});
  wal::RecordParts parts;
  while (wal.position() < until) {
    THALWEG_ASSIGN(const auto bytes, wal.read(until));
    reader.feed(bytes);
    while (true) {
      THALWEG_ASSIGN(const wal::WalRecord* const record, reader.next());
      if (record == nullptr) break;
      THALWEG_TRY(parts.parse(*record, *reader.format()));
      THALWEG_TRY(builder.apply(*record, parts, *reader.format()));
      left.until = record->end;
    }
  }
  left.transactions = std::move(collector.found);
  base::log_event(base::LogLevel::warning, "timeline_left_behind",
                  {{"timeline", left.timeline},
                   {"end", base::to_string(left.end)},
                   {"until", base::to_string(left.until)},
                   {"transactions", left.transactions.size()}});
  return write(folder, left);
}

base::Result<std::optional<LeftBehind>> find_left_behind(const WalFolder& folder, int timeline, base::Lsn end) {
  const auto path = folder.path() / kFile;
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) return std::nullopt;
  THALWEG_ASSIGN(const std::string text, base::read_file(path, kFileBytesMax));
  try {
    const json in = json::parse(text);
    LeftBehind left{.timeline = in.at("timeline").get<int>(), .end = lsn_in(in, "end"), .until = lsn_in(in, "until")};
    if (left.timeline != timeline || left.end != end) return std::nullopt;
    for (const json& transaction : in.at("transactions")) {
      left.transactions.push_back({.xid = {transaction.at("xid").get<uint32_t>()},
                                   .commit = lsn_in(transaction, "commit"),
                                   .tables = transaction.at("tables").get<std::set<std::string>>()});
    }
    return left;
  } catch (const json::exception& exception) {
    return base::fail(base::ErrorCode::file_error, fmt::format("{} is damaged: {}", path.string(), exception.what()),
                      base::ErrorSide::engine);
  }
}

base::Result<void> check_left_behind(const LeftBehind& left, base::Lsn reached) {
  const auto diverged = [&](std::string message) {
    base::Error error = base::fail(base::ErrorCode::source_diverged, std::move(message)).error();
    error.lsn = left.end;
    return std::unexpected(std::move(error));
  };
  if (reached > left.until) {
    return diverged(
        fmt::format("The source has left timeline {} at {}. The destination has what committed up to {} on "
                    "it, and the engine has the WAL up to {} only: what this server lacks is not known.",
                    left.timeline, base::to_string(left.end), base::to_string(reached), base::to_string(left.until)));
  }
  std::vector<std::string> named;
  size_t count = 0;
  for (const LeftTransaction& transaction : left.transactions) {
    if (transaction.commit >= reached) break;
    if (++count > kNamedMax) continue;
    std::vector<std::string> tables(transaction.tables.begin(), transaction.tables.end());
    if (tables.size() > kTablesMax) {
      tables.resize(kTablesMax);
      tables.emplace_back("others");
    }
    named.push_back(fmt::format("{} at {} ({})", transaction.xid.value, base::to_string(transaction.commit),
                                fmt::join(tables, ", ")));
  }
  if (count == 0) return {};
  if (count > named.size()) named.push_back(fmt::format("{} more", count - named.size()));
  return diverged(
      fmt::format("The source has left timeline {} at {}. The destination has {} of that timeline which this server "
                  "never had, by xid, commit position and tables: {}.",
                  left.timeline, base::to_string(left.end),
                  count == 1 ? "a transaction" : fmt::format("{} transactions", count), fmt::join(named, "; ")));
}

}  // namespace thalweg::capture
