#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wal/file_records.h"
#include "wal/heap_page.h"
#include "wal/heap_records.h"
#include "wal/record_parts.h"
#include "wal/transaction_records.h"
#include "wal/wal_reader.h"

// Input: WAL from a segment's begin on, without its CRCs being looked at. The first byte says in what portions it
// comes: whatever they are, the same records come out of it.

namespace {

using thalweg::base::Lsn;

constexpr Lsn kStart{uint64_t{16U << 20}};

uint64_t mixed(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x100000001B3ULL; }

// Reads a row's tuple as it describes itself.
uint64_t mixed(uint64_t sum, const thalweg::wal::HeapTuple& tuple) {
  for (const auto bytes : {tuple.bitmap(), tuple.values()}) {
    for (const std::byte byte : bytes) sum = mixed(sum, std::to_integer<uint64_t>(byte));
  }
  return sum;
}

// Of a record whose parts are known.
uint64_t mixed(uint64_t sum, const thalweg::wal::WalRecord& record, const thalweg::wal::RecordParts& parts,
               const thalweg::wal::WalFormat& format) {
  static thalweg::wal::HeapRecords heap_records;
  static thalweg::wal::HeapPage page;
  const auto change = heap_records.parse(record, parts);
  if (change && change->operation != thalweg::wal::HeapOperation::in_place) {
    for (const auto& added : change->tuples) sum = added.has_data ? mixed(sum, added.tuple) : sum;
  }
  const auto end = parse_transaction(record, parts, format);
  if (end) sum = mixed(sum, end->subtransactions.size());
  const auto map = parse_file_map(record, parts);
  if (map && *map) sum = mixed(sum, (*map)->numbers.size());
  if (!parse_truncation(record, parts) || !parse_database(record, parts) || !parse_oldest_running(record, parts)) {
    sum = mixed(sum, 1);
  }
  for (const auto& block : parts.blocks()) {
    if (!block.has_image || !page.restore(block.image, record.begin)) continue;
    for (uint16_t offset = 1; offset <= page.offsets(); ++offset) {
      const auto tuple = page.tuple(offset);
      if (tuple && *tuple) sum = mixed(sum, (*tuple)->tuple);
    }
  }
  return sum;
}

uint64_t sum_of(std::span<const std::byte> bytes, size_t portion) {
  thalweg::wal::WalReader reader({.start = kStart, .checks_crc = false});
  thalweg::wal::RecordParts parts;
  uint64_t sum = 0;
  while (!bytes.empty()) {
    // A copy of exactly the portion's size, so that the sanitizer sees any read behind it.
    const auto part = bytes.first(std::min(portion, bytes.size()));
    const std::vector<std::byte> fed(part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    reader.feed(fed);
    while (true) {
      const auto record = reader.next();
      if (!record) return mixed(sum, record.error().lsn.value);
      if (*record == nullptr) break;
      sum = mixed(mixed(sum, (*record)->begin.value), (*record)->body.size());
      for (const std::byte byte : (*record)->body) sum = mixed(sum, std::to_integer<uint64_t>(byte));
      if (!parts.parse(**record, *reader.format())) continue;
      size_t used = parts.data().size();
      for (const auto& block : parts.blocks()) used += block.image.bytes.size() + block.data.size();
      if (used > (*record)->body.size()) std::abort();
      sum = mixed(sum, **record, parts, *reader.format());
    }
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span{data + 1, size - 1});
  if (sum_of(bytes, 1 + data[0] * 61U) != sum_of(bytes, bytes.size())) std::abort();
  return 0;
}
