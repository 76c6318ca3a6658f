#include "simulation/rules.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace thalweg::simulation {

namespace {

constexpr int kDepthMax = 2;
constexpr uint64_t kValuesMax = 200;  // most values of a column that is no key
constexpr uint64_t kLongMax = 90;     // characters; texts from 65 on lie outside of their rows

Truth truth(bool holds) { return holds ? Truth::yes : Truth::no; }

int64_t number(const std::string& value) {
  uint64_t bits = 0;
  for (const char c : value) bits = bits << 8 | static_cast<unsigned char>(c);
  return static_cast<int64_t>(bits);
}

// NULL where the value is.
template <typename Holds>
Condition strict(std::string text, size_t column, Holds holds) {
  return {.text = std::move(text), .holds = [column, holds](const Row& row) {
            return row[column] ? truth(holds(*row[column])) : Truth::unknown;
          }};
}

Condition null_test(Scheduler& scheduler, const std::string& name, size_t column) {
  if (scheduler.chance(2)) {
    return {.text = name + " IS NULL", .holds = [column](const Row& row) { return truth(!row[column]); }};
  }
  return {.text = name + " IS NOT NULL", .holds = [column](const Row& row) { return truth(row[column].has_value()); }};
}

Condition integer_condition(Scheduler& scheduler, const std::string& name, size_t column, uint64_t below) {
  const auto some = [&] { return static_cast<int64_t>(scheduler.random(below)); };
  const int64_t a = some();
  const int64_t b = some();
  switch (scheduler.random(8)) {
    case 0:
      return strict(fmt::format("{} < {}", name, a), column, [a](const auto& value) { return number(value) < a; });
    case 1:
      return strict(fmt::format("{} >= {}", name, a), column, [a](const auto& value) { return number(value) >= a; });
    case 2:
      return strict(fmt::format("{} <> {}", name, a), column, [a](const auto& value) { return number(value) != a; });
    case 3: {
      const int64_t divisor = 2 + static_cast<int64_t>(scheduler.random(4));
      const int64_t rest = a % divisor;
      return strict(fmt::format("{} % {} = {}", name, divisor, rest), column,
                    [=](const auto& value) { return number(value) % divisor == rest; });
    }
    case 4:
      return strict(
          fmt::format("{} BETWEEN {} AND {}", name, std::min(a, b), std::max(a, b)), column,
          [=](const auto& value) { return number(value) >= std::min(a, b) && number(value) <= std::max(a, b); });
    case 5:
      // Of a list with NULL, nothing is outside.
      return {.text = fmt::format("{} IN ({}, NULL, {})", name, a, b), .holds = [=](const Row& row) {
                const bool is_in = row[column] && (number(*row[column]) == a || number(*row[column]) == b);
                return is_in ? Truth::yes : Truth::unknown;
              }};
    case 6:
      return {.text = fmt::format("{} IS DISTINCT FROM {}", name, a),
              .holds = [=](const Row& row) { return truth(!row[column] || number(*row[column]) != a); }};
    default:
      return null_test(scheduler, name, column);
  }
}

Condition text_condition(Scheduler& scheduler, const std::string& name, size_t column) {
  const std::string letter(1, static_cast<char>('a' + scheduler.random(26)));
  switch (scheduler.random(6)) {
    case 0:
      return strict(fmt::format("{} LIKE '{}%'", name, letter), column,
                    [=](const auto& value) { return value.starts_with(letter); });
    case 1:
      return strict(fmt::format("{} NOT LIKE '%{}%'", name, letter), column,
                    [=](const auto& value) { return !value.contains(letter); });
    case 2: {
      const auto characters = scheduler.random(kLongMax);
      return strict(fmt::format("length({}) > {}", name, characters), column,
                    [=](const auto& value) { return value.size() > characters; });
    }
    case 3:
      return strict(fmt::format("{} < '{}'", name, letter), column, [=](const auto& value) { return value < letter; });
    case 4: {
      const auto code = fmt::format("code{}", scheduler.random(12));
      const auto text = fmt::format("text{}", scheduler.random(3));
      return strict(fmt::format("{} IN ('{}', '{}')", name, code, text), column,
                    [=](const auto& value) { return value == code || value == text; });
    }
    default:
      return null_test(scheduler, name, column);
  }
}

Condition make_condition(Scheduler& scheduler, const TableShape& shape, bool reads_all_columns, int64_t keys,
                         int depth) {
  const auto part = [&] { return make_condition(scheduler, shape, reads_all_columns, keys, depth + 1); };
  if (depth < kDepthMax && scheduler.chance(2)) {
    const Condition a = part();
    if (scheduler.chance(4)) {
      return {.text = fmt::format("NOT ({})", a.text), .holds = [a](const Row& row) {
                const Truth holds = a.holds(row);
                return holds == Truth::unknown ? holds : truth(holds == Truth::no);
              }};
    }
    const Condition b = part();
    const bool is_and = scheduler.chance(2);
    // One part decides by itself if it is what makes AND false and OR true.
    const Truth decides = is_and ? Truth::no : Truth::yes;
    return {.text = fmt::format("({}) {} ({})", a.text, is_and ? "AND" : "OR", b.text), .holds = [=](const Row& row) {
              const Truth left = a.holds(row);
              const Truth right = b.holds(row);
              if (left == decides || right == decides) return decides;
              return left == Truth::unknown ? left : right;
            }};
  }
  const size_t column = reads_all_columns ? scheduler.random(shape.columns.size()) : static_cast<size_t>(shape.key);
  const std::string name = shape.columns[column].name;
  if (shape.columns[column].type != 20) return text_condition(scheduler, name, column);
  const bool is_key = static_cast<int>(column) == shape.key || static_cast<int>(column) == shape.foreign;
  return integer_condition(scheduler, name, column,
                           is_key          ? static_cast<uint64_t>(keys)
                           : shape.key < 0 ? 4
                                           : kValuesMax);
}

std::vector<control::RuleDefinition> definitions(const std::vector<Condition>& conditions, const char* name,
                                                 const control::RuleDefinition& like) {
  std::vector<control::RuleDefinition> out;
  for (const Condition& condition : conditions) {
    out.push_back(like);
    out.back().name = fmt::format("{}_{}", name, out.size());
    out.back().condition = condition.text;
  }
  return out;
}

}  // namespace

