#pragma once

#include <cstddef>
#include <span>

#include "wal/wal_format.h"

namespace thalweg::wal {

// Whether exactly `target` came out of the bytes.
bool decompress(std::span<const std::byte> bytes, Compression compression, std::span<std::byte> target);

}  // namespace thalweg::wal
