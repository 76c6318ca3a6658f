#include "rules/insert_filter.h"

#include <fmt/format.h>

#include "rules/parser.h"
#include "rules/sql_text.h"

namespace thalweg::rules {

namespace {

// TRUE where one of the rules is: NULL does not count.
std::string any_true(const std::vector<Rule>& rules, const RuleTable& table, const AttributeValues& attributes) {
  std::string sql;
  for (const Rule& rule : rules) {
    if ((rule.kinds & kInsert) == 0 || !concerns(rule, table)) continue;
    // It was compiled: it is a condition.
    const std::string condition = rule.condition.empty() ? "true" : to_sql(*parse(rule.condition), attributes);
    sql += fmt::format("{}({} IS TRUE)", sql.empty() ? "" : " OR ", condition);
  }
  return sql;
}

}  // namespace

std::expected<std::string, RuleRefusal> insert_filter(const RuleSets& sets, const RuleTable& table,
                                                      std::string_view source) {
  if (auto compiled = TableRules::compile(sets, table); !compiled) {
    return std::unexpected(std::move(compiled).error());
  }
  if (sets.positive && sets.positive->empty()) return "false";
  const AttributeValues attributes{.schema = table.schema, .table = table.name, .source = source};
  std::string filter;
  if (sets.negative) {
    const std::string dropped = any_true(*sets.negative, table, attributes);
    if (!dropped.empty()) filter = "NOT (" + dropped + ")";
  }
  if (sets.positive) {
    const std::string passed = any_true(*sets.positive, table, attributes);
    filter += fmt::format("{}({})", filter.empty() ? "" : " AND ", passed.empty() ? "false" : passed);
  }
  return filter;
}

}  // namespace thalweg::rules
