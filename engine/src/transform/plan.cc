#include "transform/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "pg/connection.h"

namespace thalweg::transform {
namespace {

constexpr base::TypeId kText{25};
constexpr base::TypeId kVarchar{1043};
constexpr int32_t kModifierHeader = 4;  // a length's modifier is longer than the length
// Among ten million values two share one of so many with a probability of 1 in 370,000.
constexpr uint32_t kDigitsMin = 16;
constexpr std::string_view kNoneOfThisName = "there is none of this name that is replicated";

// Built-in types, which every server has under these names and numbers.
struct AddedType {
  std::string_view name;
  base::TypeId type;
  std::string_view computed;  // its name in expressions; empty: they have no values of it
};
constexpr std::array<AddedType, 13> kAddedTypes = {{{"bigint", {20}, "int8"},
                                                    {"boolean", {16}, "bool"},
                                                    {"character varying", {1043}, "varchar"},
                                                    {"date", {1082}, "date"},
                                                    {"double precision", {701}, "float8"},
                                                    {"integer", {23}, "int4"},
                                                    {"jsonb", {3802}, ""},
                                                    {"numeric", {1700}, "numeric"},
                                                    {"smallint", {21}, "int2"},
                                                    {"text", {25}, "text"},
                                                    {"timestamp with time zone", {1184}, "timestamptz"},
                                                    {"timestamp without time zone", {1114}, "timestamp"},
                                                    {"uuid", {2950}, "uuid"}}};

base::Error does_not_fit(const std::string& table, const std::string& column, std::string_view why) {
  return refusal(table, fmt::format("A transformation of {} does not fit: of column {}, {}.", table,
                                    pg::quote_identifier(column), why));
}

class Planner {
 public:
  Planner(std::span<const SourceColumn> columns, const std::string& table) : columns_(columns), table_(table) {
    for (size_t i = 0; i < columns.size(); ++i) sent_.push_back({.source = i, .name = columns[i].name, .mask = {}});
  }

  base::Result<void> take(const Step& step) {
    if (step.kind == StepKind::keep_columns) return keep(step);
    if (step.kind == StepKind::add_column) return add(step);
    const auto column = std::ranges::find(sent_, step.column, &SentColumn::name);
    if (column == sent_.end()) return refuse(step.column, kNoneOfThisName);
    switch (step.kind) {
      case StepKind::drop_column:
        if (is_key(*column))
          return refuse(step.column, "it is part of the key that identifies rows, and cannot be dropped");
        if (sent_.size() == 1) return refuse(step.column, "it is the last one, and cannot be dropped");
        sent_.erase(column);
        return {};
      case StepKind::rename_column:
        if (is_taken(step.to)) {
          return refuse(step.column, fmt::format("{} is another column's name already", pg::quote_identifier(step.to)));
        }
        column->name = step.to;
        return {};
      case StepKind::mask_column:
        return mask(step, *column);
      case StepKind::cast_column:
        return cast(step, *column);
      default:
        return {};
    }
  }
  std::vector<SentColumn> sent() && { return std::move(sent_); }

 private:
  bool is_key(const SentColumn& column) const { return !column.added && columns_[column.source].is_key; }
  bool is_taken(const std::string& name) const {
    return std::ranges::find(sent_, name, &SentColumn::name) != sent_.end();
  }

  base::Result<void> keep(const Step& step) {
    for (const std::string& name : step.columns) {
      if (!is_taken(name)) return refuse(name, kNoneOfThisName);
    }
    const auto goes = [&](const SentColumn& column) {
      return std::ranges::find(step.columns, column.name) == step.columns.end();
    };
    for (const SentColumn& column : sent_) {
      if (!goes(column) || !is_key(column)) continue;
      return refuse(column.name, "it is part of the key that identifies rows, and must be kept");
    }
    std::erase_if(sent_, goes);
    return {};
  }

