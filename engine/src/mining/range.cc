#include "mining/conversions.h"
#include "wal/heap_page.h"
#include "wal/little_endian.h"

// range_send and multirange_send of src/backend/utils/adt/{rangetypes,multirangetypes}.c. Places count from the value's
// length, which `content` does not have.

namespace thalweg::mining {

namespace {

constexpr size_t kLengthBytes = 4;
constexpr uint8_t kEmpty = 0x01;
constexpr uint8_t kLowerIsInfinite = 0x08;
constexpr uint8_t kUpperIsInfinite = 0x10;
constexpr uint8_t kLowerIsNull = 0x20;
constexpr uint8_t kUpperIsNull = 0x40;

// Appends the flags and the bounds, the first of which begins at `at`. Null: they are damaged. Else where they end.
std::optional<size_t> append_bounds(const SendForm& bound, uint8_t flags, std::span<const std::byte> content, size_t at,
                                    std::string& out) {
  out += static_cast<char>(flags);
  const bool has_lower = (flags & (kEmpty | kLowerIsInfinite | kLowerIsNull)) == 0;
  const bool has_upper = (flags & (kEmpty | kUpperIsInfinite | kUpperIsNull)) == 0;
  const auto append = [&] {
    if (at - kLengthBytes > content.size()) return false;
    const auto bytes = append_member(bound, content.subspan(at - kLengthBytes), out);
    at += bytes.value_or(0);
    return bytes.has_value();
  };
  if (has_lower && !append()) return std::nullopt;
  if (!has_upper) return at;
  at = wal::begin_of_value(content, at, bound.length, bound.align, kLengthBytes);
  return append() ? std::optional{at} : std::nullopt;
}

}  // namespace

// The type's oid, the bounds, the flags.
bool append_range(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kBoundsAt = kLengthBytes + sizeof(uint32_t);
  if (content.size() < sizeof(uint32_t) + 1) return false;
  const auto flags = wal::load<uint8_t>(content, content.size() - 1);
  return append_bounds(*form.element, flags, content.first(content.size() - 1), kBoundsAt, out).has_value();
}

// The type's oid, the number of ranges, where each but the first lies, the flags of each, then their bounds.
bool append_multirange(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kCountAt = sizeof(uint32_t);
  constexpr size_t kPlacesAt = kCountAt + sizeof(uint32_t);
  const SendForm& bound = *form.element;
  if (content.size() < kPlacesAt) return false;
  const size_t count = wal::load<uint32_t>(content, kCountAt);
  append_network(out, static_cast<uint32_t>(count));
  if (count == 0) return true;
  const size_t flags_at = kPlacesAt + (count - 1) * sizeof(uint32_t);
  if (flags_at + count > content.size()) return false;
  size_t at = kLengthBytes + flags_at + count;
  for (size_t i = 0; i < count; ++i) {
    at = wal::aligned(at, bound.align);
    const size_t length_at = out.size();
    append_network(out, uint32_t{0});
    const auto end = append_bounds(bound, wal::load<uint8_t>(content, flags_at + i), content, at, out);
    if (!end) return false;
    at = *end;
    if (!set_length(out, length_at)) return false;
  }
  return true;
}

}  // namespace thalweg::mining
