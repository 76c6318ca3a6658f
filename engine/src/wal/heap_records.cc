#include "wal/heap_records.h"

#include <fmt/format.h>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

constexpr uint8_t kOperationMask = 0x70;
constexpr uint8_t kInitialisesPage = 0x80;

// Of the heap resource manager.
constexpr uint8_t kInsert = 0x00;
constexpr uint8_t kDelete = 0x10;
constexpr uint8_t kUpdate = 0x20;
constexpr uint8_t kTruncate = 0x30;
constexpr uint8_t kHotUpdate = 0x40;
constexpr uint8_t kConfirm = 0x50;
constexpr uint8_t kInPlace = 0x70;
// Of heap2.
constexpr uint8_t kMultiInsert = 0x50;

// XLH_INSERT_…
constexpr uint8_t kInsertIsLast = 0x02;
constexpr uint8_t kInsertIsSpeculative = 0x04;
constexpr uint8_t kInsertHasRow = 0x08;
// XLH_UPDATE_…
constexpr uint8_t kUpdateHasOldTuple = 0x04;
constexpr uint8_t kUpdateHasOldKey = 0x08;
constexpr uint8_t kUpdateHasRow = 0x10;
constexpr uint8_t kPrefixFromOld = 0x20;
constexpr uint8_t kSuffixFromOld = 0x40;
// XLH_DELETE_…
constexpr uint8_t kDeleteHasOldTuple = 0x02;
constexpr uint8_t kDeleteHasOldKey = 0x04;
constexpr uint8_t kDeleteIsSpeculative = 0x08;
// XLH_TRUNCATE_…
constexpr uint8_t kTruncateCascades = 0x01;
constexpr uint8_t kTruncateRestarts = 0x02;

// xl_heap_insert, xl_heap_delete, xl_heap_update, xl_heap_multi_insert: sizes, and where the fields begin.
constexpr size_t kInsertBytes = 3;
constexpr size_t kDeleteBytes = 8;
constexpr size_t kDeleteOffsetAt = 4;
constexpr size_t kDeleteFlagsAt = 7;
constexpr size_t kUpdateBytes = 14;
constexpr size_t kUpdateOldOffsetAt = 4;
constexpr size_t kUpdateFlagsAt = 7;
constexpr size_t kUpdateNewOffsetAt = 12;
constexpr size_t kMultiInsertBytes = 4;
constexpr size_t kMultiInsertCountAt = 2;

// xl_heap_header, and xl_multi_insert_tuple, which has the length of the data before the same three fields.
constexpr size_t kHeaderBytes = 5;
constexpr size_t kMultiInsertHeaderBytes = 7;

std::unexpected<base::Error> refusal(const WalRecord& record, std::string_view what) {
  return violation(record.begin, fmt::format("The heap record at {} {}.", to_string(record.begin), what), record.xid);
}

HeapTuple header_at(std::span<const std::byte> bytes, size_t at) {
  return {.infomask2 = load<uint16_t>(bytes, at),
          .infomask = load<uint16_t>(bytes, at + 2),
          .header_bytes = load<uint8_t>(bytes, at + 4),
          .data = {}};
}

}  // namespace

