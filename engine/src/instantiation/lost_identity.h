#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instantiation/table_name.h"

// Published tables, or leaves of partitioned ones, that have no usable replica identity any more, in words. PostgreSQL
// says so only to whoever updates or deletes their rows (CheckCmdReplicaIdentity). Plain values and pure functions.

namespace thalweg::instantiation {

enum class IdentityFlaw : uint8_t {
  no_key,      // it is DEFAULT, and there is no primary key
  nothing,     // it is NOTHING
  dropped,     // the index of USING INDEX is gone
  invalid,     // its index is
  deferrable,  // its index is
  generated,   // its index has a generated column
};

struct LostIdentity {
  uint32_t relation = 0;  // pg_class.oid
  TableName name = {};
  IdentityFlaw flaw = IdentityFlaw::no_key;
  // An index that identifies rows as soon as it is chosen, without the schema; empty: there is none
  std::string usable_index = {};
  bool is_usable_index_primary = false;
};

// Effects on whoever changes rows at the source, and why.
std::string reason_of(const LostIdentity& table);
// `lost`: leaves of the partitioned table `root`.
std::string reason_of_leaves(const TableName& root, const std::vector<LostIdentity>& lost);

// The cure in words, with its statements; other ways to the same end may follow them.
std::string cure_of(const LostIdentity& table);
std::string cure_of_leaves(const TableName& root, const std::vector<LostIdentity>& lost);

// The cure's statements alone, one a line, for the source; those of the leaves that the words name.
std::string cure_sql_of(const LostIdentity& table);
std::string cure_sql_of_leaves(const std::vector<LostIdentity>& lost);

}  // namespace thalweg::instantiation
