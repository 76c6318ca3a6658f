#include "daemon/dropped_truncates.h"

#include <span>

#include "daemon/rule_sets.h"
#include "lcr/frame.h"
#include "rules/source_table.h"

namespace thalweg::daemon {
namespace {

using instantiation::TableName;

bool drops_truncate(const control::RulesDefinition& definition, const rules::RuleTable& table,
                    base::RelationId relation, const std::string& source_name) {
  const rules::RuleSets sets = rule_sets(definition);
  auto compiled = rules::TableRules::compile(sets, table);
  if (!compiled) return false;
  const auto frame = lcr::make_truncate_frame({1}, {}, {1}, 0, std::span(&relation, 1));
  rules::Scratch scratch;
  // Of any transaction.
  const rules::ChangeContext context{.source = source_name, .is_committed = false};
  const rules::Judgement judgement = compiled->judge(lcr::FrameView::trusted(frame.data()), context, scratch);
  // Nothing here is known of the transaction: a policy would decide what the capture decided by its tag or its time.
  return judgement.decision == rules::Decision::drop && judgement.by_policy == nullptr;
}

}  // namespace

base::Result<std::set<TableName>> with_dropped_truncates(pg::Connection& source, const control::Delivery& delivery,
                                                         const std::set<TableName>& names,
                                                         const instantiation::TableRecords& records,
                                                         const instantiation::SourceTables& now) {
  std::set<TableName> kept;
  for (const control::TableRules* const rules : {&delivery.stream.rules, &delivery.destination.rules}) {
    for (const auto& [ref, definition] : *rules) {
      const TableName name{ref.schema, ref.table};
      if (!names.contains(name)) continue;
      const auto* const captured = now.find(records.at(name).identity.relation);
      if (captured == nullptr) continue;
      THALWEG_ASSIGN(auto table, rules::read_table(source, captured->name.schema, captured->name.name));
      if (!table) continue;
      table->schema = name.schema;  // rules name a table as the stream does
      table->name = name.name;
      const base::RelationId relation{captured->now.relation};
      if (drops_truncate(definition, *table, relation, delivery.stream.source.name)) kept.insert(name);
    }
  }
  return kept;
}

}  // namespace thalweg::daemon
