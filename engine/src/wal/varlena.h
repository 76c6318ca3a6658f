#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

// Values as they lie in tuples, also those that begin with their length (src/include/varatt.h, postgres.h before 16;
// toast_compression.c of src/backend/access/common).

namespace thalweg::wal {

// A value in the table's TOAST table (varatt_external).
struct ExternalPointer {
  uint32_t raw_bytes = 0;     // decompressed, with a header of four bytes
  uint32_t stored_bytes = 0;  // in chunks
  uint8_t compression = 0;    // 0 pglz, 1 lz4
  uint32_t value = 0;         // chunk_id
  bool is_compressed() const { return stored_bytes < raw_bytes - 4; }
};

// A value, without its length. One of a fixed length is its content and nothing else.
struct StoredValue {
  std::span<const std::byte> content;
  bool is_compressed = false;  // `content` is
  uint32_t raw_bytes = 0;      // of a compressed one: its content's when decompressed
  uint8_t compression = 0;
  std::optional<ExternalPointer> external = {};  // of one that has no content here
  size_t bytes = 0;                              // that it takes in the tuple
};

// The value at the begin of these bytes. `length`: attlen, -1 of one that begins with its length. Null: the bytes end
// within it, or it is of no known form.
std::optional<StoredValue> parse_value(std::span<const std::byte> bytes, int16_t length);
inline std::optional<StoredValue> parse_varlena(std::span<const std::byte> bytes) { return parse_value(bytes, -1); }

// Null: it cannot be decompressed to exactly these bytes.
std::optional<std::string> decompressed(std::span<const std::byte> bytes, uint8_t compression, uint32_t raw_bytes);

// The content of a value that is not stored elsewhere, decompressed into `plain` if need be. Null: it cannot be.
std::optional<std::span<const std::byte>> plain_content(const StoredValue& value, std::string& plain);

}  // namespace thalweg::wal
