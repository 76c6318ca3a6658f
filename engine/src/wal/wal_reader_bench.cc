#include <benchmark/benchmark.h>

#include <algorithm>

#include "wal/record_parts.h"
#include "wal/wal_bytes.h"
#include "wal/wal_reader.h"

// Bytes of WAL a second on one core: framing, CRC and parts of each record, in portions as a walsender sends them. The
// records are of the sizes of those that rows of five columns and their index entries make.

namespace thalweg::wal {
namespace {

constexpr base::Lsn kBegin{uint64_t{WalBytes::kSegmentBytes} * 5};
constexpr size_t kPortion = 128U << 10;

// A body with one block's reference, its data, and `data_bytes` of the record's own.
std::string body_of(size_t block_bytes, size_t data_bytes) {
  std::string body("\0\x20", 2);
  const auto length = static_cast<uint16_t>(block_bytes);
  body.append(reinterpret_cast<const char*>(&length), sizeof length);
  body.append(16, '\1');  // file and block
  body += '\xFF';
  body += static_cast<char>(data_bytes);
  return body + std::string(block_bytes, 'b') + std::string(data_bytes, 'd');
}

void BM_ReadWal(benchmark::State& state) {
  WalBytes wal(kBegin);
  const std::string row = body_of(90, 3);
  const std::string entry = body_of(16, 2);
  size_t records = 0;
  while (wal.end().value - kBegin.value < 64U << 20) {
    wal.record(row);
    wal.record(entry, Rmgr{11});
    records += 2;
  }
  RecordParts parts;
  for (auto _ : state) {
    WalReader reader({.start = kBegin});
    auto rest = wal.bytes();
    size_t found = 0;
    while (!rest.empty()) {
      reader.feed(rest.first(std::min(kPortion, rest.size())));
      rest = rest.subspan(std::min(kPortion, rest.size()));
      while (true) {
        const auto record = reader.next();
        if (!record) state.SkipWithError(record.error().message.c_str());
        if (!record || *record == nullptr) break;
        benchmark::DoNotOptimize(parts.parse(**record, *reader.format()));
        ++found;
      }
    }
    if (found != records) state.SkipWithError("records are missing");
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * wal.bytes().size()));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * records));
}
BENCHMARK(BM_ReadWal)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace thalweg::wal

BENCHMARK_MAIN();
