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
};
constexpr std::array<AddedType, 13> kAddedTypes = {{{"bigint", {20}},
                                                    {"boolean", {16}},
                                                    {"character varying", {1043}},
                                                    {"date", {1082}},
                                                    {"double precision", {701}},
                                                    {"integer", {23}},
                                                    {"jsonb", {3802}},
                                                    {"numeric", {1700}},
                                                    {"smallint", {21}},
                                                    {"text", {25}},
                                                    {"timestamp with time zone", {1184}},
                                                    {"timestamp without time zone", {1114}},
                                                    {"uuid", {2950}}}};

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
    sent_.push_back(
        {.name = step.column,
         .added = AddedColumn{.type = type->type, .type_name = std::string(type->name), .value = step.value}});
    return {};
  }

  base::Result<void> mask(const Step& step, SentColumn& column) const {
    if (is_key(column)) return refuse(step.column, "it is part of the key that identifies rows, and cannot be masked");
    if (column.added) return refuse(step.column, "it is added: give it another value there");
    if (column.mask) return refuse(step.column, "it is masked already");
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
    base::Error error = base::fail(base::ErrorCode::transformation_refused,
                                   fmt::format("A transformation of {} does not fit: of column {}, {}.", table_,
                                               pg::quote_identifier(column), why))
                            .error();
    error.table = table_;
    return std::unexpected(std::move(error));
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

bool is_text(base::TypeId type) { return type == kText || type == kVarchar; }

}  // namespace thalweg::transform
