#include "wal/file_records.h"

#include <fmt/format.h>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

constexpr uint8_t kTruncate = 0x20;             // of storage
constexpr uint8_t kUpdateMap = 0x00;            // of the map
constexpr uint8_t kRunningTransactions = 0x10;  // of standbys
constexpr uint8_t kShutdown = 0x00;             // of xlog: a checkpoint at the server's end
constexpr uint8_t kParameterChange = 0x60;
constexpr uint8_t kFullPagesChange = 0x80;
constexpr uint8_t kEndOfRecovery = 0x90;

std::unexpected<base::Error> cut(const WalRecord& record) {
  return violation(record.begin, fmt::format("The record at {} is cut.", to_string(record.begin)), record.xid);
}

bool is(const WalRecord& record, Rmgr rmgr, uint8_t info) {
  return record.rmgr == rmgr && (record.info & kRmgrInfo) == info;
}

}  // namespace

base::Result<std::optional<FileTruncation>> parse_truncation(const WalRecord& record, const RecordParts& parts) {
  if (!is(record, Rmgr::storage, kTruncate)) return std::nullopt;
  constexpr size_t kBytes = 20;  // xl_smgr_truncate
  constexpr uint32_t kOfHeap = 0x01;
  const auto data = parts.data();
  if (data.size() < kBytes) return cut(record);
  if ((load<uint32_t>(data, 16) & kOfHeap) == 0) return std::nullopt;
  return FileTruncation{.file = {.tablespace = load<uint32_t>(data, 4),
                                 .database = load<uint32_t>(data, 8),
                                 .number = load<uint32_t>(data, 12)},
                        .blocks = load<uint32_t>(data, 0)};
}

base::Result<std::optional<FileMap>> parse_file_map(const WalRecord& record, const RecordParts& parts) {
  if (!is(record, Rmgr::relation_map, kUpdateMap)) return std::nullopt;
  constexpr size_t kCountAt = 16;  // behind xl_relmap_update's fields and the map's magic
  constexpr size_t kNumbersAt = 20;
  constexpr size_t kEntryBytes = 8;
  const auto data = parts.data();
  if (data.size() < kNumbersAt) return cut(record);
  const auto count = load<uint32_t>(data, kCountAt);
  if (count > (data.size() - kNumbersAt) / kEntryBytes) return cut(record);
  FileMap map{.database = load<uint32_t>(data, 0), .numbers = {}};
  for (size_t i = 0; i < count; ++i) {
    const size_t at = kNumbersAt + i * kEntryBytes;
    map.numbers.emplace_back(load<uint32_t>(data, at), load<uint32_t>(data, at + 4));
  }
  return map;
}

base::Result<std::optional<uint32_t>> parse_database(const WalRecord& record, const RecordParts& parts) {
  if (record.rmgr != Rmgr::database) return std::nullopt;
  if (parts.data().size() < sizeof(uint32_t)) return cut(record);
  return load<uint32_t>(parts.data(), 0);  // every record of this manager begins with it
}

base::Result<std::optional<base::Xid>> parse_oldest_running(const WalRecord& record, const RecordParts& parts) {
  if (!is(record, Rmgr::standby, kRunningTransactions)) return std::nullopt;
  constexpr size_t kOldestAt = 16;
  if (parts.data().size() < kOldestAt + sizeof(uint32_t)) return cut(record);
  return base::Xid{load<uint32_t>(parts.data(), kOldestAt)};
}

base::Result<std::optional<bool>> parse_is_logical(const WalRecord& record, const RecordParts& parts) {
  if (!is(record, Rmgr::xlog, kParameterChange)) return std::nullopt;
  constexpr size_t kLevelAt = 20;   // of xl_parameter_change
  constexpr uint32_t kLogical = 2;  // WAL_LEVEL_LOGICAL of src/include/access/xlog.h
  if (parts.data().size() < kLevelAt + sizeof(uint32_t)) return cut(record);
  return load<uint32_t>(parts.data(), kLevelAt) >= kLogical;
}

base::Result<std::optional<bool>> parse_has_full_pages(const WalRecord& record, const RecordParts& parts) {
  if (!is(record, Rmgr::xlog, kFullPagesChange)) return std::nullopt;
  if (parts.data().empty()) return cut(record);
  return parts.data().front() != std::byte{0};
}

bool ends_all_transactions(const WalRecord& record) {
  return is(record, Rmgr::xlog, kShutdown) || is(record, Rmgr::xlog, kEndOfRecovery);
}

}  // namespace thalweg::wal
