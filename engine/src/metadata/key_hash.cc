#include "metadata/key_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thalweg::metadata {

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace thalweg::metadata
