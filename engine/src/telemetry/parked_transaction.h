#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

// A transaction that could not be applied, as the error queue at the destination lists it.

namespace thalweg::telemetry {

struct ParkedTransaction {
  int64_t id = 0;
  base::Lsn commit_lsn;
  base::Xid xid;
  uint64_t lcrs = 0;
  std::vector<std::string> tables;  // schema-qualified
  std::string code;                 // of the error catalogue
  std::string message;
  std::string sqlstate;   // empty where the destination did not refuse by itself
  std::string parked_at;  // RFC 3339, UTC
};

inline constexpr uint64_t kParkedListMax = 1000;

// A part of the queue: in the order of their parking those with a higher id than `after`.
struct ParkedPart {
  int64_t after = 0;
  uint64_t limit = 100;
  // Without those that wait behind another one. The oldest of the queue waits for none, whatever it was parked with.
  bool roots_only = false;
};

}  // namespace thalweg::telemetry
