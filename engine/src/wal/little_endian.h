#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

// Internal to wal/.

namespace thalweg::wal {

static_assert(std::endian::native == std::endian::little, "the source's integers are read as they lie there");

// `bytes` has enough of them.
template <typename Integer>
Integer load(std::span<const std::byte> bytes, size_t offset) {
  Integer value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace thalweg::wal