  base::Result<void> add(const Step& step) {
    if (is_taken(step.column)) return refuse(step.column, "it is there already");
    const auto* const type = std::ranges::find(kAddedTypes, step.type, &AddedType::name);
    if (type == kAddedTypes.end()) {
      return refuse(step.column, fmt::format("a column of the type {} cannot be added, but one of {}", step.type,
                                             fmt::join(kAddedTypes | std::views::transform(&AddedType::name), ", ")));
    }
    SentColumn added{
        .name = step.column,
        .added = AddedColumn{.type = type->type, .type_name = std::string(type->name), .value = step.value}};
    if (!step.expression.empty()) THALWEG_TRY(compute(step, *type, added));
    sent_.push_back(std::move(added));
    return {};
  }

  base::Result<void> compute(const Step& step, const AddedType& type, SentColumn& added) const {
    if (type.computed.empty()) return refuse(step.column, fmt::format("no expression has the type {}", type.name));
    auto expression = rules::parse_row_expression(step.expression);
    if (!expression) {
      const rules::RuleError& error = expression.error();
      return refuse(step.column, fmt::format("the expression is refused at line {}, column {}: {}", error.line,
                                             error.column, error.message));
    }
    ComputedColumn computed{
        .type = type.type, .type_name = std::string(type.name), .expression = {}, .text = step.expression, .reads = {}};
    for (const std::string& name : rules::columns_read(*expression)) {
      const auto read = std::ranges::find(sent_, name, &SentColumn::name);
      const std::string quoted = pg::quote_identifier(name);
      if (read == sent_.end())
        return refuse(step.column, fmt::format("the expression reads {}: {}", quoted, kNoneOfThisName));
      if (read->added) {
        return refuse(step.column, fmt::format("the expression reads {}, which is added: expressions read the source's "
                                               "columns",
                                               quoted));
      }
      if (read->mask) return refuse(step.column, fmt::format("the expression reads {}, which is masked", quoted));
      if (read->computed) {
        return refuse(step.column, fmt::format("the expression reads {}, which is cast: add it before the cast, and "
                                               "write the cast into the expression",
                                               quoted));
      }
      computed.reads.push_back(read->source);
    }
    rules::rename_columns(*expression, [&](const std::string& name) {
      return columns_[std::ranges::find(sent_, name, &SentColumn::name)->source].name;
    });
    computed.expression = rules::as_type(std::move(*expression), type.computed);
    added.computed = std::move(computed);
    return {};
  }

  base::Result<void> cast(const Step& step, SentColumn& column) const {
    if (is_key(column)) return refuse(step.column, "it is part of the key that identifies rows, and cannot be cast");
    if (column.added) return refuse(step.column, "it is added: give it the other type there");
    if (column.mask) return refuse(step.column, "it is masked, and what is masked cannot be cast");
    if (column.computed) return refuse(step.column, "it is cast already");
    const auto* const type = std::ranges::find(kAddedTypes, step.type, &AddedType::name);
    if (type == kAddedTypes.end() || type->computed.empty()) {
      const auto is_target = [](const AddedType& added) { return !added.computed.empty(); };
      return refuse(
          step.column,
          fmt::format(
              "it cannot be cast to {}, but to one of {}", step.type,
              fmt::join(kAddedTypes | std::views::filter(is_target) | std::views::transform(&AddedType::name), ", ")));
    }
    const std::string& name = columns_[column.source].name;
    column.computed = ComputedColumn{.type = type->type,
                                     .type_name = std::string(type->name),
                                     .expression = rules::as_type(rules::column_expression(name), type->computed),
                                     .text = {},
                                     .reads = {column.source}};
    return {};
  }

