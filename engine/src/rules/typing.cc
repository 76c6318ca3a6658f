#include <algorithm>
#include <array>
#include <utility>

#include "rules/casting.h"
#include "rules/collations.h"
#include "rules/resolve.h"
#include "rules/time_fields.h"

namespace thalweg::rules {

namespace {

using Types = std::vector<Type>;

constexpr const char* kDependsOnEncoding =
    "the result depends on the encoding of the source's database, which is not UTF8";
constexpr std::array<std::string_view, 3> kWithFields{"extract", "date_part", "date_trunc"};
constexpr std::array kAttributeNames{"schema", "table", "operation", "tag", "source", "commit_time"};

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

// A value that costs nothing to write twice.
bool is_simple(const Typed& node) { return node.meaning == Meaning::constant || node.meaning == Meaning::column; }

// Owner: one call of type_condition.
class Typer {
 public:
  Typer(const RuleTable& table, Strings& strings) : table_(table), casting_(table, strings), strings_(strings) {}

  Ruled<Typed> boolean(const Expression& node) {
    RULES_ASSIGN(typed, expression(node));
    if (typed.type != Type::boolean && typed.type != Type::unknown) {
      return refuse("a condition is expected here, and this is of type " + std::string(name_of(typed.type)),
                    node.offset);
    }
    return casting_.to(std::move(typed), Type::boolean);
  }

  Ruled<Typed> expression(const Expression& node) {
    switch (node.kind) {
      case Syntax::null:
      case Syntax::string:
      case Syntax::boolean:
      case Syntax::integer:
      case Syntax::decimal:
        return literal(node);
      case Syntax::column:
        return column(node);
      case Syntax::attribute:
        return attribute(node);
      case Syntax::unary: {
        RULES_ASSIGN(operand, expression(node.arguments[0]));
        return operation(node.text, std::nullopt, std::move(operand), node.offset);
      }
      case Syntax::binary: {
        RULES_ASSIGN(left, expression(node.arguments[0]));
        RULES_ASSIGN(right, expression(node.arguments[1]));
        return operation(node.text, std::move(left), std::move(right), node.offset);
      }
      case Syntax::all:
      case Syntax::any:
      case Syntax::negation:
        return logical(node);
      case Syntax::is_null:
      case Syntax::is_true:
      case Syntax::is_false:
      case Syntax::is_unknown:
        return test(node);
      case Syntax::distinct:
      case Syntax::nullif:
        return equality(node);
      case Syntax::in:
        return in(node);
      case Syntax::between:
      case Syntax::symmetric:
        return between(node);
      case Syntax::choice:
      case Syntax::matched:
        return choice(node);
      case Syntax::cast: {
        RULES_ASSIGN(operand, expression(node.arguments[0]));
        return casting_.explicitly(std::move(operand), node);
      }
      case Syntax::function:
        return function(node);
      case Syntax::coalesce:
        return coalesce(node);
      case Syntax::extreme:
        return extreme(node);
      case Syntax::collate:
        return collate(node);
    }
    std::unreachable();
  }

 private:
  static Typed made(Meaning meaning, Type type, uint32_t offset, std::vector<Typed> arguments = {}) {
    Typed node;
    node.meaning = meaning;
    node.type = type;
    node.offset = offset;
    node.arguments = std::move(arguments);
    return node;
  }
  static Typed pair(Meaning meaning, Type type, uint32_t offset, Typed first, Typed second) {
    Typed node = made(meaning, type, offset);
    node.arguments.push_back(std::move(first));
    node.arguments.push_back(std::move(second));
    return node;
  }

  // PostgreSQL reads whole numbers as int4, int8 or numeric, by their size.
  Ruled<Typed> literal(const Expression& node) {
    Typed constant = made(Meaning::constant, Type::unknown, node.offset);
    if (node.kind == Syntax::null) return constant;
    strings_.push_back(node.text);
    give_text(constant.constant, strings_.back());
    constant.constant.state = State::value;
    if (node.kind == Syntax::string) return constant;
    if (node.kind == Syntax::boolean) return casting_.to(std::move(constant), Type::boolean);
    for (const Type type : {Type::int4, Type::int8}) {
      if (auto number = casting_.to(constant, type)) return number;
    }
    return casting_.to(std::move(constant), Type::numeric);
  }