base::Result<HeapChange> HeapRecords::parse(const WalRecord& record, const RecordParts& parts) {
  const auto info = static_cast<uint8_t>(record.info & kOperationMask);
  if (record.rmgr == Rmgr::heap2) {
    if (info == kMultiInsert) return parse_multi_insert(record, parts);
    return HeapChange{};
  }
  if (record.rmgr != Rmgr::heap) return HeapChange{};
  switch (info) {
    case kInsert:
      return parse_insert(record, parts);
    case kUpdate:
    case kHotUpdate:
      return parse_update(record, parts);
    case kDelete: {
      const BlockReference* const page = parts.block(0);
      if (page == nullptr || parts.data().size() < kDeleteBytes) return refusal(record, "deletes no row");
      const auto flags = load<uint8_t>(parts.data(), kDeleteFlagsAt);
      HeapChange change{.operation = HeapOperation::remove,
                        .new_page = nullptr,
                        .old_page = page,
                        .old_offset = load<uint16_t>(parts.data(), kDeleteOffsetAt),
                        .tuples = {}};
      change.is_speculative = (flags & kDeleteIsSpeculative) != 0;
      if ((flags & (kDeleteHasOldTuple | kDeleteHasOldKey)) != 0) {
        change.old_is_whole = (flags & kDeleteHasOldTuple) != 0;
        THALWEG_TRY(take_old(record, parts.data().subspan(kDeleteBytes), change));
      }
      return change;
    }
    case kConfirm:
      return HeapChange{.operation = HeapOperation::confirm};
    case kTruncate:
      return parse_truncate(record, parts);
    case kInPlace: {
      const BlockReference* const page = parts.block(0);
      if (page == nullptr || parts.data().size() < sizeof(uint16_t)) return refusal(record, "overwrites no row");
      // From 18 on lists of invalidations follow the offset.
      tuples_.assign(1, {.offset = load<uint16_t>(parts.data(), 0), .has_data = page->has_data, .tuple = {}});
      tuples_.front().tuple.data = page->data;
      return HeapChange{.operation = HeapOperation::in_place, .new_page = page, .old_page = nullptr, .tuples = tuples_};
    }
    default:
      return HeapChange{};
  }
}

base::Result<HeapChange> HeapRecords::parse_insert(const WalRecord& record, const RecordParts& parts) {
  const BlockReference* const page = parts.block(0);
  if (page == nullptr || parts.data().size() < kInsertBytes) return refusal(record, "inserts no row");
  NewTuple added{.offset = load<uint16_t>(parts.data(), 0), .has_data = page->has_data, .tuple = {}};
  if (page->has_data) {
    if (page->data.size() < kHeaderBytes) return refusal(record, "ends within its row");
    added.tuple = header_at(page->data, 0);
    added.tuple.data = page->data.subspan(kHeaderBytes);
    if (!is_whole(added.tuple)) return refusal(record, "has a row that contradicts itself");
  }
  tuples_.assign(1, added);
  HeapChange change{.operation = HeapOperation::insert, .new_page = page, .old_page = nullptr, .tuples = tuples_};
  const auto flags = load<uint8_t>(parts.data(), sizeof(uint16_t));
  change.has_new_rows = (flags & kInsertHasRow) != 0 && page->has_data;
  change.is_speculative = (flags & kInsertIsSpeculative) != 0;
  return change;
}

base::Result<HeapChange> HeapRecords::parse_truncate(const WalRecord& record, const RecordParts& parts) {
  constexpr size_t kBytes = 12;  // xl_heap_truncate, with its padding
  const auto main = parts.data();
  if (main.size() < kBytes) return refusal(record, "truncates nothing");
  const auto count = load<uint32_t>(main, 4);
  if (count > (main.size() - kBytes) / sizeof(uint32_t)) return refusal(record, "ends within the list of its tables");
  const auto flags = load<uint8_t>(main, 8);
  HeapChange change{.operation = HeapOperation::truncate};
  change.database = load<uint32_t>(main, 0);
  change.relations = main.subspan(kBytes, count * sizeof(uint32_t));
  change.truncates_cascading = (flags & kTruncateCascades) != 0;
  change.truncates_sequences = (flags & kTruncateRestarts) != 0;
  return change;
}

// `bytes`: behind the record's own fields.
base::Result<void> HeapRecords::take_old(const WalRecord& record, std::span<const std::byte> bytes,
                                         HeapChange& change) {
  if (bytes.size() < kHeaderBytes) return refusal(record, "ends within its old row");
  change.old_tuple = header_at(bytes, 0);
  change.old_tuple->data = bytes.subspan(kHeaderBytes);
  if (!is_whole(*change.old_tuple)) return refusal(record, "has an old row that contradicts itself");
  return {};
}

