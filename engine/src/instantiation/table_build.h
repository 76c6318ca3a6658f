#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/catalogue.h"
#include "instantiation/schema_plan.h"
#include "instantiation/shape.h"
#include "instantiation/work_queue.h"

// The parts that tables lack once their rows are there, and the steps that make them.

namespace thalweg::instantiation {

struct TableBuild {
  const TableShape* table = nullptr;
  // Statements for what the destination lacks, of the table and its partitions.
  std::vector<Statement> primary_keys = {};
  std::vector<Statement> constraints = {};
  std::vector<Statement> indexes = {};
  std::vector<Statement> identities = {};  // for whoever replicates from here; each needs its table's indexes
  std::vector<Statement> foreign_keys = {};
  std::vector<Statement> without_target = {};  // foreign keys to tables that the destination does not have
  int64_t total = 0;                           // of these kinds, whether there or not

  int64_t missing() const;
};

// One look at the destination for all tables; a partition that somebody dropped there is left out. Fails for a table
// that is gone. The builds are in the order of the tables, and point to them.
base::Result<std::vector<TableBuild>> plan_builds(Catalogue& destination, const std::vector<const TableShape*>& tables);

// All but foreign keys, then statistics. A big table's statements are steps of their own: constraints one after the
// other, since each locks the table, then indexes at the same time. A small one's are one step.
std::vector<std::vector<Step>> build_stages(const TableBuild& build, bool is_big);
// One step with every foreign key; no two at once that lock one table.
TableWork foreign_key_work(const TableBuild& build, TableCounters& counters, const std::vector<TableShape>& tables);

}  // namespace thalweg::instantiation
