#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

// Values that begin with their length, as they lie in tuples (src/include/varatt.h; toast_compression.c of
// src/backend/access/common).

namespace thalweg::mining {

// A value in the table's TOAST table (varatt_external).
struct ExternalPointer {
  uint32_t raw_bytes = 0;     // decompressed, with a header of four bytes
  uint32_t stored_bytes = 0;  // in chunks
  uint8_t compression = 0;    // 0 pglz, 1 lz4
  uint32_t value = 0;         // chunk_id
  bool is_compressed() const { return stored_bytes < raw_bytes - 4; }
};

struct Varlena {
  std::span<const std::byte> content;  // without its header; of one that is not compressed
  bool is_compressed = false;          // `content` is
  uint32_t raw_bytes = 0;              // of a compressed one: its content's when decompressed
  uint8_t compression = 0;
  std::optional<ExternalPointer> external;
  size_t bytes = 0;  // that it takes in the tuple
};

// Null: the bytes end within it, or it is of no known form.
std::optional<Varlena> parse_varlena(std::span<const std::byte> bytes);

// Null: it cannot be decompressed to exactly these bytes.
std::optional<std::string> decompressed(std::span<const std::byte> bytes, uint8_t compression, uint32_t raw_bytes);

}  // namespace thalweg::mining
