#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::capture {

// Makes pgoutput messages for tests, field by field in network byte order.
class PgoutputBytes {
 public:
  explicit PgoutputBytes(char kind) { u8(static_cast<uint8_t>(kind)); }
  PgoutputBytes& u8(uint8_t value) { return integer(value, 1); }
  PgoutputBytes& u16(uint16_t value) { return integer(value, 2); }
  PgoutputBytes& u32(uint32_t value) { return integer(value, 4); }
  PgoutputBytes& u64(uint64_t value) { return integer(value, 8); }
  PgoutputBytes& text(std::string_view value) {
    raw(value);
    return u8(0);
  }
  PgoutputBytes& raw(std::string_view value) {
    for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  // A tuple of text values; "\0" alone stands for NULL.
  PgoutputBytes& tuple(const std::vector<std::string>& values) {
    u16(static_cast<uint16_t>(values.size()));
    for (const auto& value : values) {
      if (value == std::string(1, '\0')) {
        raw("n");
      } else {
        raw("t").u32(static_cast<uint32_t>(value.size())).raw(value);
      }
    }
    return *this;
  }
  operator std::span<const std::byte>() const { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  PgoutputBytes& integer(uint64_t value, int size) {
    for (int i = size - 1; i >= 0; --i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  std::vector<std::byte> bytes_;
};

inline PgoutputBytes begin_bytes(uint32_t xid) { return PgoutputBytes('B').u64(0x100).u64(1'000'000).u32(xid); }
inline PgoutputBytes commit_bytes() { return PgoutputBytes('C').u8(0).u64(0x100).u64(0x140).u64(1'000'000); }
// A table of text columns, the first of them its key. `xid` 0: not in a stream block.
inline PgoutputBytes relation_bytes(uint32_t xid, uint32_t relation, std::string_view name,
                                    const std::vector<std::string>& columns) {
  PgoutputBytes bytes('R');
  if (xid != 0) bytes.u32(xid);
  bytes.u32(relation).text("public").text(name).raw("d").u16(static_cast<uint16_t>(columns.size()));
  for (size_t i = 0; i < columns.size(); ++i) bytes.u8(i == 0 ? 1 : 0).text(columns[i]).u32(25).u32(0xFFFFFFFF);
  return bytes;
}
inline PgoutputBytes insert_bytes(uint32_t xid, uint32_t relation, const std::vector<std::string>& values) {
  PgoutputBytes bytes('I');
  if (xid != 0) bytes.u32(xid);
  return bytes.u32(relation).raw("N").tuple(values);
}

}  // namespace thalweg::capture
