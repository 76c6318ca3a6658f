#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

// Changes that the destination's rows kept from being applied, as the conflict log lists them
// (docs/guides/conflicts.md).

namespace thalweg::telemetry {

// Named as PostgreSQL 18 names them; it has none for a missing parent row.
enum class ConflictKind : uint8_t {
  insert_exists,
  update_exists,
  update_missing,
  delete_missing,
  foreign_key_missing,
  update_origin_differs,
  delete_origin_differs,
  multiple_unique_conflicts,
};

inline constexpr std::array<std::string_view, 8> kConflictKindNames = {
    "insert_exists",       "update_exists",         "update_missing",        "delete_missing",
    "foreign_key_missing", "update_origin_differs", "delete_origin_differs", "multiple_unique_conflicts"};

constexpr std::string_view name_of(ConflictKind kind) { return kConflictKindNames[static_cast<size_t>(kind)]; }

// By ConflictKind.
using ConflictCounts = std::array<uint64_t, kConflictKindNames.size()>;

struct LoggedColumn {
  std::string name;
  bool is_identity = false;  // the destination's row is found by it
  // Outer: whether it is known at all. Inner: NULL or the value as the destination's server writes it.
  using Value = std::optional<std::optional<std::string>>;
  Value before = {};
  Value wanted = {};
  Value there = {};  // at the destination, before the decision
};

struct LoggedConflict {
  int64_t id = 0;
  base::Lsn commit_lsn;
  std::string committed_at;  // RFC 3339, UTC
  base::Xid xid;
  uint64_t change = 0;  // in the transaction, from 1
  std::string schema_name;
  std::string table_name;
  std::string operation;  // INSERT, UPDATE, DELETE
  std::string kind;       // empty: an error that is no conflict
  std::string sqlstate;   // empty where the destination did not refuse by itself
  std::string message;
  std::string action;  // discard, overwrite, skip
  std::vector<LoggedColumn> columns;
  bool has_row = false;   // the destination had one
  std::string logged_at;  // RFC 3339, UTC
};

// A page of the log.
struct LoggedConflicts {
  std::vector<LoggedConflict> conflicts = {};
  bool more = false;  // there may be older ones
};

inline constexpr uint64_t kConflictListMax = 1000;
// A page ends behind the entry whose values exceed it.
inline constexpr uint64_t kConflictPageBytesMax = 8 << 20;
// The log keeps no longer beginning of a value.
inline constexpr uint64_t kLoggedCharactersMax = 100'000;

// A part of the log: the newest first, those with a lower id than `before`.
struct ConflictPart {
  int64_t before = 0;  // 0: from the newest
  uint64_t limit = 100;
  std::string kind = {};  // empty: any; "error": those that are no conflict
  std::string schema_name = {};
  std::string table_name = {};     // with schema_name; empty: any
  uint64_t characters_max = 1000;  // of each value
};

struct LoggedCount {
  std::string schema_name;
  std::string table_name;
  std::string kind;      // empty: no conflict
  std::string sqlstate;  // of those alone
  std::string action;
  uint64_t changes = 0;
  std::string newest;  // RFC 3339, UTC
};

}  // namespace thalweg::telemetry
