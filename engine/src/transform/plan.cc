#include "transform/plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pg/connection.h"

namespace thalweg::transform {
namespace {

constexpr base::TypeId kText{25};
constexpr base::TypeId kVarchar{1043};

class Planner {
 public:
  Planner(std::span<const SourceColumn> columns, const std::string& table) : columns_(columns), table_(table) {
    for (size_t i = 0; i < columns.size(); ++i) sent_.push_back({.source = i, .name = columns[i].name, .mask = {}});
  }

  base::Result<void> take(const Step& step) {
    const auto column = std::ranges::find(sent_, step.column, &SentColumn::name);
    if (column == sent_.end()) return refuse(step, "there is none of this name that is replicated");
    switch (step.kind) {
      case StepKind::drop_column:
        if (is_key(*column)) return refuse(step, "it is part of the key that identifies rows, and cannot be dropped");
        if (sent_.size() == 1) return refuse(step, "it is the last one, and cannot be dropped");
        sent_.erase(column);
        return {};
      case StepKind::rename_column:
        if (std::ranges::find(sent_, step.to, &SentColumn::name) != sent_.end()) {
          return refuse(step, fmt::format("{} is another column's name already", pg::quote_identifier(step.to)));
        }
        column->name = step.to;
        return {};
      case StepKind::mask_column:
        return mask(step, *column);
    }
    return {};
  }
  std::vector<SentColumn> sent() && { return std::move(sent_); }

 private:
  bool is_key(const SentColumn& column) const { return columns_[column.source].is_key; }

  base::Result<void> mask(const Step& step, SentColumn& column) const {
    if (is_key(column)) return refuse(step, "it is part of the key that identifies rows, and cannot be masked");
    if (column.mask) return refuse(step, "it is masked already");
    if (step.mask.kind == MaskKind::partial && !is_text(columns_[column.source].type)) {
      return refuse(step, "only columns of the types text and character varying can be masked in part");
    }
    column.mask = step.mask;
    return {};
  }

  base::Result<void> refuse(const Step& step, std::string_view why) const {
    base::Error error = base::fail(base::ErrorCode::transformation_refused,
                                   fmt::format("A transformation of {} does not fit: of column {}, {}.", table_,
                                               pg::quote_identifier(step.column), why))
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
