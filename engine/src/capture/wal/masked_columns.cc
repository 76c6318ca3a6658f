#include "capture/wal/masked_columns.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace thalweg::capture {

namespace {

using nlohmann::json;
using transform::StepKind;

constexpr mode_t kMode = 0600;
constexpr base::Lsn kNoEnd{UINT64_MAX};

constexpr const char* kColumns =
    "SELECT c.oid, a.attnum, a.attname FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
    "WHERE n.nspname = $1 AND c.relname = $2 ORDER BY a.attnum";

// Names of columns while steps are followed: of the source's by their places, of others by none.
class Names {
 public:
  explicit Names(std::span<const std::string> columns) : hidden_(columns.size(), false) {
    for (size_t i = 0; i < columns.size(); ++i) places_[columns[i]] = i;
  }

  // False: the step names a column that is not there.
  bool follow(const transform::Step& step) {
    switch (step.kind) {
      case StepKind::drop_column:
        return hide(step.column, true);
      case StepKind::mask_column:
        return hide(step.column, false);
      case StepKind::rename_column: {
        auto node = places_.extract(step.column);
        if (node.empty()) return false;
        node.key() = step.to;
        places_.insert(std::move(node));
        return true;
      }
      case StepKind::keep_columns:
        return keep(step.columns);
      case StepKind::add_column:
        places_.try_emplace(step.column, std::nullopt);
        return true;
      case StepKind::cast_column:
        return places_.contains(step.column);
    }
    return false;
  }
  std::vector<bool> hidden() && { return std::move(hidden_); }

 private:
  bool hide(const std::string& column, bool is_dropped) {
    const auto found = places_.find(column);
    if (found == places_.end()) return false;
    if (found->second) hidden_[*found->second] = true;
    if (is_dropped) places_.erase(found);
    return true;
  }
  bool keep(const std::vector<std::string>& columns) {
    const auto is_kept = [&](const auto& entry) { return std::ranges::find(columns, entry.first) != columns.end(); };
    const bool has_all = std::ranges::all_of(columns, [&](const std::string& name) { return places_.contains(name); });
    for (const auto& entry : places_) {
      if (entry.second && !is_kept(entry)) hidden_[*entry.second] = true;
    }
    std::erase_if(places_, [&](const auto& entry) { return !is_kept(entry); });
    return has_all;
  }

  std::vector<bool> hidden_;
  std::map<std::string, std::optional<size_t>> places_;
};

// Whether all steps fit; `hidden` gets what they mask or drop.
bool follow(const transform::Steps& steps, std::span<const std::string> columns, std::vector<bool>& hidden) {
  Names names(columns);
  bool fits = true;
  for (const transform::Step& step : steps) fits = names.follow(step) && fits;
  hidden = std::move(names).hidden();
  return fits;
}

}  // namespace

std::vector<bool> hidden_columns(const transform::Steps& steps, std::span<const std::string> columns) {
  std::vector<bool> hidden;
  follow(steps, columns, hidden);
  return hidden;
}

base::Result<MaskedColumns> MaskedColumns::load(const std::filesystem::path& file) {
  MaskedColumns masked;
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) {
    // Without what it holds nobody knows what must not be shown.
    if (missing) return std::unexpected(base::file_error(missing.value(), "look for " + file.string()));
    return masked;
  }
  THALWEG_ASSIGN(const std::string text, base::read_file(file));
  try {
    for (const json& entry : json::parse(text)) {
      const ColumnId column(entry.at("relation").get<uint32_t>(), entry.at("column").get<int16_t>());
      const json until = entry.value("until", json(nullptr));
      masked.until_[column] = until.is_null() ? kNoEnd : base::parse_lsn(until.get<std::string>()).value_or(kNoEnd);
    }
  } catch (const json::exception& exception) {
    return base::fail(base::ErrorCode::file_error, fmt::format("{} is damaged: {}", file.string(), exception.what()),
                      base::ErrorSide::engine);
  }
  return masked;
}

base::Result<void> MaskedColumns::save(const std::filesystem::path& file) const {
  json out = json::array();
  for (const auto& [column, until] : until_) {
    json entry = {{"relation", column.first}, {"column", column.second}};
    if (until != kNoEnd) entry["until"] = base::to_string(until);
    out.push_back(std::move(entry));
  }
  return base::write_file_atomically(file, out.dump(), kMode);
}

base::Result<void> MaskedColumns::note(pg::Connection& source, const Transformations& transformations,
                                       base::Lsn needed_from) {
  std::set<ColumnId> now;
  bool fits = true;
  for (const auto& [table, steps] : transformations) {
    THALWEG_ASSIGN(const pg::Rows rows, source.query(kColumns, {table.first, table.second}));
    std::vector<std::string> names;
    for (size_t row = 0; row < rows.size(); ++row) names.emplace_back(rows.text(row, 2));
    std::vector<bool> hidden;
    fits = follow(steps, names, hidden) && fits;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!hidden[row]) continue;
      now.emplace(static_cast<uint32_t>(rows.integer(row, 0)), static_cast<int16_t>(rows.integer(row, 1)));
    }
  }
  THALWEG_ASSIGN(const pg::Rows end, source.query("SELECT pg_catalog.pg_current_wal_insert_lsn()"));
  const base::Lsn here = base::parse_lsn(end.text(0, 0)).value_or(kNoEnd);
  for (auto& [column, until] : until_) {
    if (fits && until == kNoEnd && !now.contains(column)) until = here;
  }
  for (const ColumnId& column : now) until_[column] = kNoEnd;
  std::erase_if(until_, [&](const auto& entry) { return entry.second <= needed_from; });
  return {};
}

}  // namespace thalweg::capture
