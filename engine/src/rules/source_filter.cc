#include "rules/source_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <expected>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rules/catalogue.h"
#include "rules/encode.h"
#include "rules/parser.h"
#include "rules/typed.h"

namespace thalweg::rules {

namespace {

// Types whose comparisons neither fail nor depend on a setting, by the beginning of the functions' names; and what
// stands between it and the order's name. The plugin has the same list (engine/outputplugin/filter_expression.c).
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kCompared{{
    {"bool", ""},    {"int2", ""},    {"int4", ""},     {"int8", ""},       {"int24", ""},  {"int28", ""},
    {"int42", ""},   {"int48", ""},   {"int82", ""},    {"int84", ""},      {"float4", ""}, {"float8", ""},
    {"float48", ""}, {"float84", ""}, {"numeric_", ""}, {"text", "_"},      {"bpchar", ""}, {"bytea", ""},
    {"uuid_", ""},   {"date_", ""},   {"time_", ""},    {"timestamp_", ""},
}};
constexpr std::array<std::string_view, 3> kCasts{"int2_numeric", "int4_numeric", "int8_numeric"};

bool is_comparison(std::string_view function) {
  return std::ranges::any_of(kCompared, [&](const auto& compared) {
    if (!function.starts_with(compared.first)) return false;
    std::string_view rest = function.substr(compared.first.size());
    if (rest == "eq" || rest == "ne") return true;
    if (!rest.starts_with(compared.second)) return false;
    rest.remove_prefix(compared.second.size());
    return rest == "lt" || rest == "le" || rest == "gt" || rest == "ge";
  });
}

bool is_like(std::string_view function) { return function == "textlike" || function == "textnlike"; }

// Matched in one pass over the text: no % but at the end. A pattern that ends with its escape character fails.
bool is_simple_pattern(std::string_view pattern) {
  while (pattern.ends_with('%') && !pattern.ends_with("\\%")) pattern.remove_suffix(1);
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%') return false;
    if (pattern[i] == '\\' && ++i == pattern.size()) return false;
  }
  return true;
}

bool has_form_there(Type type) {
  switch (type) {
    case Type::float4:
    case Type::bpchar:
    case Type::bytea:
    case Type::time:
      return true;
    default:
      return is_encoded(type);
  }
}

std::string hex_of(Type type, const Datum& value) {
  std::string bytes;
  switch (type) {
    case Type::float4: {
      Datum bits = value;
      bits.integer = std::bit_cast<int32_t>(static_cast<float>(value.real));
      encode(Type::int4, bits, bytes);
      break;
    }
    case Type::time:
      encode(Type::int8, value, bytes);
      break;
    case Type::bpchar:
    case Type::bytea:
      bytes.assign(value.data, value.size);
      break;
    default:
      encode(type, value, bytes);
  }
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string in_quotes(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + "\"";
}

using Written = std::expected<std::string, std::string>;  // or why the source is not asked

#define WRITE(name, expression)               \
  auto name##_written = (expression);         \
  if (!name##_written) return name##_written; \
  const std::string& name = *name##_written

// Owner: one call of source_filter.
class Writer {
 public:
  Writer(const RuleTable& table, Kinds kind, std::string_view source) : table_(table), kind_(kind), source_(source) {}

  // Both sets: those changes for which it is TRUE pass.
  Written passing(const RuleSets& sets) {
    if (sets.positive && sets.positive->empty()) return kFalse;
    std::string both;
    if (sets.negative) {
      WRITE(dropped, any_true(*sets.negative));
      if (dropped == kTrue) return kFalse;
      if (dropped != kFalse) both = fmt::format("(not {})", dropped);
    }
    if (!sets.positive) return both.empty() ? std::string(kTrue) : both;
    // Both rows of an update are judged then, by the negative set, too.
    if (kind_ == kUpdate && std::ranges::any_of(*sets.positive, &Rule::subset)) {
      return left("an update may bring a row into the subset, or take it out");
    }
    WRITE(passed, any_true(*sets.positive));
    if (both.empty() || passed == kFalse) return passed;
    return passed == kTrue ? both : fmt::format("(and {} {})", both, passed);
  }

  std::string text(std::string_view expression) const {
    std::string columns;
    const auto add = [&](std::string_view name, uint32_t type, uint32_t collation) {
      columns += fmt::format("{}({} {} {})", columns.empty() ? "" : " ", in_quotes(name), type, collation);
    };
    for (const uint16_t column : columns_) {
      const RuleColumn& read = table_.columns[column];
      add(read.name, read.type.value, read.collation_id);
    }
    for (const std::string& name : attributes_) add(name, 0, 0);
    return fmt::format("{} {} ({}) {}", in_quotes(table_.schema), in_quotes(table_.name), columns, expression);
  }

  static constexpr const char* kTrue = "(value 16 \"01\")";
  static constexpr const char* kFalse = "(value 16 \"00\")";

 private:
  static std::unexpected<std::string> left(std::string reason) { return std::unexpected(std::move(reason)); }

  Written any_true(const std::vector<Rule>& rules) {
    std::string any;
    int count = 0;
    for (const Rule& rule : rules) {
      if ((rule.kinds & kind_) == 0 || !concerns(rule, table_)) continue;
      if (rule.condition.empty()) return kTrue;
      auto written = condition(rule);
      if (!written) return left(fmt::format("the rule {} {}", rule.name, written.error()));
      any += fmt::format("{}(true {})", any.empty() ? "" : " ", *written);
      ++count;
    }
    if (count == 0) return kFalse;
    return count == 1 ? any : fmt::format("(or {})", any);
  }

  Written condition(const Rule& rule) {
    const auto parsed = parse(rule.condition);
    if (!parsed) return left("is refused");
    Strings strings;
    auto typed = type_condition(*parsed, table_, strings);
    if (!typed) return left("is refused");
    note_attributes(*parsed);
    fill_in(*typed, strings);
    Scratch scratch;
    if (!fold(*typed, scratch, strings)) return left("has a part that fails for every row");
    return write(*typed);
  }

  // A column that gets the attribute's name would make the rule one that the engine refuses.
  void note_attributes(const Expression& node) {
    if (node.kind == Syntax::attribute) attributes_.insert(node.text);
    for (const Expression& argument : node.arguments) note_attributes(argument);
  }

  // Values that do not depend on the row, as the engine's judgement of this kind of change sees it.
  void fill_in(Typed& node, Strings& strings) const {
    for (Typed& argument : node.arguments) fill_in(argument, strings);
    if (node.meaning == Meaning::column && node.row == Row::before && kind_ == kInsert) {
      node.meaning = Meaning::constant;
      node.constant = {};
    }
    // Decided by what the engine knows of the transaction.
    const bool is_transactions = node.attribute == Attribute::commit_time || node.attribute == Attribute::tag;
    if (node.meaning != Meaning::attribute || is_transactions) return;
    node.meaning = Meaning::constant;
    node.constant = {};
    strings.emplace_back(value_of(node.attribute));
    give_text(node.constant, strings.back());
    node.constant.state = State::value;
  }
  std::string_view value_of(Attribute attribute) const {
    switch (attribute) {
      case Attribute::schema:
        return table_.schema;
      case Attribute::table:
        return table_.name;
      case Attribute::source:
        return source_;
      default:
        return kind_ == kInsert ? "INSERT" : "UPDATE";
    }
  }

  Written write(const Typed& node) {
    switch (node.meaning) {
      case Meaning::constant:
        return constant(node);
      case Meaning::column:
        return column(node);
      case Meaning::attribute:
        return left(node.attribute == Attribute::tag ? "reads tag" : "reads commit_time");
      case Meaning::call:
        return call(node, "call");
      case Meaning::distinct: {
        WRITE(distinct, call(node, "distinct"));
        return node.negated ? Written(fmt::format("(not {})", distinct)) : Written(distinct);
      }
      case Meaning::all:
        return with_arguments("and", node);
      case Meaning::any:
        return with_arguments("or", node);
      case Meaning::negation:
        return with_arguments("not", node);
      case Meaning::is_null:
      case Meaning::is_unknown:
        return test("null", node);
      case Meaning::is_true:
        return test("true", node);
      case Meaning::is_false:
        return test("false", node);
      case Meaning::in:
        return in(node);
      case Meaning::nullif:
      case Meaning::coalesce:
      case Meaning::extreme:
      case Meaning::choice:
        return left("chooses between values");
      case Meaning::let:
      case Meaning::subject:
        return left("compares a computed value");
    }
    std::unreachable();
  }

  Written constant(const Typed& node) const {
    if (node.constant.state == State::null) {
      return has_form_there(node.type) ? fmt::format("(value {})", std::to_underlying(node.type))
                                       : Written(left(of_type(node.type)));
    }
    if (!has_form_there(node.type)) return left(of_type(node.type));
    if (is_text(node.type) && !table_.is_utf8) return left("has a text, and the source's encoding is not UTF8");
    return fmt::format("(value {} \"{}\")", std::to_underlying(node.type), hex_of(node.type, node.constant));
  }
  static std::string of_type(Type type) { return fmt::format("compares values of type {}", name_of(type)); }

  Written column(const Typed& node) {
    if (node.row == Row::before) return left("reads old values");
    const auto known = std::ranges::find(columns_, node.column);
    const auto index = known - columns_.begin();
    if (known == columns_.end()) columns_.push_back(node.column);
    return fmt::format("(column {})", index);
  }

  Written call(const Typed& node, std::string_view word) {
    const std::string_view function = node.evaluator->name;
    if (is_like(function)) {
      const Typed& pattern = node.arguments[1];
      const bool is_simple = pattern.meaning == Meaning::constant && is_simple_pattern(pattern.constant.text());
      if (!is_simple) return left("has a pattern with more than a % at its end");
    } else if (!is_comparison(function) && std::ranges::find(kCasts, function) == kCasts.end()) {
      return left(fmt::format("computes ({})", function));
    }
    return with_arguments(fmt::format("{} {}", word, function), node);
  }

  Written with_arguments(std::string_view word, const Typed& node) {
    std::string list;
    for (const Typed& argument : node.arguments) {
      WRITE(written, write(argument));
      list += " " + written;
    }
    return fmt::format("({}{})", word, list);
  }

  Written test(std::string_view word, const Typed& node) {
    WRITE(written, with_arguments(word, node));
    return node.negated ? fmt::format("(not {})", written) : written;
  }

  // Its evaluator tests equality, or where it is negated the contrary.
  Written in(const Typed& node) {
    std::string list;
    for (size_t i = 1; i < node.arguments.size(); ++i) {
      Typed compared;
      compared.evaluator = node.evaluator;
      compared.arguments = {node.arguments[0], node.arguments[i]};
      WRITE(written, call(compared, "call"));
      list += " " + written;
    }
    return fmt::format("({}{})", node.negated ? "and" : "or", list);
  }

  const RuleTable& table_;
  const Kinds kind_;
  const std::string_view source_;
  std::vector<uint16_t> columns_;     // those that are read, in the order in which they are met
  std::set<std::string> attributes_;  // likewise
};

#undef WRITE

}  // namespace

SourceFilter source_filter(const RuleSets& sets, const RuleTable& table, Kinds kind, std::string_view source) {
  using Place = SourceFilter::Place;
  if (const auto compiled = TableRules::compile(sets, table); !compiled) {
    return {.place = Place::engine, .text = {}, .reason = fmt::format("the rule {} is refused", compiled.error().rule)};
  }
  Writer writer(table, kind, source);
  auto passing = writer.passing(sets);
  if (!passing) return {.place = Place::engine, .text = {}, .reason = std::move(passing).error()};
  if (*passing == Writer::kTrue) return {};
  if (table.is_partitioned) return {.place = Place::engine, .text = {}, .reason = "the table is partitioned"};
  return {.place = Place::source, .text = writer.text(*passing), .reason = {}};
}

}  // namespace thalweg::rules
