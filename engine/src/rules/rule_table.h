#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "lcr/frame.h"

namespace thalweg::rules {

// How a column's text compares at the source. A TABLE frame does not say it: what comes from one alone is `other`.
enum class Collation : uint8_t {
  c,                 // bytes decide: "C", "POSIX"
  other,             // any other one in which different bytes are never equal
  nondeterministic,  // different bytes may be equal
};

struct RuleColumn {
  std::string name;
  base::TypeId type;
  bool is_key = false;  // part of the replica identity
  Collation collation = Collation::other;
  uint32_t collation_id = 0;             // its oid; 0: none, or not asked for. A TABLE frame does not say it
  std::vector<std::string> enum_labels;  // of an enum type; empty: another type
  // A value may be stored apart (TOAST): then an update that leaves it as it was does not bring it. A TABLE frame does
  // not say it.
  bool may_be_long = false;
};

// One version of a table, as conditions see it.
struct RuleTable {
  std::string schema;
  std::string name;
  char replica_identity = 'd';
  Collation database_collation = Collation::other;
  bool is_utf8 = true;  // the database's encoding; the engine sees every text in UTF-8
  // A partition's changes come as its root's. pgoutput then says by the root's replica identity whether an old row is
  // whole, and which columns identify one, while the partition's own has decided both: with FULL at the root, nothing
  // of an old row can be believed, and otherwise only a key column that every partition's identity has.
  bool is_partitioned = false;
  std::vector<RuleColumn> columns;
};

RuleTable table_of(const lcr::TableDescription& description);

}  // namespace thalweg::rules