  Ruled<Typed> column(const Expression& node) {
    const auto found = std::ranges::find(table_.columns, node.text, &RuleColumn::name);
    if (found == table_.columns.end()) {
      return refuse("the table " + table_.schema + "." + table_.name + " has no column " + in_quotes(node.text),
                    node.offset);
    }
    Typed typed = made(Meaning::column, static_cast<Type>(found->type.value), node.offset);
    typed.row = node.row;
    typed.column = static_cast<uint16_t>(found - table_.columns.begin());
    if (!found->enum_labels.empty()) {
      typed.type = Type::any_enum;
      typed.enumeration = &*found;
    }
    if (!is_supported(typed.type)) {
      return refuse("the column " + in_quotes(node.text) + " has a type that the rule language cannot use",
                    node.offset);
    }
    typed.stored = typed.type;
    if (is_text(typed.type)) {
      typed.collation = found->collation;
      typed.strength = found->collation == table_.database_collation ? Strength::by_default : Strength::implicit;
    }
    return typed;
  }

  Ruled<Typed> attribute(const Expression& node) const {
    if (std::ranges::find(table_.columns, node.text, &RuleColumn::name) != table_.columns.end()) {
      return refuse("the table has a column with the attribute's name: the column is " + in_quotes(node.text) +
                        ", in quotes, and the attribute cannot be read",
                    node.offset);
    }
    const auto index = static_cast<size_t>(std::ranges::find(kAttributeNames, node.text) - kAttributeNames.begin());
    Typed typed = made(Meaning::attribute, Type::text, node.offset);
    typed.attribute = static_cast<Attribute>(index);
    typed.stored = Type::text;
    if (typed.attribute == Attribute::commit_time) {
      typed.type = Type::timestamptz;
    } else {
      typed.strength = Strength::implicit;
      typed.collation = Collation::c;
    }
    return typed;
  }

  Ruled<Typed> operation(const std::string& name, std::optional<Typed> left, Typed right, uint32_t offset) {
    const Type left_type = left ? left->type : Type::none;
    const Candidate* const found = resolve_operator(operators_named(name), left_type, right.type);
    if (found == nullptr) {
      return refuse("no operator " + name + " for " + (left ? std::string(name_of(left_type)) + " and " : "") +
                        std::string(name_of(right.type)) + ", or more than one",
                    offset);
    }
    std::vector<Typed> arguments;
    if (left) arguments.push_back(std::move(*left));
    arguments.push_back(std::move(right));
    return call(*found, std::move(arguments), offset, "the operator " + name);
  }

  Ruled<Typed> function(const Expression& node) {
    std::vector<Typed> arguments;
    Types types;
    for (const Expression& argument : node.arguments) {
      RULES_ASSIGN(typed, expression(argument));
      types.push_back(typed.type);
      arguments.push_back(std::move(typed));
    }
    const auto candidates = functions_named(node.text);
    if (candidates.empty()) return refuse("the rule language cannot use the function " + node.text, node.offset);
    const Candidate* const found = types.size() > kArgumentsMax ? nullptr : resolve_function(candidates, types);
    if (found == nullptr) {
      std::string list;
      for (const Type type : types) list += (list.empty() ? "" : ", ") + std::string(name_of(type));
      return refuse("no function " + node.text + "(" + list + "), or more than one", node.offset);
    }
    if (std::ranges::find(kWithFields, found->name) != kWithFields.end()) {
      const Typed& field = arguments[0];
      const bool named = field.meaning == Meaning::constant && field.constant.state == State::value;
      if (!named || !has_field(found->evaluator, field.constant.text())) {
        return refuse("the rule language cannot take this field of this type", field.offset);
      }
    }
    return call(*found, std::move(arguments), node.offset, "the function " + node.text);
  }

