#include "spill/log_mark.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thalweg::spill {

namespace {

constexpr uint64_t kMagic = 0x314B'524D'4C49'5053;  // "SPILMRK1" in the file
static_assert(kMarkBytes == 88 && kMarkBytes <= kMarkStride);

uint64_t checksum_of(const LogMark& mark) { return XXH3_64bits(&mark, offsetof(LogMark, checksum)); }

}  // namespace

void seal_mark(LogMark& mark) {
  mark.magic = kMagic;
  mark.checksum = checksum_of(mark);
}

std::optional<LogMark> decode_mark(std::span<const std::byte> bytes) {
  if (bytes.size() < kMarkBytes) return std::nullopt;
  LogMark mark;
  std::memcpy(&mark, bytes.data(), kMarkBytes);
  if (mark.magic != kMagic || mark.checksum != checksum_of(mark)) return std::nullopt;
  if (mark.first_segment > mark.end_segment) return std::nullopt;
  return mark;
}

std::optional<LogMark> newest_mark(std::span<const std::byte> file) {
  std::optional<LogMark> newest;
  for (size_t at = 0; at < file.size(); at += kMarkStride) {
    const auto mark = decode_mark(file.subspan(at));
    if (mark && (!newest || mark->sequence > newest->sequence)) newest = mark;
  }
  return newest;
}

}  // namespace thalweg::spill
