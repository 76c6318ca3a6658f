#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>

#include "base/log.h"
#include "instantiation/instantiation_state.h"
#include "pg/text_array.h"
#include "pg/value_forms.h"

// The copy of the tables' rows, and what is built once they are there.

namespace thalweg::instantiation {
namespace {

// Above it each index is a step of its own. Below it a round trip and a commit cost more than an index.
constexpr int64_t kBigRows = 100'000;
constexpr std::chrono::milliseconds kPredecessorsEnd = std::chrono::seconds(10);

// A table's, as the session's snapshot has them, and a transaction that it has seen the end of (32 bits of it).
constexpr const char* kLeavesInSnapshot =
    "WITH RECURSIVE tree (relation) AS (SELECT $1::oid UNION ALL SELECT i.inhrelid FROM tree t "
    "JOIN pg_catalog.pg_inherits i ON i.inhparent = t.relation) SELECT c.oid, n.nspname, c.relname, "
    "(pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::numeric - 1) % 4294967296 "
    "FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.relation AND c.relkind <> 'p' "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";

std::vector<Step> range_steps(const std::vector<RangeRecord>& records) {
  std::vector<Step> steps;
  for (const RangeRecord& record : records) {
    if (!record.copied) steps.emplace_back(RangeStep{.number = record.number, .range = record.range});
  }
  return steps;
}

// A long step that begins last would leave the other workers without work.
void sort_biggest_first(std::vector<TableWork>& works) {
  std::ranges::stable_sort(works, std::greater{},
                           [](const TableWork& work) { return work.table.counters->rows_estimated.load(); });
}

}  // namespace

// The server goes on with what a killed engine's worker had begun, an index say, and would complete it after this one
// has planned what is missing.
base::Result<void> Instantiation::State::end_predecessors() {
  if (copier) return {};
  THALWEG_ASSIGN(const pg::Rows left,
                 destination->connection.query(
                     "WITH predecessor AS MATERIALIZED (SELECT pid FROM pg_catalog.pg_stat_activity WHERE datname = "
                     "pg_catalog.current_database() AND usename = current_user AND application_name = "
                     "pg_catalog.left($1, 63)) "
                     "SELECT pid FROM predecessor WHERE NOT pg_catalog.pg_terminate_backend(pid, $2::bigint)",
                     {copy_application_name(options.stream_id), std::to_string(kPredecessorsEnd.count())}));
  if (left.size() == 0) return {};
  return base::fail(base::ErrorCode::stream_in_use,
                    fmt::format("Session {} of an earlier initial copy has not ended at the destination within {} s.",
                                left.text(0, 0), kPredecessorsEnd / std::chrono::seconds(1)));
}

Copier& Instantiation::State::workers() {
  if (!copier) {
    copier.emplace(CopyOptions{.stream_id = options.stream_id,
                               .source_conninfo = options.source_conninfo,
                               .destination_conninfo = options.destination_conninfo,
                               .workers = options.copy_workers,
                               .index_memory_mb = options.copy_index_memory_mb,
                               .board = options.board,
                               .mask_key = options.mask_key},
                   progress, stop);
  }
  return *copier;
}

base::Result<void> Instantiation::State::plan_ranges(const std::vector<const TableShape*>& waiting) {
  std::vector<TablePlan> plans;
  for (const TableShape* shape : waiting) {
    if (known.at(shape->name).planned) continue;
    TablePlan& plan = plans.emplace_back(TablePlan{.table = shape->name});
    plan.key = key_columns(*shape);
    THALWEG_ASSIGN(plan.rows_estimated, estimate_rows(copier->source(), *shape));
    THALWEG_ASSIGN(plan.ranges, split(copier->source(), *shape, plan.rows_estimated, options.copy_range_rows));
    TableCounters& counters = progress.table(shape->name);
    counters.rows_estimated = plan.rows_estimated;
    counters.ranges_total = static_cast<int64_t>(plan.ranges.size());
  }
  if (plans.empty()) return {};
  return bookkeeping->plan_tables(plans);
}

base::Result<Builds> Instantiation::State::plan_indexes(const std::vector<const TableShape*>& tables) {
  Builds builds;
  if (tables.empty()) return builds;
  std::vector<const TableShape*> there;
  for (const TableShape* table : tables) there.push_back(&shape_there(*table));
  THALWEG_ASSIGN(std::vector<TableBuild> planned, plan_builds(destination->catalogue, there));
  for (size_t i = 0; i < planned.size(); ++i) {  // in the order of the tables
    TableBuild& build = planned[i];
    progress.plan_indexes(progress.table(tables[i]->name), build.total, build.total - build.missing());
    builds.emplace(tables[i]->name, std::move(build));
  }
  return builds;
}

// A table that some earlier snapshot filled in part gets its key before the ranges that are left: they replace rows by
// it. Its other constraints may not hold until apply has passed the youngest snapshot: add_constraints() makes them.
base::Result<std::vector<TableWork>> Instantiation::State::plan_copy(const std::vector<const TableShape*>& waiting) {
  std::vector<std::string> oids;
  std::vector<const TableShape*> created;
  for (const TableShape* shape : waiting) {
    oids.push_back(std::to_string(shape->oid));
    if (known.at(shape->name).created) created.push_back(shape);
  }
  THALWEG_ASSIGN(const auto forms,
                 pg::value_forms_by_relation(source->connection, "SELECT unnest($1::oid[])", pg::text_array(oids)));
  THALWEG_ASSIGN(const Builds builds, plan_indexes(created));
  THALWEG_ASSIGN(const std::vector<RangeRecord> records, bookkeeping->ranges());
  std::map<TableName, std::vector<RangeRecord>> ranges;
  for (const RangeRecord& record : records) ranges[record.table].push_back(record);

  std::vector<TableWork> works;
  for (const TableShape* shape : waiting) {
    const std::vector<RangeRecord>& of_table = ranges[shape->name];
    const auto form = forms.find(shape->oid);
    const auto build = builds.find(shape->name);
    const auto sent = sent_tables.find(shape->name);
    TableWork work{.table = {.shape = shape,
                             .there = &sent_shape(*shape),
                             .text = form != forms.end() && (form->second.needs_text || form->second.holds_type_oids),
                             .resumed = std::ranges::any_of(of_table, &RangeRecord::copied),
                             .row_filter = row_filters[shape->name],
                             .sent = sent == sent_tables.end() ? nullptr : &sent->second,
                             .counters = &progress.table(shape->name)}};
    if (work.table.resumed) {
      std::vector<Step> left = range_steps(of_table);
      if (left.empty()) progress.end_rows(*work.table.counters);
      if (build != builds.end()) work.stages.push_back({BuildStep(build->second.primary_keys)});
      work.stages.push_back(std::move(left));
    } else {
      work.stages.push_back(range_steps(of_table));
      const bool big = work.table.counters->rows_estimated > kBigRows;
      std::ranges::move(build == builds.end()
                            ? std::vector<std::vector<Step>>{{BuildStep{plan_statistics(shape_there(*shape).name)}}}
                            : build_stages(build->second, big),
                        std::back_inserter(work.stages));
      built.insert(shape->name);
    }
    works.push_back(std::move(work));
  }
  sort_biggest_first(works);
  return works;
}

// The tables that the workers should have copied, but for which their snapshot is too old.
base::Result<std::set<TableName>> Instantiation::State::postponed_tables() {
  std::set<TableName> postponed;
  THALWEG_ASSIGN(const std::vector<RangeRecord> ranges, bookkeeping->ranges());
  for (const RangeRecord& range : ranges) {
    const auto shape = std::ranges::find(shapes, range.table, &TableShape::name);
    if (range.copied || shape == shapes.end() || !waits_for_copy(*shape)) continue;
    if (!postponed.insert(range.table).second) continue;
    built.erase(range.table);
    base::log_event(base::LogLevel::info, "snapshot_too_old",
                    {{"stream", options.stream_id}, {"table", range.table.quoted()}});
  }
  return postponed;
}

// Partitions that came between the look at the tables and the snapshot are copied, too: one may go before the next
// look.
base::Result<void> Instantiation::State::note_new_leaves(const std::vector<const TableShape*>& waiting,
                                                         const Snapshot& snapshot) {
  for (const TableShape* shape : waiting) {
    if (shape->kind != 'p') continue;
    THALWEG_ASSIGN(const pg::Rows leaves, copier->source().query(kLeavesInSnapshot, {std::to_string(shape->oid)}));
    std::vector<WrittenLeaf> added;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const auto relation = static_cast<uint32_t>(leaves.integer(i, 0));
      if (known.at(shape->name).identity.has_leaf(relation)) continue;
      added.push_back({.relation = relation,
                       .name = {std::string(leaves.text(i, 1)), std::string(leaves.text(i, 2))},
                       .commit_lsn = snapshot.consistent_point,
                       .xid = static_cast<uint32_t>(leaves.integer(i, 3))});
    }
    if (!added.empty()) THALWEG_TRY(bookkeeping->note_partitions(shape->name, added));
  }
  return {};
}