bool TableRules::keeps(const Row& row) const {
  const auto holds = [&](const Condition& condition) { return condition.holds(row) == Truth::yes; };
  return std::ranges::none_of(negative, holds) && std::ranges::any_of(positive, holds);
}

std::optional<Change> TableRules::passed(const Change& change) const {
  const bool is_truncate = change.kind == Change::Kind::truncate;
  switch (kind) {
    case Kind::nothing:
      return std::nullopt;
    case Kind::inserts:
      if (change.kind != Change::Kind::insert || !keeps(change.after)) return std::nullopt;
      return change;
    case Kind::subset:
      break;
  }
  const bool was_in = !change.before.empty() && keeps(change.before);
  const bool is_in = !change.after.empty() && keeps(change.after);
  if (is_truncate || (was_in && is_in)) return change;
  if (is_in) return Change{.kind = Change::Kind::insert, .table = change.table, .before = {}, .after = change.after};
  if (was_in) return Change{.kind = Change::Kind::remove, .table = change.table, .before = change.before, .after = {}};
  return std::nullopt;
}

control::RulesDefinition TableRules::definition() const {
  control::RulesDefinition out;
  control::RuleDefinition like;
  like.subset = kind == Kind::subset;
  if (kind == Kind::inserts) like.operations = {control::RuledOperation::insert};
  out.positive = definitions(positive, "positive", like);
  if (!negative.empty()) out.negative = definitions(negative, "negative", {});
  return out;
}

TableRules make_rules(Scheduler& scheduler, const TableShape& shape, bool reads_all_columns, int64_t keys) {
  TableRules rules;
  const auto some = [&](uint64_t most) {
    std::vector<Condition> conditions(scheduler.random(most + 1));
    for (Condition& condition : conditions) condition = make_condition(scheduler, shape, reads_all_columns, keys, 0);
    return conditions;
  };
  if (scheduler.chance(10)) {
    rules.kind = TableRules::Kind::nothing;
    return rules;
  }
  if (shape.key < 0 && scheduler.chance(3)) rules.kind = TableRules::Kind::inserts;
  rules.positive = some(2);
  rules.positive.push_back(make_condition(scheduler, shape, reads_all_columns, keys, 0));
  rules.negative = some(1);
  return rules;
}

std::string describe(const TableRules& rules) {
  constexpr const char* kKinds[] = {"subset", "inserts", "nothing"};
  std::string text = kKinds[static_cast<int>(rules.kind)];
  for (const Condition& condition : rules.positive) text += fmt::format("; {}", condition.text);
  for (const Condition& condition : rules.negative) text += fmt::format("; but not {}", condition.text);
  return text;
}

}  // namespace thalweg::simulation
