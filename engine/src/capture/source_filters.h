#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "capture/ruled_relations.h"
#include "capture/stream_rules.h"
#include "pg/connection.h"
#include "rules/source_filter.h"
#include "telemetry/rule_sample.h"

// Rules of a stream that the source's output plugin evaluates, so that rows that they drop are never sent
// (docs/formats/row-filters.md). The capture judges what comes as if there were none of it.

namespace thalweg::capture {

// Owner: the capture's agent, for one session. Thread-safe: complete().
class SourceFilters {
 public:
  // The filters for START_REPLICATION, of those relations whose rules the source can evaluate. Empty: none.
  base::Result<std::string> write(pg::Connection& source, const StreamRules& rules, const RuledRelations& relations);
  // The source evaluates what write() has made.
  void accepted();
  // It does not, for this reason.
  void left_to_engine(const std::string& reason);
  // A version of a table with rules has come: where it is not what its filters were made for, the source sends
  // everything.
  void look_again(base::RelationId relation, const TableKey& table, const rules::RuleSets& sets,
                  const rules::RuleTable& seen, const std::string& source);
  // Adds where the rules of the table are evaluated.
  void complete(telemetry::RuleSample& sample) const;

 private:
  // Of one relation.
  struct Filters {
    rules::SourceFilter inserts;
    rules::SourceFilter updates;
  };
  static Filters make(const rules::RuleSets& sets, const rules::RuleTable& table, const std::string& source);
  static telemetry::RulePlace place_of(const Filters& filters);
  void set(const TableKey& table, telemetry::RulePlace place);

  std::map<base::RelationId, Filters> filters_;
  std::map<base::RelationId, TableKey> tables_;  // whose rules they are
  bool are_accepted_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::map<TableKey, telemetry::RulePlace> places_;
  std::string reason_;  // of all tables
};

}  // namespace thalweg::capture