base::Result<bool> Instantiation::State::copy_tables(const Snapshot& snapshot) {
  THALWEG_TRY(end_predecessors());
  THALWEG_TRY(workers().open(snapshot));
  std::vector<const TableShape*> waiting;
  for (const TableShape& shape : shapes) {
    if (waits_for_copy(shape)) waiting.push_back(&shape);
  }
  THALWEG_TRY(note_new_leaves(waiting, snapshot));
  THALWEG_TRY(plan_ranges(waiting));
  THALWEG_ASSIGN(std::vector<TableWork> works, plan_copy(waiting));
  THALWEG_TRY(copier->run(std::move(works)));

  THALWEG_ASSIGN(const std::set<TableName> postponed, postponed_tables());
  const ProgressReport report = progress.report();
  std::vector<FinishedTable> finished;
  for (const TableShape* shape : waiting) {
    if (postponed.contains(shape->name)) continue;
    const auto shown = std::ranges::find(report.tables, shape->name, &TableProgress::table);
    finished.push_back({.table = shape->name, .seconds = shown->seconds});
  }
  THALWEG_TRY(bookkeeping->finish_tables(finished, snapshot.consistent_point));
  return postponed.empty();
}

base::Result<void> Instantiation::State::build_indexes(const Builds& builds) {
  std::vector<TableWork> works;
  for (const auto& [name, build] : builds) {
    if (!built.insert(name).second) continue;
    TableCounters& counters = progress.table(name);
    works.push_back({.table = {.shape = build.table, .counters = &counters},
                     .stages = build_stages(build, counters.rows_estimated > kBigRows)});
  }
  if (works.empty()) return {};
  sort_biggest_first(works);
  THALWEG_TRY(workers().open());
  return copier->run(std::move(works));
}

base::Result<void> Instantiation::State::build_foreign_keys(const Builds& builds) {
  std::vector<TableWork> works;
  for (const auto& [name, build] : builds) {
    TableCounters& counters = progress.table(name);
    if (!build.foreign_keys.empty()) works.push_back(foreign_key_work(build, counters, shapes_there));
    for (const Statement& key : build.without_target) {
      const std::string warning =
          fmt::format("{} left out: {} does not exist at the destination", key.in_words(), key.references->quoted());
      THALWEG_TRY(bookkeeping->warn(warning));
      progress.warn(warning);
      progress.add_built(counters, 1);
    }
  }
  if (works.empty()) return {};
  sort_biggest_first(works);
  THALWEG_TRY(workers().open());
  return copier->run(std::move(works));
}

}  // namespace thalweg::instantiation