  Ruled<Typed> call(const Candidate& candidate, std::vector<Typed> arguments, uint32_t offset,
                    const std::string& what) {
    const Evaluator* const evaluator = find_evaluator(candidate.evaluator);
    if (evaluator == nullptr || !is_supported(candidate.result)) {
      return refuse(what + (candidate.evaluator.empty() ? " depends on PostgreSQL's settings for these types"
                                                        : " cannot be used for these types"),
                    offset);
    }
    if (!table_.is_utf8 && (evaluator->reads_bytes || evaluator->collates == Collates::order)) {
      return refuse(kDependsOnEncoding, offset);
    }
    const size_t first = candidate.arguments[0] == Type::none ? 1 : 0;
    const RuleColumn* enumeration = nullptr;
    for (const Typed& argument : arguments) enumeration = enumeration == nullptr ? argument.enumeration : enumeration;
    for (size_t i = 0; i < arguments.size(); ++i) {
      RULES_ASSIGN(argument, casting_.to(std::move(arguments[i]), candidate.arguments[first + i], enumeration));
      arguments[i] = std::move(argument);
    }
    Typed node = made(Meaning::call, candidate.result, offset, std::move(arguments));
    node.evaluator = evaluator;
    RULES_TRY(derive_collation(node));
    if (is_text(node.type) && node.strength == Strength::none) {  // made of what has no collation
      node.strength = Strength::by_default;
      node.collation = table_.database_collation;
    }
    return node;
  }

  Ruled<Typed> logical(const Expression& node) {
    std::vector<Typed> arguments;
    for (const Expression& argument : node.arguments) {
      RULES_ASSIGN(typed, boolean(argument));
      arguments.push_back(std::move(typed));
    }
    const Meaning meaning = node.kind == Syntax::all   ? Meaning::all
                            : node.kind == Syntax::any ? Meaning::any
                                                       : Meaning::negation;
    return made(meaning, Type::boolean, node.offset, std::move(arguments));
  }

  Ruled<Typed> test(const Expression& node) {
    auto operand = node.kind == Syntax::is_null ? expression(node.arguments[0]) : boolean(node.arguments[0]);
    if (!operand) return operand;
    const Meaning meaning = node.kind == Syntax::is_null    ? Meaning::is_null
                            : node.kind == Syntax::is_true  ? Meaning::is_true
                            : node.kind == Syntax::is_false ? Meaning::is_false
                                                            : Meaning::is_unknown;
    Typed typed = made(meaning, Type::boolean, node.offset);
    typed.arguments.push_back(std::move(*operand));
    typed.negated = node.negated;
    return typed;
  }

  // IS DISTINCT FROM and NULLIF: what `=` would do with both sides.
  Ruled<Typed> equality(const Expression& node) {
    RULES_ASSIGN(left, expression(node.arguments[0]));
    RULES_ASSIGN(right, expression(node.arguments[1]));
    RULES_ASSIGN(equal, operation("=", std::move(left), std::move(right), node.offset));
    const bool distinct = node.kind == Syntax::distinct;
    Typed typed =
        made(distinct ? Meaning::distinct : Meaning::nullif, Type::boolean, node.offset, std::move(equal.arguments));
    typed.evaluator = equal.evaluator;
    typed.negated = node.negated;
    if (!distinct) {
      const Typed& first = typed.arguments[0];
      typed.type = first.type;
      typed.strength = first.strength;
      typed.collation = first.collation;
      typed.enumeration = first.enumeration;
    }
    return typed;
  }

