#include "rules/row_expression.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "rules/decode.h"
#include "rules/encode.h"
#include "rules/parser.h"
#include "rules/text_input.h"

namespace thalweg::rules {

namespace {

bool is_of_every_row(std::string_view attribute) {
  return attribute == "schema" || attribute == "table" || attribute == "source";
}

Ruled<void> check_row_alone(const Expression& node) {
  if (node.kind == Syntax::column && node.row != Row::newest) {
    return refuse("an expression reads the row's columns without old or new: a row that is copied has one state only",
                  node.offset);
  }
  if (node.kind == Syntax::attribute && !is_of_every_row(node.text)) {
    return refuse("an expression cannot read " + node.text + ": a row that is copied has none", node.offset);
  }
  for (const Expression& argument : node.arguments) RULES_TRY(check_row_alone(argument));
  return {};
}

// Labels can get other names without a word in the changes: what was true of one would not be, and nobody would notice.
Ruled<void> check_enums(const Expression& node, const RuleTable& table) {
  if (node.kind == Syntax::column) {
    const auto column = std::ranges::find(table.columns, node.text, &RuleColumn::name);
    if (column != table.columns.end() && !column->enum_labels.empty()) {
      return refuse("the column \"" + node.text + "\" is of an enum type, which an expression cannot read",
                    node.offset);
    }
  }
  for (const Expression& argument : node.arguments) RULES_TRY(check_enums(argument, table));
  return {};
}

void add_columns(const Expression& node, std::vector<std::string>& names) {
  if (node.kind == Syntax::column && std::ranges::find(names, node.text) == names.end()) names.push_back(node.text);
  for (const Expression& argument : node.arguments) add_columns(argument, names);
}

Failure load(Type type, const lcr::Value& value, Scratch& scratch, Datum& out) {
  const std::string_view bytes(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  switch (value.mark) {
    case lcr::ValueMark::null:
      out.state = State::null;
      return Failure::none;
    case lcr::ValueMark::unchanged:
      out.state = State::undecidable;
      return Failure::none;
    case lcr::ValueMark::binary:
      return decode(type, bytes, out);
    case lcr::ValueMark::text:
      out.state = State::value;
      return input(scratch, type, bytes, out) == Failure::none ? Failure::none : Failure::corrupt;
  }
  return Failure::corrupt;
}

}  // namespace

Ruled<Expression> parse_row_expression(std::string_view text) {
  RULES_ASSIGN(tree, parse(text));
  if (auto alone = check_row_alone(tree); !alone) return std::unexpected(place_in(text, std::move(alone).error()));
  return tree;
}

Expression column_expression(const std::string& column) {
  Expression node;
  node.kind = Syntax::column;
  node.text = column;
  return node;
}

Expression as_type(Expression expression, std::string_view type) {
  Expression cast;
  cast.kind = Syntax::cast;
  cast.offset = expression.offset;
  cast.text = type;
  cast.height = expression.height + 1;
  cast.arguments.push_back(std::move(expression));
  return cast;
}

std::vector<std::string> columns_read(const Expression& expression) {
  std::vector<std::string> names;
  add_columns(expression, names);
  return names;
}

Ruled<RowExpression> RowExpression::compile(const Expression& expression, const RuleTable& table,
                                            std::string_view source) {
  RULES_TRY(check_enums(expression, table));
  auto strings = std::make_unique<Strings>();
  RULES_ASSIGN(typed, type_expression(expression, table, *strings));
  if (!is_encoded(typed.type)) return refuse("the expression has a type that a column cannot get", expression.offset);
  Scratch scratch;
  RULES_TRY(fold(typed, scratch, *strings));
  RowExpression made(Program(typed), typed.type, std::move(strings));
  // These are the same for all rows of this version of the table.
  const auto give = [&](std::string_view value, Datum& out) {
    made.strings_->emplace_back(value);
    give_text(out, made.strings_->back());
    out.state = State::value;
  };
  for (const Load& needed : made.program_.loads()) {
    if (needed.from == Load::From::row) {
      if (std::ranges::find(made.columns_, needed.column) == made.columns_.end())
        made.columns_.push_back(needed.column);
      continue;
    }
    Datum& out = made.program_.at(needed.place);
    if (needed.attribute == Attribute::schema) give(table.schema, out);
    if (needed.attribute == Attribute::table) give(table.name, out);
    if (needed.attribute == Attribute::source) give(source, out);
  }
  return made;
}

Failure RowExpression::evaluate(std::span<const lcr::Value> row, Scratch& scratch, Datum& out) {
  static constexpr lcr::Value kNull{};
  scratch.clear();
  for (const Load& needed : program_.loads()) {
    if (needed.from != Load::From::row) continue;
    const lcr::Value& value = needed.column < row.size() ? row[needed.column] : kNull;
    if (const Failure failure = load(needed.type, value, scratch, program_.at(needed.place));
        failure != Failure::none) {
      return failure;
    }
  }
  out = program_.value(scratch);
  return program_.failure();
}

}  // namespace thalweg::rules
