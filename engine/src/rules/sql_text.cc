#include "rules/sql_text.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "pg/connection.h"

namespace thalweg::rules {

namespace {

// The parser's names of types, as SQL that means the same under any search_path, with or without a modifier.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kKeywordTypes{{
    {"bool", "boolean"},
    {"int2", "smallint"},
    {"int4", "integer"},
    {"int8", "bigint"},
    {"float4", "real"},
    {"float8", "double precision"},
    {"numeric", "numeric"},
    {"varchar", "character varying"},
    {"char", "character"},
    {"time", "time"},
    {"timestamp", "timestamp"},
    {"interval", "interval"},
    {"bpchar", "pg_catalog.bpchar"},
}};

std::string type_sql(const Expression& cast) {
  std::string modifiers;
  for (const int32_t modifier : cast.modifiers) {
    modifiers += fmt::format("{}{}", modifiers.empty() ? "(" : ", ", modifier);
  }
  if (!modifiers.empty()) modifiers += ")";
  if (cast.text == "timestamptz") return fmt::format("timestamp{} with time zone", modifiers);
  for (const auto& [name, sql] : kKeywordTypes) {
    if (name == cast.text) return std::string(sql) + modifiers;
  }
  return fmt::format("pg_catalog.{}{}", pg::quote_identifier(cast.text), modifiers);
}

// Reads the same with standard_conforming_strings on and off.
std::string string_sql(std::string_view text) {
  const bool has_backslash = text.contains('\\');
  std::string sql = has_backslash ? "E'" : "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') sql += c;
    sql += c;
  }
  return sql + "'";
}

// Owner: one call of to_sql.
class Printer {
 public:
  explicit Printer(const AttributeValues& attributes) : attributes_(attributes) {}

  std::string print(const Expression& node) const {
    switch (node.kind) {
      case Syntax::null:
        return "NULL";
      case Syntax::boolean:
        return node.text;
      case Syntax::integer:
      case Syntax::decimal:
        return "(" + node.text + ")";
      case Syntax::string:
        return string_sql(node.text);
      case Syntax::column:
        return column(node);
      case Syntax::attribute:
        return attribute(node.text);
      case Syntax::unary:
        return fmt::format("(OPERATOR(pg_catalog.{}) {})", node.text, argument(node, 0));
      case Syntax::binary:
        return fmt::format("({} OPERATOR(pg_catalog.{}) {})", argument(node, 0), node.text, argument(node, 1));
      case Syntax::all:
        return "(" + arguments(node, 0, " AND ") + ")";
      case Syntax::any:
        return "(" + arguments(node, 0, " OR ") + ")";
      case Syntax::negation:
        return "(NOT " + argument(node, 0) + ")";
      case Syntax::is_null:
        return test(node, "NULL");
      case Syntax::is_true:
        return test(node, "TRUE");
      case Syntax::is_false:
        return test(node, "FALSE");
      case Syntax::is_unknown:
        return test(node, "UNKNOWN");
      case Syntax::distinct:
        return test(node, "DISTINCT FROM " + argument(node, 1));
      case Syntax::in:
        return fmt::format("({}{} IN ({}))", argument(node, 0), node.negated ? " NOT" : "", arguments(node, 1, ", "));
      case Syntax::between:
      case Syntax::symmetric:
        return fmt::format("({}{} BETWEEN {}{} AND {})", argument(node, 0), node.negated ? " NOT" : "",
                           node.kind == Syntax::symmetric ? "SYMMETRIC " : "", argument(node, 1), argument(node, 2));
      case Syntax::choice:
      case Syntax::matched:
        return choice(node);
      case Syntax::cast:
        return fmt::format("CAST({} AS {})", argument(node, 0), type_sql(node));
      case Syntax::function:
        return fmt::format("pg_catalog.{}({})", pg::quote_identifier(node.text), arguments(node, 0, ", "));
      case Syntax::coalesce:
        return "COALESCE(" + arguments(node, 0, ", ") + ")";
      case Syntax::extreme:
        return fmt::format("{}({})", node.text == "greatest" ? "GREATEST" : "LEAST", arguments(node, 0, ", "));
      case Syntax::nullif:
        return "NULLIF(" + arguments(node, 0, ", ") + ")";
      case Syntax::collate:
        return fmt::format("({} COLLATE pg_catalog.{})", argument(node, 0), pg::quote_identifier(node.text));
    }
    std::unreachable();
  }

 private:
  std::string argument(const Expression& node, size_t i) const { return print(node.arguments[i]); }
  std::string arguments(const Expression& node, size_t from, std::string_view between) const {
    std::string list;
    for (size_t i = from; i < node.arguments.size(); ++i) {
      if (i > from) list += between;
      list += argument(node, i);
    }
    return list;
  }
  std::string test(const Expression& node, std::string_view of) const {
    return fmt::format("({} IS {}{})", argument(node, 0), node.negated ? "NOT " : "", of);
  }
  std::string choice(const Expression& node) const {
    std::string sql = "CASE";
    size_t at = 0;
    if (node.kind == Syntax::matched) sql += " " + argument(node, at++);
    for (; at + 1 < node.arguments.size(); at += 2) {
      sql += fmt::format(" WHEN {} THEN {}", argument(node, at), argument(node, at + 1));
    }
    return fmt::format("({} ELSE {} END)", sql, argument(node, at));
  }
  // The old value is a NULL that has the column's type and collation.
  static std::string column(const Expression& node) {
    const std::string name = pg::quote_identifier(node.text);
    return node.row == Row::before ? fmt::format("(CASE WHEN false THEN {} END)", name) : name;
  }
  // A subquery, so that the collation is chosen as a column's is, and an explicit one beside it wins.
  std::string attribute(std::string_view name) const {
    if (name == "commit_time") return "CAST(NULL AS pg_catalog.timestamptz)";
    std::string value = "NULL";  // a tag
    if (name == "schema") value = string_sql(attributes_.schema);
    if (name == "table") value = string_sql(attributes_.table);
    if (name == "source") value = string_sql(attributes_.source);
    if (name == "operation") value = string_sql("INSERT");
    return fmt::format("(SELECT CAST({} AS pg_catalog.text) COLLATE pg_catalog.\"C\")", value);
  }

  const AttributeValues& attributes_;
};

}  // namespace

std::string to_sql(const Expression& condition, const AttributeValues& attributes) {
  return Printer(attributes).print(condition);
}

}  // namespace thalweg::rules
