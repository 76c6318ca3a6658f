// Feeds foreign bytes to the frame decoder, walks what it accepts, and writes rows again: decoding is total and
// memory-safe, and a row that decodes is written back byte for byte.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lcr/frame.h"
#include "lcr/frame_check.h"

namespace thalweg::lcr {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void walk_tuple(const TupleView& tuple) {
  if (!tuple.exists()) return;
  std::vector<Value> values;
  tuple.read(values);
  require(values.size() == tuple.column_count());
  unsigned sum = 0;
  for (const Value& value : values) {
    for (const std::byte byte : value.bytes) sum += std::to_integer<unsigned>(byte);  // every byte is readable
  }
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

void walk_row(const FrameView& frame) {
  walk_tuple(frame.old_tuple());
  walk_tuple(frame.new_tuple());
  const RowFrame row{.kind = frame.kind(),
                     .flags = frame.header().flags,
                     .xid = frame.xid(),
                     .subxid = frame.subxid(),
                     .relation = frame.relation(),
                     .table_version = frame.header().table_version,
                     .lsn = frame.lsn(),
                     .old_tuple = frame.old_tuple().bytes(),
                     .new_tuple = frame.new_tuple().bytes()};
  std::vector<std::byte> again(row_frame_bytes(row));
  write_row_frame(row, again);
  require(std::ranges::equal(again, frame.bytes()));
}

void walk(const FrameView& frame) {
  switch (frame.kind()) {
    case FrameKind::insert:
    case FrameKind::update:
    case FrameKind::remove:
      walk_row(frame);
      break;
    case FrameKind::begin:
    case FrameKind::commit:
      static_cast<void>(frame.transaction_mark());
      break;
    case FrameKind::truncate:
      require(!frame.truncated_relations().empty());
      break;
    case FrameKind::table: {
      const auto table = frame.table();
      require(table.has_value());
      require(std::ranges::equal(make_table_frame(*table), frame.bytes()));
      break;
    }
    case FrameKind::progress:
      static_cast<void>(frame.server_time());
      break;
    case FrameKind::origin:
      require(std::ranges::equal(make_origin_frame(frame.xid(), frame.lsn(), frame.origin()), frame.bytes()));
      break;
    case FrameKind::partition: {
      const auto partition = frame.partition();
      require(partition.has_value());
      require(std::ranges::equal(make_partition_frame(frame.xid(), frame.subxid(), frame.header().flags, frame.lsn(),
                                                      frame.relation(), *partition),
                                 frame.bytes()));
      break;
    }
    case FrameKind::abort:
      break;
  }
}

void try_decode(std::span<const std::byte> bytes) {
  if (const auto frame = FrameView::decode(bytes)) walk(*frame);
}

}  // namespace
}  // namespace thalweg::lcr

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thalweg::lcr;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);  // own, aligned memory: the sanitizer watches its end
  try_decode(bytes);
  static_cast<void>(check_tuple(bytes));
  // A mutated frame nearly always fails on its checksum: make length, version and checksum right and look deeper.
  bytes.resize(round_up_to_alignment(std::max(size, kFrameHeaderBytes)));
  auto& header = *reinterpret_cast<FrameHeader*>(bytes.data());
  header.length = static_cast<uint32_t>(bytes.size());
  header.version = kFrameVersion;
  header.checksum = frame_checksum(bytes);
  try_decode(bytes);
  return 0;
}
