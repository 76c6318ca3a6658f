#include "wal/compression.h"

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>

// Of PostgreSQL's libpgcommon, whose header needs the server's (src/include/common/pg_lzcompress.h).
extern "C" int32_t pglz_decompress(const char* source, int32_t source_bytes, char* target, int32_t target_bytes,
                                   bool check_complete);

namespace thalweg::wal {

bool decompress(std::span<const std::byte> bytes, Compression compression, std::span<std::byte> target) {
  const auto* const source = reinterpret_cast<const char*>(bytes.data());
  auto* const out = reinterpret_cast<char*>(target.data());
  const auto source_bytes = static_cast<int>(bytes.size());
  const auto target_bytes = static_cast<int>(target.size());
  switch (compression) {
    case Compression::none:
      if (bytes.size() != target.size()) return false;
      std::memcpy(out, source, bytes.size());
      return true;
    case Compression::pglz:
      return pglz_decompress(source, source_bytes, out, target_bytes, true) == target_bytes;
    case Compression::lz4:
      return LZ4_decompress_safe(source, out, source_bytes, target_bytes) == target_bytes;
    case Compression::zstd:
      return ZSTD_decompress(out, target.size(), source, bytes.size()) == target.size();
  }
  return false;
}

}  // namespace thalweg::wal
