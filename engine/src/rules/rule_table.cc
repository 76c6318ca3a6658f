#include "rules/rule_table.h"

namespace thalweg::rules {

RuleTable table_of(const lcr::TableDescription& description) {
  RuleTable table{.schema = description.schema_name,
                  .name = description.table_name,
                  .replica_identity = description.replica_identity,
                  .columns = {}};
  for (const lcr::ColumnDescription& column : description.columns) {
    table.columns.push_back({.name = column.name, .type = column.type, .is_key = column.is_key, .enum_labels = {}});
  }
  return table;
}

}  // namespace thalweg::rules
