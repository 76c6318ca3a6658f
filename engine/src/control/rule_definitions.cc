#include "control/rule_definitions.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace thalweg::control {
namespace {

using nlohmann::json;

constexpr size_t kRulesMax = 1000;  // of a set
constexpr size_t kNameBytesMax = 63;
constexpr size_t kConditionBytesMax = size_t{64} << 10;
constexpr std::array<std::string_view, 4> kOperationNames = {"INSERT", "UPDATE", "DELETE", "TRUNCATE"};
constexpr std::array<std::string_view, 3> kScopeNames = {"table", "schema", "global"};
constexpr std::array<std::string_view, 3> kOnErrorNames = {"stop", "as_true", "as_false"};

base::Result<void> read_operations(ObjectReader& reader, std::set<RuledOperation>& out) {
  const json* const value = reader.member("operations", false);
  if (!value) return {};
  const std::string pointer = reader.pointer("operations");
  if (!value->is_array() || value->empty()) {
    return std::unexpected(invalid_at(pointer, "must be an array of at least one operation, or be left out"));
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const json& name = (*value)[i];
    const auto operation = name.is_string() ? operation_named(name.get_ref<const std::string&>()) : std::nullopt;
    const std::string at = fmt::format("{}/{}", pointer, i);
    if (!operation) {
      return std::unexpected(invalid_at(at, fmt::format("must be one of {}", fmt::join(kOperationNames, ", "))));
    }
    if (!out.insert(*operation).second) {
      return std::unexpected(invalid_at(at, "names an operation twice"));
    }
  }
  return {};
}

// The member's value, of type T with these names; left out: the first.
template <typename T>
T read_name(ObjectReader& reader, std::string_view member, std::span<const std::string_view> names) {
  if (reader.member(member, false) == nullptr) return T{};
  const auto found = std::ranges::find(names, reader.string(member, 1, kNameBytesMax));
  if (found != names.end()) return static_cast<T>(found - names.begin());
  reader.refuse(member, fmt::format("must be one of {}", fmt::join(names, ", ")));
  return T{};
}

base::Result<RuleDefinition> read_rule(const json& value, const std::string& pointer, bool positive) {
  ObjectReader reader(value, pointer);
  RuleDefinition rule;
  rule.name = reader.string("name", 1, kNameBytesMax);
  THALWEG_TRY(read_operations(reader, rule.operations));
  if (reader.member("condition", false)) rule.condition = reader.string("condition", 1, kConditionBytesMax);
  rule.subset = reader.boolean("subset", false);
  rule.scope = read_name<RuleScope>(reader, "scope", kScopeNames);
  rule.on_error = read_name<OnRuleError>(reader, "on_error", kOnErrorNames);
  if (rule.subset && !positive) reader.refuse("subset", "cannot stand in a negative rule");
  if (rule.subset && !rule.operations.empty()) reader.refuse("subset", "cannot stand beside operations");
  THALWEG_TRY(reader.finish());
  return rule;
}

base::Result<std::optional<std::vector<RuleDefinition>>> read_set(ObjectReader& reader, std::string_view member,
                                                                  std::set<std::string>& names) {
  const json* const value = reader.member(member, false);
  if (!value) return std::nullopt;
  const std::string pointer = reader.pointer(member);
  if (!value->is_array() || value->size() > kRulesMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} rules", kRulesMax)));
  }
  std::vector<RuleDefinition> rules;
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string at = fmt::format("{}/{}", pointer, i);
    THALWEG_ASSIGN(RuleDefinition rule, read_rule((*value)[i], at, member == "positive"));
    if (!names.insert(rule.name).second) return std::unexpected(invalid_at(at + "/name", "names a rule twice"));
    // An update's rows are inside or outside by all positive rules together.
    if (!rules.empty() && rule.subset != rules.front().subset) {
      return std::unexpected(invalid_at(at + "/subset", "must be the same in all positive rules of a table"));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

json to_json(const std::vector<RuleDefinition>& rules) {
  json list = json::array();
  for (const RuleDefinition& rule : rules) {
    json document = {{"name", rule.name}};
    for (const RuledOperation operation : rule.operations) {
      document["operations"].push_back(name_of(operation));
    }
    if (!rule.condition.empty()) document["condition"] = rule.condition;
    if (rule.subset) document["subset"] = true;
    if (rule.scope != RuleScope::table) document["scope"] = kScopeNames[static_cast<size_t>(rule.scope)];
    if (rule.on_error != OnRuleError::stop) document["on_error"] = kOnErrorNames[static_cast<size_t>(rule.on_error)];
    list.push_back(std::move(document));
  }
  return list;
}

}  // namespace

std::string_view name_of(RuledOperation operation) { return kOperationNames[static_cast<size_t>(operation)]; }

std::optional<RuledOperation> operation_named(std::string_view name) {
  const auto* const found = std::ranges::find(kOperationNames, name);
  if (found == kOperationNames.end()) return std::nullopt;
  return static_cast<RuledOperation>(found - kOperationNames.begin());
}

base::Result<RulesDefinition> read_rule_sets(ObjectReader& reader) {
  RulesDefinition rules;
  std::set<std::string> names;
  THALWEG_ASSIGN(rules.positive, read_set(reader, "positive", names));
  THALWEG_ASSIGN(rules.negative, read_set(reader, "negative", names));
  return rules;
}

base::Result<std::optional<RulesDefinition>> read_rules(ObjectReader& table) {
  const json* const value = table.member("rules", false);
  if (!value) return std::nullopt;
  ObjectReader reader(*value, table.pointer("rules"));
  THALWEG_ASSIGN(RulesDefinition rules, read_rule_sets(reader));
  THALWEG_TRY(reader.finish());
  if (!rules.positive && !rules.negative) return std::nullopt;
  return rules;
}

json to_json(const RulesDefinition& rules) {
  json out = json::object();
  if (rules.positive) out["positive"] = to_json(*rules.positive);
  if (rules.negative) out["negative"] = to_json(*rules.negative);
  return out;
}

}  // namespace thalweg::control
