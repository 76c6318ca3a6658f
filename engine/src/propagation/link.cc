#include "propagation/link.h"

namespace thalweg::propagation {

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::lz4:
      return "lz4";
    case Compression::zstd:
      return "zstd";
  }
  return "unknown";
}

std::optional<Compression> parse_compression(std::string_view name) {
  for (const Compression compression : {Compression::none, Compression::lz4, Compression::zstd}) {
    if (name_of(compression) == name) return compression;
  }
  return std::nullopt;
}

}  // namespace thalweg::propagation
