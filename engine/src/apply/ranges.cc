#include "apply/ranges.h"

#include <algorithm>

namespace thalweg::apply {

namespace {

constexpr size_t kRangeBytes = 16;

int nibble(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

void put(std::vector<std::byte>& out, base::Lsn lsn) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<std::byte>(lsn.value >> shift & 0xFF));
}

base::Lsn get(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return {value};
}

}  // namespace

std::vector<std::byte> bytes_from_hex(std::string_view text) {
  if (!text.starts_with("\\x")) return {};
  text.remove_prefix(2);
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = nibble(text[i]);
    const int low = nibble(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

void LsnRanges::add(LsnRange range) {
  // The usual case: behind or onto the last one.
  auto at = std::ranges::lower_bound(ranges_, range.first, {}, &LsnRange::end);
  if (at == ranges_.end() || range.end < at->first) {
    ranges_.insert(at, range);
    return;
  }
  at->first = std::min(at->first, range.first);
  at->end = std::max(at->end, range.end);
  auto next = at + 1;
  while (next != ranges_.end() && next->first <= at->end) {
    at->end = std::max(at->end, next->end);
    next = ranges_.erase(next);
    at = next - 1;
  }
}

bool LsnRanges::contains(base::Lsn lsn) const {
  const auto at = std::ranges::upper_bound(ranges_, lsn, {}, &LsnRange::end);
  return at != ranges_.end() && at->first <= lsn;
}

void LsnRanges::prune(base::Lsn lsn) {
  std::erase_if(ranges_, [lsn](const LsnRange& range) { return range.end <= lsn; });
}

std::vector<std::byte> LsnRanges::encode() const {
  std::vector<std::byte> out;
  out.reserve(ranges_.size() * kRangeBytes);
  for (const LsnRange& range : ranges_) {
    put(out, range.first);
    put(out, range.end);
  }
  return out;
}

base::Result<LsnRanges> LsnRanges::decode_hex(std::string_view text) {
  const auto bytes = bytes_from_hex(text);
  if (bytes.size() * 2 + 2 != text.size() || bytes.size() % kRangeBytes != 0) {
    return base::fail(base::ErrorCode::database_error, "thalweg.apply_progress.ranges is not what an applier wrote",
                      base::ErrorSide::destination);
  }
  LsnRanges ranges;
  for (size_t at = 0; at < bytes.size(); at += kRangeBytes) {
    const LsnRange range{.first = get(std::span(bytes).subspan(at)), .end = get(std::span(bytes).subspan(at + 8))};
    if (range.end <= range.first) {
      return base::fail(base::ErrorCode::database_error, "thalweg.apply_progress.ranges has an empty range",
                        base::ErrorSide::destination);
    }
    ranges.add(range);
  }
  return ranges;
}

}  // namespace thalweg::apply
