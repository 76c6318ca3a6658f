#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

// Compressed files, unpacked in bounded memory.

namespace thalweg::shipment {

enum class Packing : uint8_t { none, gzip, zstd, lz4 };
// The end of such a file's name; empty: it is not packed.
std::string_view suffix_of(Packing packing);

// The whole of `from`, unpacked, at the end of `to`. A protocol_violation: it cannot be read, is damaged, incomplete,
// or larger than `bytes_max`.
base::Result<void> unpack(base::File& from, Packing packing, base::File& to, uint64_t bytes_max);

}  // namespace thalweg::shipment
