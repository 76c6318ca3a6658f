#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "rules/row_expression.h"
#include "transform/step.h"

// Steps worked out for one version of a table.

namespace thalweg::transform {

struct SourceColumn {
  std::string name;
  base::TypeId type;
  int32_t modifier = -1;  // pg_attribute.atttypmod
  bool is_key = false;    // rows are found by it
};

// A column that the source does not have.
struct AddedColumn {
  base::TypeId type;
  std::string type_name;  // as SQL
  std::string value;      // of every row, unless it is computed
};

// A column whose values are computed from the source's row: it is added with an expression, or cast.
struct ComputedColumn {
  base::TypeId type;
  std::string type_name;         // as SQL
  rules::Expression expression;  // over the source's names, and a cast to the type
  std::string text;              // of the expression; empty: of a cast
  std::vector<size_t> reads;     // places among the source's columns
};

// A column as it is sent.
struct SentColumn {
  size_t source = 0;  // its place among the source's columns, unless it is added
  std::string name;
  std::optional<Mask> mask = {};
  std::optional<AddedColumn> added = {};
  std::optional<ComputedColumn> computed = {};
};

// The columns that are left, in the source's order, and behind them those that are added. Fails with
// transformation_refused, which names `table`: a step's column is not there, a name is taken, a key would not identify
// rows any more, no column is left, or an expression cannot be read, or reads what is masked.
base::Result<std::vector<SentColumn>> plan(const Steps& steps, std::span<const SourceColumn> columns,
                                           const std::string& table);

// Whether a column is computed, so that the table has to be known as the source's catalogue has it.
bool have_computed_columns(const Steps& steps);

// The computed column's expression for that version of the table; `source` is its attribute's value. Fails with
// transformation_refused.
base::Result<rules::RowExpression> compile(const SentColumn& column, const rules::RuleTable& table,
                                           std::string_view source);

// Whether an update may come without a value that the column needs: a long one that stays as it was, beside another.
bool may_lack_value(const rules::RowExpression& expression, const rules::RuleTable& table);
// The cure for that: a sentence without its full stop.
std::string cure_of_lack(const rules::RuleTable& table);

// transformation_refused, about the table by its quoted name.
base::Error refusal(const std::string& table, std::string message);

// The type's values are text of any length, and a row brings them as their characters.
bool is_text(base::TypeId type);

}  // namespace thalweg::transform
