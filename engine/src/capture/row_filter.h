#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "capture/catalogue_look.h"
#include "capture/policy_log.h"
#include "capture/ruled_relations.h"
#include "capture/source_filters.h"
#include "capture/stream_rules.h"
#include "capture/transaction_facts.h"
#include "capture/transformed_forms.h"
#include "lcr/frame.h"
#include "pg/connection.h"
#include "rules/rule_set.h"
#include "telemetry/agent.h"
#include "telemetry/rule_sample.h"
#include "transform/row_transformation.h"

// The rules of a stream's tables, where a capture puts a change: before it is enqueued. Those of a destination, where
// its frames are read (daemon/ruled_frames.h). docs/decisions/rules.md.

namespace thalweg::capture {

// The rules of one version of a table. Owner: the agent that judges.
class RowFilter {
 public:
  enum class Fate : uint8_t {
    pass,
    drop,
    becomes_insert,  // an update that brings the row into the subset
    becomes_delete,  // and one that takes it out
  };
  // Changes of a table by their fate, then those that a rule's policy decided. Writer: the agent that judges. Readers:
  // anybody.
  using Counters = std::array<telemetry::Counter, 5>;
  static constexpr size_t kByPolicy = 4;

  // The others outlive it. `log`: null: nothing is logged.
  RowFilter(rules::TableRules compiled, rules::RuleTable table, const std::string& source,
            const TransactionFacts& transaction, rules::Scratch& scratch, Counters& counters, PolicyLog* log)
      : compiled_(std::move(compiled)),
        table_(std::move(table)),
        source_(source),
        transaction_(transaction),
        scratch_(scratch),
        counters_(counters),
        log_(log) {
    for (uint16_t i = 0; i < table_.columns.size(); ++i) {
      if (!table_.columns[i].enum_labels.empty()) enums_.push_back(i);
    }
  }

  // False: the change has a label that its enum did not have when this filter was made. Labels can be renamed, and
  // nothing in the changes says so: make the filter again.
  bool knows_labels_of(const lcr::FrameView& change);

  // Of a change of the table, which it counts. Fails with rule_undecidable or rule_failed. Allocates nothing unless it
  // fails or logs.
  base::Result<Fate> judge(const lcr::FrameView& change);

  // The tuple of the INSERT that an update becomes: its new row, whose unchanged values come from the old one. Fails
  // with rule_undecidable where they did not.
  base::Result<std::vector<std::byte>> inserted_row(const lcr::FrameView& update) const;
  // The old tuple of the DELETE that an update becomes, where the update has none: the key, which it did not change
  // then. Empty: the update has one. Fails with rule_undecidable where the key did not come.
  base::Result<std::vector<std::byte>> deleted_key(const lcr::FrameView& update) const;

 private:
  base::Result<Fate> decide(const lcr::FrameView& change);
  base::Result<bool> passes(const lcr::FrameView& change, rules::Row plain);
  base::Error lacks_key(const lcr::FrameView& update) const;

  rules::TableRules compiled_;
  bool knows_labels_in(const lcr::TupleView& row);

  rules::RuleTable table_;
  std::vector<uint16_t> enums_;     // columns of an enum type
  std::vector<lcr::Value> values_;  // of the row that is looked at
  const std::string& source_;
  const TransactionFacts& transaction_;  // of the change that is judged
  rules::Scratch& scratch_;
  Counters& counters_;
  PolicyLog* const log_;
  rules::Judgement by_policy_;  // of the change that is judged, if a policy has decided: the first
};

// The change that an update of a subset becomes. `row` is inserted_row(), `key` deleted_key().
lcr::RowFrame as_insert(lcr::RowFrame update, std::span<const std::byte> row);
lcr::RowFrame as_delete(lcr::RowFrame update, std::span<const std::byte> key);

struct MadeTransformation {
  std::unique_ptr<transform::RowTransformation> steps = {};  // null: the table has none
  // The change's transaction has not ended, or was rolled back: whether the steps fit cannot be said yet.
  bool is_undecided = false;
};

// Makes the filters of a session, and outlives them. A table keeps its rules under another name: they are of the
// relation that had the name in the stream's definition. Owner: the agent that judges.
class RowFilters {
 public:
  // `rules` and `clock` outlive it. The source's catalogue, from which a description is completed, is asked over
  // connections of its own, as `options` say.
  RowFilters(const StreamRules& rules, base::Conninfo conninfo, pg::ConnectOptions options, const base::Clock& clock);

  // Notes which relations the stream's tables are, at the start of a session: those of earlier ones, whatever their
  // names are now, and those that have the names.
  base::Result<void> locate();
  // The changes that are judged next are of this transaction.
  void set_transaction(const TransactionFacts& transaction) { transaction_ = transaction; }
  // A table's filter; none if the table has no rules. Fails with rule_refused, or as a connection does.
  base::Result<std::unique_ptr<RowFilter>> make(const lcr::TableDescription& table);
  // A transformation of the table as it is at that change. Fails with transformation_refused, or as make() does.
  base::Result<MadeTransformation> make_transformation(const lcr::TableDescription& table, const ChangePlace& change);
  // Filters of rows that the source's output plugin can evaluate. After locate(), and once a session.
  base::Result<std::string> write_for_source();
  SourceFilters& at_source() { return source_filters_; }
  // Counts of every table with rules. Thread-safe.
  std::vector<telemetry::RuleSample> sample() const;

 private:
  using Ruled = std::map<TableKey, rules::RuleSets>::value_type;

  base::Result<pg::Connection*> connection();
  base::Result<RuledRelations> remembered(pg::Connection& source);
  // Null: it has no rules. Fails where it may be a table with rules under another name.
  base::Result<const Ruled*> find(const lcr::TableDescription& table);
  base::Result<void> note(base::RelationId relation, const TableKey& table);
  base::Result<void> locate_forms();

  const StreamRules& rules_;
  std::map<TableKey, RowFilter::Counters> counters_;  // over all versions of a table; none is added or removed
  TransactionFacts transaction_;
  rules::Scratch scratch_;  // of all filters and transformations: one change is judged, then transformed, at a time
  const base::Conninfo conninfo_;
  const pg::ConnectOptions options_;
  const base::Clock& clock_;
  PolicyLog policy_log_;
  std::optional<pg::Connection> connection_;
  std::chrono::steady_clock::time_point opened_;
  std::string source_;  // the server's cluster and the database
  RuledRelations relations_;
  TransformedForms forms_;
  SourceFilters source_filters_;
  std::optional<TableKey> missing_;  // one with rules of which no relation is known
  const rules::RuleSets nothing_{.negative = {}, .positive = std::vector<rules::Rule>{}};  // lets nothing pass
};

}  // namespace thalweg::capture
