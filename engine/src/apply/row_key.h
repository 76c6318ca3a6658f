#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lcr/frame.h"
#include "metadata/table_metadata.h"

// The hashes by which transactions depend on one another (README.md, "Which transactions depend on each other").

namespace thalweg::apply {

// The hash of one key of a row. `seed`: the key's index, or whatever stands for it. None where a value did not come, or
// is NULL in a key whose NULLs do not collide.
std::optional<uint64_t> hash_key(uint64_t seed, const metadata::TableMetadata& table, std::span<const uint16_t> columns,
                                 const std::vector<lcr::Value>& values, bool with_nulls);

// The hash of the key's bytes, whatever the types hold equal: it stays the row's as long as its key is not written.
std::optional<uint64_t> hash_key_bytes(uint64_t seed, std::span<const uint16_t> columns,
                                       const std::vector<lcr::Value>& values);

}  // namespace thalweg::apply