base::Result<HeapChange> HeapRecords::parse_multi_insert(const WalRecord& record, const RecordParts& parts) {
  const BlockReference* const page = parts.block(0);
  const auto main = parts.data();
  if (page == nullptr || main.size() < kMultiInsertBytes) return refusal(record, "inserts no rows");
  const auto count = load<uint16_t>(main, kMultiInsertCountAt);
  const bool lists_offsets = (record.info & kInitialisesPage) == 0;
  if (lists_offsets && main.size() < kMultiInsertBytes + count * sizeof(uint16_t)) {
    return refusal(record, "ends within the list of its rows");
  }
  tuples_.clear();
  size_t at = 0;
  for (uint16_t i = 0; i < count; ++i) {
    const auto offset =
        lists_offsets ? load<uint16_t>(main, kMultiInsertBytes + i * sizeof(uint16_t)) : static_cast<uint16_t>(i + 1);
    NewTuple added{.offset = offset, .has_data = page->has_data, .tuple = {}};
    if (page->has_data) {
      at += at % 2;
      if (page->data.size() < at + kMultiInsertHeaderBytes) return refusal(record, "ends within its rows");
      const auto bytes = load<uint16_t>(page->data, at);
      added.tuple = header_at(page->data, at + 2);
      at += kMultiInsertHeaderBytes;
      if (page->data.size() < at + bytes) return refusal(record, "ends within a row");
      added.tuple.data = page->data.subspan(at, bytes);
      at += bytes;
      if (!is_whole(added.tuple)) return refusal(record, "has a row that contradicts itself");
    }
    tuples_.push_back(added);
  }
  HeapChange change{.operation = HeapOperation::multi_insert, .new_page = page, .old_page = nullptr, .tuples = tuples_};
  const auto flags = load<uint8_t>(main, 0);
  change.has_new_rows = (flags & kInsertHasRow) != 0 && page->has_data;
  change.is_last = (flags & kInsertIsLast) != 0;
  return change;
}

base::Result<HeapChange> HeapRecords::parse_update(const WalRecord& record, const RecordParts& parts) {
  const BlockReference* const page = parts.block(0);
  const auto main = parts.data();
  if (page == nullptr || main.size() < kUpdateBytes) return refusal(record, "updates no row");
  // The old version's page has a reference of its own only where it is another one.
  const BlockReference* const other = parts.block(1);
  const bool is_other = other != nullptr && other->fork == Fork::main && other->file == page->file;
  const auto flags = load<uint8_t>(main, kUpdateFlagsAt);
  NewTuple added{.offset = load<uint16_t>(main, kUpdateNewOffsetAt), .has_data = page->has_data, .tuple = {}};
  if (page->has_data) {
    auto bytes = page->data;
    for (const auto& [flag, count] :
         {std::pair{kPrefixFromOld, &added.prefix_bytes}, std::pair{kSuffixFromOld, &added.suffix_bytes}}) {
      if ((flags & flag) == 0) continue;
      if (bytes.size() < sizeof(uint16_t)) return refusal(record, "ends within its row");
      *count = load<uint16_t>(bytes, 0);
      bytes = bytes.subspan(sizeof(uint16_t));
    }
    if (bytes.size() < kHeaderBytes) return refusal(record, "ends within its row");
    added.tuple = header_at(bytes, 0);
    added.tuple.data = bytes.subspan(kHeaderBytes);
    if (!is_whole(added.tuple)) return refusal(record, "has a row that contradicts itself");
  }
  tuples_.assign(1, added);
  HeapChange change{.operation = HeapOperation::update,
                    .new_page = page,
                    .old_page = is_other ? other : page,
                    .old_offset = load<uint16_t>(main, kUpdateOldOffsetAt),
                    .tuples = tuples_};
  change.has_new_rows = (flags & kUpdateHasRow) != 0 && page->has_data;
  if ((flags & (kUpdateHasOldTuple | kUpdateHasOldKey)) != 0) {
    change.old_is_whole = (flags & kUpdateHasOldTuple) != 0;
    THALWEG_TRY(take_old(record, main.subspan(kUpdateBytes), change));
  }
  return change;
}

}  // namespace thalweg::wal