  // `a IN (b, c)`. Items without a column are one array of the common type, as in PostgreSQL; the others are compared
  // alone.
  Ruled<Typed> in(const Expression& node) {
    RULES_ASSIGN(subject, expression(node.arguments[0]));
    std::vector<Typed> fixed, varying;
    Types types{subject.type};
    for (size_t i = 1; i < node.arguments.size(); ++i) {
      RULES_ASSIGN(item, expression(node.arguments[i]));
      if (!has_columns(item)) types.push_back(item.type);
      (has_columns(item) ? varying : fixed).push_back(std::move(item));
    }
    const Type common = fixed.size() > 1 && subject.enumeration == nullptr ? common_type(types) : Type::none;
    if (common == Type::none) {
      for (Typed& item : fixed) varying.push_back(std::move(item));
      fixed.clear();
    }
    const std::string name = node.negated ? "<>" : "=";
    std::vector<Typed> tests;
    const uint16_t slot = next_slot_;
    const Typed shared = share(subject);
    if (!fixed.empty()) {
      Typed array = made(Meaning::in, Type::boolean, node.offset);
      array.negated = node.negated;
      for (Typed& item : fixed) {
        RULES_ASSIGN(element, casting_.to(std::move(item), common));
        RULES_ASSIGN(compared, operation(name, shared, std::move(element), node.offset));
        array.evaluator = compared.evaluator;
        if (array.arguments.empty()) array.arguments.push_back(std::move(compared.arguments[0]));
        array.arguments.push_back(std::move(compared.arguments[1]));
      }
      tests.push_back(std::move(array));
    }
    for (Typed& item : varying) {
      RULES_ASSIGN(compared, operation(name, shared, std::move(item), node.offset));
      tests.push_back(std::move(compared));
    }
    Typed whole = tests.size() == 1
                      ? std::move(tests.front())
                      : made(node.negated ? Meaning::all : Meaning::any, Type::boolean, node.offset, std::move(tests));
    return with_shared(std::move(subject), slot, std::move(whole));
  }

  Ruled<Typed> between(const Expression& node) {
    RULES_ASSIGN(subject, expression(node.arguments[0]));
    RULES_ASSIGN(low, expression(node.arguments[1]));
    RULES_ASSIGN(high, expression(node.arguments[2]));
    const uint16_t slot = next_slot_;
    const Typed shared = share(subject);
    const auto within = [&](const Typed& from, const Typed& to) -> Ruled<Typed> {
      RULES_ASSIGN(above, operation(node.negated ? "<" : ">=", shared, from, node.offset));
      RULES_ASSIGN(below, operation(node.negated ? ">" : "<=", shared, to, node.offset));
      return pair(node.negated ? Meaning::any : Meaning::all, Type::boolean, node.offset, std::move(above),
                  std::move(below));
    };
    RULES_ASSIGN(whole, within(low, high));
    if (node.kind == Syntax::symmetric) {
      if (!is_simple(low) || !is_simple(high)) {
        return refuse("BETWEEN SYMMETRIC takes columns and constants only", node.offset);
      }
      RULES_ASSIGN(turned, within(high, low));
      whole = pair(node.negated ? Meaning::all : Meaning::any, Type::boolean, node.offset, std::move(whole),
                   std::move(turned));
    }
    return with_shared(std::move(subject), slot, std::move(whole));
  }

  // A value that is used more than once is computed once.
  Typed share(const Typed& subject) {
    if (is_simple(subject)) return subject;
    Typed reference = subject;
    reference.arguments.clear();
    reference.meaning = Meaning::subject;
    reference.column = next_slot_++;
    return reference;
  }
  static Typed with_shared(Typed subject, uint16_t slot, Typed body) {
    if (is_simple(subject)) return body;
    const Type type = body.type;
    const uint32_t offset = body.offset;
    Typed node = pair(Meaning::let, type, offset, std::move(subject), std::move(body));
    node.column = slot;
    node.strength = node.arguments[1].strength;
    node.collation = node.arguments[1].collation;
    return node;
  }

  Ruled<Typed> choice(const Expression& node) {
    size_t at = 0;
    Typed subject;
    const uint16_t slot = next_slot_;
    Typed shared;
    if (node.kind == Syntax::matched) {
      RULES_ASSIGN(matched, expression(node.arguments[at++]));
      if (matched.type == Type::unknown) {
        RULES_ASSIGN(text, casting_.to(std::move(matched), Type::text));
        matched = std::move(text);
      }
      subject = std::move(matched);
      shared = share(subject);
    }
    std::vector<Typed> conditions, results;
    for (; at + 1 < node.arguments.size(); at += 2) {
      if (node.kind == Syntax::matched) {
        RULES_ASSIGN(value, expression(node.arguments[at]));
        RULES_ASSIGN(equal, operation("=", shared, std::move(value), node.arguments[at].offset));
        conditions.push_back(std::move(equal));
      } else {
        RULES_ASSIGN(condition, boolean(node.arguments[at]));
        conditions.push_back(std::move(condition));
      }
      RULES_ASSIGN(result, expression(node.arguments[at + 1]));
      results.push_back(std::move(result));
    }
    RULES_ASSIGN(otherwise, expression(node.arguments[at]));
    results.insert(results.begin(), std::move(otherwise));
    RULES_TRY(to_common(results, node.offset));
    Typed typed = made(Meaning::choice, results[0].type, node.offset);
    for (size_t i = 0; i < conditions.size(); ++i) {
      typed.arguments.push_back(std::move(conditions[i]));
      typed.arguments.push_back(results[i + 1]);
    }
    typed.arguments.push_back(std::move(results[0]));
    RULES_TRY(derive_collation_of_results(typed));
    if (node.kind != Syntax::matched) return typed;
    return with_shared(std::move(subject), slot, std::move(typed));
  }