  base::Result<void> mask(const Step& step, SentColumn& column) const {
    if (is_key(column)) return refuse(step.column, "it is part of the key that identifies rows, and cannot be masked");
    if (column.added) return refuse(step.column, "it is added: give it another value there");
    if (column.mask) return refuse(step.column, "it is masked already");
    if (column.computed) return refuse(step.column, "it is cast, and what is cast cannot be masked");
    const auto reads = [&](const SentColumn& other) {
      return other.computed && std::ranges::find(other.computed->reads, column.source) != other.computed->reads.end();
    };
    if (const auto reader = std::ranges::find_if(sent_, reads); reader != sent_.end()) {
      return refuse(step.column, fmt::format("the expression of {} reads it, and would send what is masked",
                                             pg::quote_identifier(reader->name)));
    }
    const bool takes_text = step.mask.kind == MaskKind::partial || step.mask.needs_key();
    if (takes_text && !is_text(columns_[column.source].type)) {
      return refuse(step.column, "only columns of the types text and character varying can be masked so");
    }
    column.mask = step.mask;
    return step.mask.kind == MaskKind::hash ? fit_hash(step, column) : base::Result<void>{};
  }

  base::Result<void> fit_hash(const Step& step, SentColumn& column) const {
    const SourceColumn& source = columns_[column.source];
    if (source.modifier < kModifierHeader) return {};
    const auto held = static_cast<uint32_t>(source.modifier - kModifierHeader);
    if (held < kDigitsMin) {
      return refuse(step.column,
                    fmt::format("its type holds {} characters, and a hash has {} at least", held, kDigitsMin));
    }
    column.mask->digits = std::min(column.mask->digits, held);
    return {};
  }

  base::Result<void> refuse(const std::string& column, std::string_view why) const {
    return std::unexpected(does_not_fit(table_, column, why));
  }

  std::span<const SourceColumn> columns_;
  const std::string& table_;
  std::vector<SentColumn> sent_;
};

}  // namespace

base::Result<std::vector<SentColumn>> plan(const Steps& steps, std::span<const SourceColumn> columns,
                                           const std::string& table) {
  Planner planner(columns, table);
  for (const Step& step : steps) THALWEG_TRY(planner.take(step));
  return std::move(planner).sent();
}

std::vector<std::string> columns_read(const Step& step) {
  if (step.expression.empty()) return {};
  const auto expression = rules::parse_row_expression(step.expression);
  return expression ? rules::columns_read(*expression) : std::vector<std::string>{};
}

bool have_computed_columns(const Steps& steps) {
  return std::ranges::any_of(
      steps, [](const Step& step) { return step.kind == StepKind::cast_column || !step.expression.empty(); });
}

base::Result<rules::RowExpression> compile(const SentColumn& column, const rules::RuleTable& table,
                                           std::string_view source) {
  const ComputedColumn& computed = *column.computed;
  auto compiled = rules::RowExpression::compile(computed.expression, table, source);
  if (compiled) return std::move(*compiled);
  const std::string name = pg::quote_table(table.schema, table.name);
  if (computed.text.empty()) {
    return std::unexpected(
        does_not_fit(name, column.name, fmt::format("the cast is refused: {}", compiled.error().message)));
  }
  const rules::RuleError error = rules::place_in(computed.text, std::move(compiled).error());
  return std::unexpected(does_not_fit(
      name, column.name,
      fmt::format("the expression is refused at line {}, column {}: {}", error.line, error.column, error.message)));
}

bool may_lack_value(const rules::RowExpression& expression, const rules::RuleTable& table) {
  // Of a partitioned table, each partition's own identity decides what its changes bring.
  if (table.replica_identity == 'f' && !table.is_partitioned) return false;
  // If nothing else is read, the result did not change either.
  return expression.columns().size() > 1 && std::ranges::any_of(expression.columns(), [&](uint16_t column) {
           return table.columns[column].may_be_long && !table.columns[column].is_key;
         });
}

std::string cure_of_lack(const rules::RuleTable& table) {
  return fmt::format("ALTER TABLE {} REPLICA IDENTITY FULL{} makes later changes bring the whole old row",
                     pg::quote_table(table.schema, table.name),
                     table.is_partitioned ? ", of each partition, too," : "");
}

base::Error refusal(const std::string& table, std::string message) {
  base::Error error = base::fail(base::ErrorCode::transformation_refused, std::move(message)).error();
  error.table = table;
  return error;
}

bool is_text(base::TypeId type) { return type == kText || type == kVarchar; }

}  // namespace thalweg::transform
