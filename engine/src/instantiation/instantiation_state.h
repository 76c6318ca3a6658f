#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "instantiation/bookkeeping.h"
#include "instantiation/captured_tables.h"
#include "instantiation/catalogue.h"
#include "instantiation/copier.h"
#include "instantiation/destination_schema.h"
#include "instantiation/instantiation.h"
#include "instantiation/sent_table.h"
#include "instantiation/source_look.h"
#include "instantiation/table_build.h"

// An Instantiation's state between its steps. Included by its own sources only: instantiation.cc has the steps,
// assessment.cc what comes before the copy, table_copy.cc the copy and what follows the rows.

namespace thalweg::instantiation {

struct Side {
  pg::Connection connection;
  Catalogue catalogue;
  explicit Side(pg::Connection the_connection) : connection(std::move(the_connection)), catalogue(connection) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
};

using Builds = std::map<TableName, TableBuild>;

struct Instantiation::State {
  InstantiationOptions options;
  Progress& progress;
  const std::atomic<bool>& stop;
  std::unique_ptr<Side> source;
  std::unique_ptr<Side> destination;
  std::optional<Bookkeeping> bookkeeping;
  bool fresh = false;
  std::vector<TableShape> shapes;                 // of the source, in the options' order
  TableRecords known;                             // tables with a history
  std::set<TableName> absent;                     // at the source, and never copied: the others go on without
  std::map<TableName, TableIdentity> identities;  // of tables that are about to be copied
  std::map<TableName, std::string> row_filters;   // SQL over the rows at the source; of tables with rules
  std::map<TableName, SentTable> sent_tables;     // of tables with transformations
  DestinationNames names;                         // with the parts of tables
  std::vector<TableShape> shapes_there;           // the same by their names at the destination
  std::set<TableName> to_create;
  std::vector<TypeShape> types;
  std::optional<Copier> copier;  // from the first work for it on
  std::set<TableName> built;     // by this object: keys, constraints, indexes, statistics

  State(InstantiationOptions the_options, Progress& the_progress, const std::atomic<bool>& the_stop)
      : options(std::move(the_options)), progress(the_progress), stop(the_stop) {}

  base::Result<void> connect();
  base::Result<void> read_source();
  base::Result<void> read_rules();
  base::Result<void> read_transformations(const TableShape& shape);
  base::Result<void> check_taken_along(const TableShape& shape);
  void name_shapes();
  // The table by its names at the destination, as the engine makes it. `shape` is one of `shapes`.
  const TableShape& shape_there(const TableShape& shape) const {
    return shapes_there.at(static_cast<size_t>(&shape - shapes.data()));
  }
  // The table as its rows come to the destination.
  const TableShape& sent_shape(const TableShape& shape) const {
    const auto sent = sent_tables.find(shape.name);
    return sent == sent_tables.end() ? shape_there(shape) : sent->second.shape;
  }
  base::Result<void> missing_at_source(const TableName& name);  // fails
  base::Result<void> read_records();
  base::Result<void> check_destination(const TableShape& shape, const TableShape* there);
  base::Result<void> check_code(const Catalogue::Tables& there);
  base::Result<void> look_at_definitions();
  base::Result<void> look_at_tables();
  base::Result<void> follow_renames(const SourceTables& now);
  base::Result<void> check_other_names();
  base::Result<void> follow_other_names();
  base::Result<void> forget_others();
  base::Result<void> stop_or_refuse(const TableName& name);
  base::Result<void> make_room();
  base::Result<bool> may_resume(const TableShape& shape);
  base::Result<void> prepare_resumption();
  bool takes_inserts_only(const TableName& name) const { return options.inserts_only.contains(name); }
  bool is_copied(const TableRecord& record) const { return options.initial_copy || record.copy_again; }
  // Whether it is to be checked, and copied perhaps; the changes of others come, or are left out, whatever it is now.
  bool is_examined(const TableName& name) const {
    const auto record = known.find(name);
    return record == known.end() || !record->second.trouble;
  }
  std::vector<const TableShape*> missing_tables() const;
  base::Result<void> check_row_security();
  base::Result<void> check_privileges();
  base::Result<void> rehearse();
  base::Result<void> show_progress();
  bool waits_for_copy(const TableShape& shape) const {
    const TableRecord& record = known.at(shape.name);
    return !record.finished && is_copied(record);
  }
  base::Result<void> end_predecessors();
  Copier& workers();
  base::Result<void> plan_ranges(const std::vector<const TableShape*>& waiting);
  base::Result<Builds> plan_indexes(const std::vector<const TableShape*>& tables);
  base::Result<std::vector<TableWork>> plan_copy(const std::vector<const TableShape*>& waiting);
  base::Result<bool> copy(const Snapshot& snapshot);
  base::Result<std::set<TableName>> postponed_tables();
  base::Result<bool> copy_tables(const Snapshot& snapshot);
  base::Result<void> note_new_leaves(const std::vector<const TableShape*>& waiting, const Snapshot& snapshot);
  base::Result<void> build_indexes(const Builds& builds);
  base::Result<void> build_foreign_keys(const Builds& builds);
};

}  // namespace thalweg::instantiation