  Ruled<Typed> coalesce(const Expression& node) {
    std::vector<Typed> arguments;
    for (const Expression& argument : node.arguments) {
      RULES_ASSIGN(typed, expression(argument));
      arguments.push_back(std::move(typed));
    }
    RULES_TRY(to_common(arguments, node.offset));
    const Type type = arguments[0].type;
    Typed typed = made(Meaning::coalesce, type, node.offset, std::move(arguments));
    RULES_TRY(derive_collation_of_results(typed));
    return typed;
  }

  // As COALESCE, and with the order of the common type.
  Ruled<Typed> extreme(const Expression& node) {
    std::vector<Typed> arguments;
    for (const Expression& argument : node.arguments) {
      RULES_ASSIGN(typed, expression(argument));
      arguments.push_back(std::move(typed));
    }
    RULES_TRY(to_common(arguments, node.offset));
    const Type type = arguments[0].type;
    const bool least = node.text == "least";
    const Candidate* const order = resolve_operator(operators_named(least ? ">" : "<"), type, type);
    const Evaluator* const evaluator = order == nullptr ? nullptr : find_evaluator(order->evaluator);
    if (evaluator == nullptr) {
      return refuse("values of type " + std::string(name_of(type)) + " have no order that a condition can use",
                    node.offset);
    }
    if (!table_.is_utf8 && evaluator->collates == Collates::order) return refuse(kDependsOnEncoding, node.offset);
    Typed typed = made(Meaning::extreme, type, node.offset, std::move(arguments));
    typed.evaluator = evaluator;
    typed.negated = least;
    RULES_TRY(derive_collation(typed));
    return typed;
  }

  Ruled<void> to_common(std::vector<Typed>& values, uint32_t offset) {
    Types types;
    for (const Typed& value : values) types.push_back(value.type);
    const Type common = common_type(types);
    if (common == Type::none) return refuse("the results have no common type", offset);
    if (common == Type::any_enum) return refuse("enums cannot be results", offset);
    for (Typed& value : values) {
      RULES_ASSIGN(converted, casting_.to(std::move(value), common));
      value = std::move(converted);
    }
    return {};
  }

  Ruled<Typed> collate(const Expression& node) {
    RULES_ASSIGN(operand, expression(node.arguments[0]));
    if (node.text != "C" && node.text != "POSIX")
      return refuse("the only collation of conditions is \"C\"", node.offset);
    // A literal stays without a type: what it is compared with gives it one.
    const bool may_be_text = is_text(operand.type) || operand.type == Type::unknown;
    if (!may_be_text) return refuse("only texts have a collation", node.offset);
    operand.strength = Strength::explicitly;
    operand.collation = Collation::c;
    return operand;
  }

  const RuleTable& table_;
  Casting casting_;
  Strings& strings_;
  uint16_t next_slot_ = 0;
};

}  // namespace

bool has_columns(const Typed& node) {
  return node.meaning == Meaning::column || node.meaning == Meaning::attribute ||
         std::ranges::any_of(node.arguments, has_columns);
}

bool is_text(Type type) { return type == Type::text || type == Type::varchar || type == Type::bpchar; }

Ruled<Typed> type_condition(const Expression& expression, const RuleTable& table, Strings& strings) {
  return Typer(table, strings).boolean(expression);
}

Ruled<Typed> type_expression(const Expression& expression, const RuleTable& table, Strings& strings) {
  return Typer(table, strings).expression(expression);
}

}  // namespace thalweg::rules
