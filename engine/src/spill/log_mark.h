#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// The mark of a durable log: what of it survived (docs/formats/spill.md). Its file has room for two, which are written
// in turn, so that a torn write leaves the other.

namespace thalweg::spill {

// A mark as it lies in the file: little-endian, as every machine that the engine runs on.
struct LogMark {
  uint64_t magic;
  uint64_t sequence;  // the higher one counts
  uint64_t log;
  uint64_t from;     // LSN
  uint64_t synced;   // LSN
  uint64_t frames;   // in the segments that are left
  uint64_t changes;  // those of them that are row changes or truncates
  uint32_t first_segment;
  uint32_t end_segment;  // behind the last
  uint64_t last_bytes;   // of the last segment
  uint32_t last_blocks;  // its end block not counted
  uint32_t last_ended;   // 1: it has its end block
  uint64_t checksum;     // XXH3-64 of all before it
};
inline constexpr size_t kMarkBytes = sizeof(LogMark);
inline constexpr size_t kMarkStride = 512;  // a disk's sector: a torn write spoils one mark only

// Sets magic and checksum.
void seal_mark(LogMark& mark);
// None where the bytes are no mark: torn, or never written.
std::optional<LogMark> decode_mark(std::span<const std::byte> bytes);
// The one that counts of a file's two. None where it has none.
std::optional<LogMark> newest_mark(std::span<const std::byte> file);

}  // namespace thalweg::spill
