#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Hashes of key values: what the coordinator compares to find dependent transactions.

namespace thalweg::metadata {

// XXH3-64 of `bytes` with a seed.
uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed);
// Mixes the hash of one more column in; order matters.
constexpr uint64_t mix_hash(uint64_t hash, uint64_t more) {
  hash ^= more + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xD6E8FEB86659FD93ULL;
}

}  // namespace thalweg::metadata
