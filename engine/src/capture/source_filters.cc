#include "capture/source_filters.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rules/source_table.h"

namespace thalweg::capture {

namespace {

using Place = rules::SourceFilter::Place;

// Of the option. Far above what people write, and far below what the replication command may have.
constexpr size_t kBytesMax = size_t{4} << 20;

rules::SourceFilter at_engine(std::string reason) {
  return {.place = Place::engine, .text = {}, .reason = std::move(reason)};
}

std::string entry(base::RelationId relation, std::string_view kind, const rules::SourceFilter& filter) {
  if (filter.place != Place::source) return "";
  return fmt::format("({} {} {})", relation.value, kind, filter.text);
}

}  // namespace

SourceFilters::Filters SourceFilters::make(const rules::RuleSets& sets, const rules::RuleTable& table,
                                           const std::string& source) {
  return {.inserts = rules::source_filter(sets, table, rules::kInsert, source),
          .updates = rules::source_filter(sets, table, rules::kUpdate, source)};
}

base::Result<std::string> SourceFilters::write(pg::Connection& source, const StreamRules& rules,
                                               const RuledRelations& relations) {
  std::vector<base::RelationId> ruled;
  for (const auto& [relation, table] : relations) ruled.push_back(relation);
  THALWEG_ASSIGN(const auto found, rules::read_relations(source, ruled));
  std::string option;
  for (const rules::RelationNow& now : found) {
    // A name that the stream's definition has always means the rules of that name. Those of a table that was renamed
    // depend on what its names have been by the time of a change.
    auto of = rules.tables.find(TableKey(now.table.schema, now.table.name));
    const bool is_renamed = of == rules.tables.end();
    if (is_renamed) of = rules.tables.find(relations.at(now.relation));
    if (of == rules.tables.end() || !of->second.has_any()) continue;
    Filters filters = make(of->second, now.table, rules.source);
    const auto leave_to_engine = [&](const std::string& reason) {
      filters.inserts = at_engine(reason);
      filters.updates = at_engine(reason);
    };
    if (is_renamed) leave_to_engine("the table was renamed");
    if (now.is_partition) leave_to_engine("the table is a partition");
    std::string both = entry(now.relation, "insert", filters.inserts) + entry(now.relation, "update", filters.updates);
    if (option.size() + both.size() > kBytesMax) {
      leave_to_engine("the rules of all tables are too long together");
      both.clear();
    }
    option += both;
    tables_[now.relation] = of->first;
    filters_[now.relation] = std::move(filters);
  }
  return option;
}

void SourceFilters::accepted() {
  are_accepted_ = true;
  for (const auto& [relation, filters] : filters_) set(tables_.at(relation), place_of(filters));
}

void SourceFilters::left_to_engine(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reason_ = reason;
}

void SourceFilters::look_again(base::RelationId relation, const TableKey& table, const rules::RuleSets& sets,
                               const rules::RuleTable& seen, const std::string& source) {
  if (!are_accepted_) return;
  const auto made = filters_.find(relation);
  if (made == filters_.end()) {
    set(table, {.reason = "the table was not there when the capture started"});
    return;
  }
  const auto is_same = [](const rules::SourceFilter& a, const rules::SourceFilter& b) {
    return a.place != Place::source || (b.place == Place::source && a.text == b.text);
  };
  const Filters now = make(sets, seen, source);
  if (is_same(made->second.inserts, now.inserts) && is_same(made->second.updates, now.updates)) {
    set(table, place_of(made->second));
  } else {
    set(table, {.reason = "the table has changed since the capture started"});
  }
}

telemetry::RulePlace SourceFilters::place_of(const Filters& filters) {
  telemetry::RulePlace place{.inserts_at_source = filters.inserts.place == Place::source,
                             .updates_at_source = filters.updates.place == Place::source,
                             .reason = {}};
  for (const rules::SourceFilter& filter : {filters.updates, filters.inserts}) {
    if (filter.place == Place::engine) place.reason = filter.reason;
  }
  return place;
}

void SourceFilters::set(const TableKey& table, telemetry::RulePlace place) {
  const std::lock_guard lock(mutex_);
  places_[table] = std::move(place);
}

void SourceFilters::complete(telemetry::RuleSample& sample) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(TableKey(sample.schema_name, sample.table_name));
  if (found != places_.end()) sample.place = found->second;
  if (found == places_.end()) sample.place.reason = reason_;
}

}  // namespace thalweg::capture
