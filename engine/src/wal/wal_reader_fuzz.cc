#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wal/record_parts.h"
#include "wal/wal_reader.h"

// Input: WAL from a segment's begin on, without its CRCs being looked at. The first byte says in what portions it
// comes: whatever they are, the same records come out of it.

namespace {

using thalweg::base::Lsn;

constexpr Lsn kStart{uint64_t{16U << 20}};

uint64_t mixed(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x100000001B3ULL; }

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
