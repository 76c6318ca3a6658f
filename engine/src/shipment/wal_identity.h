#pragma once

#include <cstdint>

namespace thalweg::shipment {

// The server whose WAL it is, and how that is cut into files.
struct WalIdentity {
  uint64_t system_identifier = 0;
  uint32_t timeline = 0;  // 0: not known yet
  uint32_t segment_bytes = 16U << 20;

  bool operator==(const WalIdentity&) const = default;
};

}  // namespace thalweg::shipment
