#pragma once

#include <cstdint>
#include <optional>
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
  uint64_t edited = 0;    // of its changes: with other values
  uint64_t left_out = 0;  // of its changes: not to be applied
};

inline constexpr uint64_t kParkedListMax = 1000;

// A part of the queue: in the order of their parking those with a higher id than `after`.
struct ParkedPart {
  int64_t after = 0;
  uint64_t limit = 100;
  // Without those that wait behind another one. The oldest of the queue waits for none, whatever it was parked with.
  bool roots_only = false;
  std::string cause = {};  // those with this cause only; empty: any
};

// Transactions that were parked for one cause, as far as code, SQLSTATE and message tell.
struct ParkedCause {
  std::string id;  // names it in requests: the same for the same cause
  std::string code;
  std::string sqlstate;
  std::string table;   // schema-qualified, quoted; empty where the message names none
  std::string object;  // the constraint, column or type; empty where the message names none
  uint64_t transactions = 0;
  std::string oldest;  // when the first of them was parked: RFC 3339, UTC
};

inline constexpr uint64_t kParkedCausesMax = 100;

// The transactions that are executed: one, or those with one cause, and those that wait behind them; else the whole
// queue.
struct ParkedChoice {
  std::optional<int64_t> id = {};
  std::string cause = {};
  std::string role = {};  // at the destination, as which their changes are applied; empty: the apply's own
};

}  // namespace thalweg::telemetry
