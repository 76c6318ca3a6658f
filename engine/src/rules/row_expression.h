#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lcr/frame.h"
#include "rules/program.h"
#include "rules/rule_table.h"

namespace thalweg::rules {

// Reads an expression over a row alone, which is the same for a row that is copied and one that comes as a change.
// Refuses with the place in `text`: `old`, `new`, and the attributes that only changes have.
Ruled<Expression> parse_row_expression(std::string_view text);

// A column as an expression.
Expression column_expression(const std::string& column);

// The expression cast to a type by its internal name ("int8").
Expression as_type(Expression expression, std::string_view type);

// Columns that an expression reads, by name, each once.
std::vector<std::string> columns_read(const Expression& expression);
// Gives those columns the names that `name_of` returns for theirs.
void rename_columns(Expression& expression, const auto& name_of) {
  if (expression.kind == Syntax::column) expression.text = name_of(expression.text);
  for (Expression& argument : expression.arguments) rename_columns(argument, name_of);
}

// An expression over a row's columns, compiled for one version of a table. Its value is what PostgreSQL computes.
// Owner: one thread.
class RowExpression {
 public:
  // `expression` comes from the functions above, and has a type that is_encoded(). A refusal has an offset, and neither
  // line nor column. `source` is the attribute's value.
  static Ruled<RowExpression> compile(const Expression& expression, const RuleTable& table, std::string_view source);

  // Fills `out`, which is valid until the next call or until the row or `scratch` change: a value, NULL, or undecidable
  // where a value that is marked as unchanged would decide. Allocates nothing.
  Failure evaluate(std::span<const lcr::Value> row, Scratch& scratch, Datum& out);

  Type type() const { return type_; }
  // Places in the table of the columns that it reads, each once.
  std::span<const uint16_t> columns() const { return columns_; }

 private:
  RowExpression(Program program, Type type, std::unique_ptr<Strings> strings)
      : program_(std::move(program)), type_(type), strings_(std::move(strings)) {}

  Program program_;
  Type type_;
  std::unique_ptr<Strings> strings_;
  std::vector<uint16_t> columns_;
};

}  // namespace thalweg::rules
