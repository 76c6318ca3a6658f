#include "wal/transaction_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

constexpr uint8_t kOperationMask = 0x70;
constexpr uint8_t kHasInfo = 0x80;

constexpr uint8_t kCommit = 0x00;
constexpr uint8_t kPrepare = 0x10;
constexpr uint8_t kAbort = 0x20;
constexpr uint8_t kCommitPrepared = 0x30;
constexpr uint8_t kAbortPrepared = 0x40;
constexpr uint8_t kAssignment = 0x50;

// Of xinfo, in the order of the parts that they announce.
constexpr uint32_t kHasDatabase = 1U << 0;
constexpr uint32_t kHasSubtransactions = 1U << 1;
constexpr uint32_t kHasFiles = 1U << 2;
constexpr uint32_t kHasInvalidations = 1U << 3;
constexpr uint32_t kHasTwoPhase = 1U << 4;
constexpr uint32_t kHasOrigin = 1U << 5;
constexpr uint32_t kHasName = 1U << 7;  // of the prepared transaction
constexpr uint32_t kHasDroppedStatistics = 1U << 8;

constexpr size_t kDatabaseBytes = 8;
constexpr size_t kFileBytes = 12;
constexpr size_t kInvalidationBytes = 16;

// Cuts a record's data from the front.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool has(size_t bytes) const { return bytes_.size() >= bytes; }
  bool skip(size_t bytes) {
    if (!has(bytes)) return false;
    bytes_ = bytes_.subspan(bytes);
    return true;
  }
  uint32_t take() {
    const auto value = load<uint32_t>(bytes_, 0);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  // A count, and as many parts of `bytes` each. False: they are not there.
  bool skip_list(size_t bytes) {
    if (!has(sizeof(uint32_t))) return false;
    const auto count = take();
    return bytes != 0 && count <= bytes_.size() / bytes && skip(count * bytes);
  }
  // Up to a zero byte.
  bool skip_text() {
    const auto end = std::ranges::find(bytes_, std::byte{0});
    return end != bytes_.end() && skip(static_cast<size_t>(end - bytes_.begin()) + 1);
  }
  bool take_list(std::vector<base::Xid>& xids) {
    if (!has(sizeof(uint32_t))) return false;
    const auto count = take();
    if (count > bytes_.size() / sizeof(uint32_t)) return false;
    xids.reserve(count);
    for (uint32_t i = 0; i < count; ++i) xids.push_back({take()});
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
};

// Of a commit's or an abort's data. False: they end before what they announce.
bool take_end(Cursor cursor, const WalFormat& format, uint8_t info, TransactionRecord& end) {
  const auto take_time = [&] {
    const auto low = uint64_t{cursor.take()};
    end.time = {static_cast<int64_t>(low | uint64_t{cursor.take()} << 32) + base::kPostgresEpochMicros};
  };
  constexpr size_t kTimeBytes = 8;
  if (!cursor.has(kTimeBytes)) return false;
  take_time();
  if ((info & kHasInfo) == 0) return true;
  if (!cursor.has(sizeof(uint32_t))) return false;
  const auto announced = cursor.take();
  const auto has = [&](uint32_t part) { return (announced & part) != 0; };
  if (has(kHasDatabase) && !cursor.skip(kDatabaseBytes)) return false;
  if (has(kHasSubtransactions) && !cursor.take_list(end.subtransactions)) return false;
  if (has(kHasFiles) && !cursor.skip_list(kFileBytes)) return false;
  if (has(kHasDroppedStatistics) && !cursor.skip_list(format.dropped_statistics_bytes)) return false;
  if (has(kHasInvalidations) && !cursor.skip_list(kInvalidationBytes)) return false;
  if (has(kHasTwoPhase)) {
    if (!cursor.has(sizeof(uint32_t))) return false;
    end.xid = {cursor.take()};
    if (has(kHasName) && !cursor.skip_text()) return false;
  }
  if (has(kHasOrigin)) {
    constexpr size_t kLsnBytes = 8;
    if (!cursor.skip(kLsnBytes) || !cursor.has(kTimeBytes)) return false;
    take_time();
  }
  return true;
}

}  // namespace

base::Result<TransactionRecord> parse_transaction(const WalRecord& record, const RecordParts& parts,
                                                  const WalFormat& format) {
  TransactionRecord parsed{
      .operation = TransactionOperation::none, .xid = record.xid, .subtransactions = {}, .time = {}};
  const auto refused = [&] {
    return violation(record.begin, fmt::format("The end of a transaction at {} is cut.", to_string(record.begin)),
                     record.xid);
  };
  switch (record.info & kOperationMask) {
    case kCommit:
    case kCommitPrepared:
      parsed.operation = TransactionOperation::commit;
      break;
    case kAbort:
    case kAbortPrepared:
      parsed.operation = TransactionOperation::abort;
      break;
    case kPrepare:
      parsed.operation = TransactionOperation::prepare;
      return parsed;
    case kAssignment: {
      parsed.operation = TransactionOperation::assignment;
      Cursor cursor(parts.data());
      if (!cursor.has(sizeof(uint32_t))) return refused();
      parsed.xid = {cursor.take()};
      if (!cursor.take_list(parsed.subtransactions)) return refused();
      return parsed;
    }
    default:
      return parsed;
  }
  if (!take_end(Cursor(parts.data()), format, record.info, parsed)) return refused();
  return parsed;
}

}  // namespace thalweg::wal
