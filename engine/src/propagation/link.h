#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"

// Settings that sender and receiver share: the two engines' identities and how they talk (README.md has the essay; the
// bytes are docs/formats/propagation.md).

namespace thalweg::propagation {

// Protocol versions of this build, a closed range. Both engines announce theirs and use the highest common one.
struct ProtocolVersions {
  uint16_t lowest = 1;
  uint16_t highest = 3;
};
// From this one on PARTITION and ORIGIN frames are sent.
inline constexpr uint16_t kVersionWithPartitions = 2;
// And from this one on PARTITION frames of truncated partitions.
inline constexpr uint16_t kVersionWithTruncatedPartitions = 3;

// How batches are compressed on the link. Values are the protocol's.
enum class Compression : uint8_t { none = 0, lz4 = 1, zstd = 2 };

// PEM files. `ca` signed both engines' certificates; each certificate names its engine as a DNS name among its subject
// alternative names. Read for every connection (sender) or at start and reload (port), so that they can be renewed.
struct TlsFiles {
  std::filesystem::path ca;
  std::filesystem::path certificate;  // the engine's own, with intermediate ones behind it
  std::filesystem::path key;          // not encrypted
};

// Mutual TLS 1.3, or nothing: plain TCP is for tests and benchmarks, and refused for addresses other than loopback.
struct LinkSecurity {
  std::optional<TlsFiles> tls = {};
  bool plain_on_loopback = false;  // must be set where `tls` is not
};

}  // namespace thalweg::propagation
