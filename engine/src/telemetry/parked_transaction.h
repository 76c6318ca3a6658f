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
  base::Lsn commit_lsn = {};
  base::Xid xid = {};
  uint64_t lcrs = 0;
  std::vector<std::string> tables = {};  // schema-qualified
  std::string code = {};                 // of the error catalogue
  std::string message = {};
  std::string sqlstate = {};       // empty where the destination did not refuse by itself
  std::string constraint = {};     // that it violates, by name; empty: none, or that is not known
  std::string parked_at = {};      // RFC 3339, UTC
  uint64_t edited = 0;             // of its changes: with other values
  uint64_t left_out = 0;           // of its changes: not to be applied
  uint64_t failed_change = 0;      // of its changes, from 1: at which it failed last; 0: at none, or that is not known
  std::string edits_version = {};  // of what was decided about its changes: another one after every decision
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

// A transaction that waits behind another, which is the root of a tree.
struct ParkedDependant {
  ParkedTransaction transaction;
  int64_t parent = 0;  // the first transaction of the tree with which it shares a row or a table
  // All of the queue that it waits behind: the first of each row or table. In commit order, kParkedBehindShownMax at
  // most.
  std::vector<int64_t> behind = {};
  uint64_t behind_total = 0;
};

inline constexpr size_t kParkedBehindShownMax = 10;

struct ParkedTree {
  std::vector<ParkedDependant> dependants;  // in commit order: a parent comes before its children
  uint64_t total = 0;                       // of all parts
  std::vector<int64_t> behind = {};         // of the root, as a dependant's
  uint64_t behind_total = 0;
  std::optional<uint64_t> next_after = {};  // of the next part; none: it is the last
};

// A part of a tree: in commit order those that committed at a higher LSN than `after`.
struct TreePart {
  uint64_t after = 0;
  uint64_t limit = 100;  // kParkedListMax at most
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
