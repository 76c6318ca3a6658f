#include "instantiation/table_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace thalweg::instantiation {
namespace {

void append(std::vector<Statement>& to, std::vector<Statement> more) {
  std::ranges::move(more, std::back_inserter(to));
}

std::vector<const TableShape*> with_partitions(const std::vector<const TableShape*>& tables) {
  std::vector<const TableShape*> all;
  for (const TableShape* table : tables) {
    all.push_back(table);
    for (const TableShape& partition : table->partitions) all.push_back(&partition);
  }
  return all;
}

// The table of the stream that a relation is, or is a partition of.
const TableName& root_of(const TableName& relation, const std::vector<TableShape>& tables) {
  for (const TableShape& table : tables) {
    if (std::ranges::find(table.partitions, relation, &TableShape::name) != table.partitions.end()) return table.name;
  }
  return relation;
}

}  // namespace

int64_t TableBuild::missing() const {
  return static_cast<int64_t>(primary_keys.size() + constraints.size() + indexes.size() + foreign_keys.size() +
                              without_target.size());
}

base::Result<std::vector<TableBuild>> plan_builds(Catalogue& destination,
                                                  const std::vector<const TableShape*>& tables) {
  std::vector<TableName> names;
  std::vector<TableName> relations;
  for (const TableShape* shape : with_partitions(tables)) {
    names.push_back(shape->name);
    std::ranges::copy(relations_of(*shape), std::back_inserter(relations));
  }
  THALWEG_ASSIGN(const Catalogue::Tables there, destination.tables(names));
  Present present;
  THALWEG_ASSIGN(present.relations, destination.existing(relations));
  THALWEG_ASSIGN(present.indexes, destination.indexes(relations));
  std::vector<TableBuild> builds;
  for (const TableShape* table : tables) {
    if (!there.contains(table->name)) {
      return base::fail(base::ErrorCode::missing_table,
                        fmt::format("{} is gone from the destination.", table->name.quoted()),
                        base::ErrorSide::destination);
    }
    TableBuild build{.table = table};
    for (const TableShape* shape : with_partitions({table})) {
      build.total += static_cast<int64_t>(shape->constraints.size() + shape->indexes.size());
      const auto found = there.find(shape->name);
      if (found == there.end()) continue;
      append(build.primary_keys, plan_primary_key(*shape, &found->second));
      append(build.constraints, plan_constraints(*shape, &found->second));
      append(build.indexes, plan_indexes(*shape, present));
      append(build.identities, plan_replica_identity(*shape, &found->second));
      for (Statement& key : plan_foreign_keys(*shape, &found->second)) {
        auto& kind = present.relations.contains(*key.references) ? build.foreign_keys : build.without_target;
        kind.push_back(std::move(key));
      }
    }
    builds.push_back(std::move(build));
  }
  return builds;
}

std::vector<std::vector<Step>> build_stages(const TableBuild& build, bool is_big) {
  BuildStep last = build.identities;
  last.push_back(plan_statistics(build.table->name));
  if (!is_big) {
    BuildStep all = build.primary_keys;
    append(all, build.constraints);
    append(all, build.indexes);
    append(all, std::move(last));
    return {{std::move(all)}};
  }
  std::vector<std::vector<Step>> stages;
  for (const auto* constraints : {&build.primary_keys, &build.constraints}) {
    for (const Statement& constraint : *constraints) stages.push_back({BuildStep{constraint}});
  }
  std::vector<Step> indexes;
  for (const Statement& index : build.indexes) indexes.emplace_back(BuildStep{index});
  stages.push_back(std::move(indexes));
  stages.push_back({std::move(last)});
  return stages;
}

TableWork foreign_key_work(const TableBuild& build, TableCounters& counters, const std::vector<TableShape>& tables) {
  TableWork work{.table = {.shape = build.table, .counters = &counters},
                 .stages = {{build.foreign_keys}},
                 .locks = {build.table->name}};
  for (const Statement& key : build.foreign_keys) work.locks.push_back(root_of(*key.references, tables));
  return work;
}

}  // namespace thalweg::instantiation
