#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "pg/connection.h"
#include "rules/rule_table.h"

// Tables of a source as conditions see them: what its catalogue says, and a table's description does not.

namespace thalweg::rules {

// Fills the collations, the labels of enums, and whether it is partitioned, as the source has them now. A column that
// it no longer has gets a collation that no condition can use. False: it has no such table any more.
base::Result<bool> complete(pg::Connection& source, base::RelationId relation, RuleTable& table);

// The table as it is now; none: there is none of this name.
base::Result<std::optional<RuleTable>> read_table(pg::Connection& source, std::string_view schema,
                                                  std::string_view table);

struct RelationNow {
  base::RelationId relation = {};
  bool is_partition = false;
  RuleTable table = {};  // without what identifies its rows, and which values may be long
};
// Those of the relations that are tables now, at the cost of few questions, however many they are.
base::Result<std::vector<RelationNow>> read_relations(pg::Connection& source,
                                                      const std::vector<base::RelationId>& relations);

}  // namespace thalweg::rules
