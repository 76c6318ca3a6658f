#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

// Integers in network byte order and bounded reading, for frame bodies.

namespace thalweg::lcr {

template <std::integral Integer>
Integer load_network(const std::byte* from) {
  Integer value;
  std::memcpy(&value, from, sizeof(value));
  if constexpr (sizeof(Integer) > 1 && std::endian::native == std::endian::little) {
    auto raw = static_cast<std::make_unsigned_t<Integer>>(value);
    std::make_unsigned_t<Integer> swapped = 0;
    for (size_t i = 0; i < sizeof(Integer); ++i) {  // compilers make one bswap of it
      swapped = static_cast<std::make_unsigned_t<Integer>>(swapped << 8 | (raw & 0xFF));
      raw = static_cast<std::make_unsigned_t<Integer>>(raw >> 8);
    }
    value = static_cast<Integer>(swapped);
  }
  return value;
}

// Reads from the front of untrusted bytes. A read past the end fails and leaves the reader failed; it never throws and
// never reads outside. Owner: one thread; the bytes outlive it.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::integral Integer>
  Integer integer() {
    const auto bytes = take(sizeof(Integer));
    return bytes.empty() ? Integer{0} : load_network<Integer>(bytes.data());
  }
  // Exactly `size` bytes, or empty and failed.
  std::span<const std::byte> take(size_t size) {
    if (size > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::string_view text(size_t size) {
    const auto bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool failed() const { return failed_; }
  size_t remaining() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

// Writes into memory whose size the caller computed; asserts that it fits. Owner: one thread.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> out) : rest_(out) {}

  template <std::integral Integer>
  void integer(Integer value) {
    const Integer swapped = load_network<Integer>(reinterpret_cast<const std::byte*>(&value));
    bytes({reinterpret_cast<const std::byte*>(&swapped), sizeof(swapped)});
  }
  void bytes(std::span<const std::byte> from);
  void text(std::string_view from) { bytes(std::as_bytes(std::span(from))); }
  std::span<std::byte> rest() const { return rest_; }

 private:
  std::span<std::byte> rest_;
};

}  // namespace thalweg::lcr
