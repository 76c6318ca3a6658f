#include "capture/transformed_forms.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "pg/connection.h"

namespace thalweg::capture {
namespace {

using nlohmann::json;
using transform::Step;
using transform::Steps;

constexpr size_t kBytesMax = size_t{64} << 20;
constexpr size_t kFormsMax = 1000;  // of one relation; the oldest ones are forgotten

// Columns and kinds of the steps: neither values nor keys.
std::string text_of(const Steps& steps) {
  json text = json::array();
  for (const Step& step : steps) {
    text.push_back({static_cast<int>(step.kind), step.column, step.to, static_cast<int>(step.mask.kind), step.columns});
  }
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool names(const Steps& steps, const std::string& column) {
  return std::ranges::any_of(steps, [&](const Step& step) {
    return step.column == column || step.to == column || std::ranges::find(step.columns, column) != step.columns.end();
  });
}

bool has_numbers(const Form& form) {
  return std::ranges::none_of(form, [](const FormColumn& column) { return column.number == 0; });
}

bool has_names_of(const Form& one, const Form& other) {
  return std::ranges::equal(one, other, {}, &FormColumn::name, &FormColumn::name);
}

// By names alone: columns have gone, and others have come behind them, and nothing else.
bool may_follow(const Form& before, const Form& now) {
  auto next = before.begin();
  bool added = false;
  for (const FormColumn& column : now) {
    const auto at = added ? before.end() : std::ranges::find(next, before.end(), column.name, &FormColumn::name);
    if (at != before.end()) {
      next = at + 1;
      continue;
    }
    added = true;
    if (std::ranges::find(before, column.name, &FormColumn::name) != before.end()) return false;
  }
  return true;
}

// Each column that a step names is what it was.
bool follows(const Form& before, const Form& now, const Steps& steps) {
  if (!has_numbers(before) || !has_numbers(now)) return may_follow(before, now);
  return std::ranges::all_of(now, [&](const FormColumn& column) {
    const auto was = std::ranges::find(before, column.number, &FormColumn::number);
    return was == before.end() || was->name == column.name || (!names(steps, was->name) && !names(steps, column.name));
  });
}

std::string text_of(const Form& form) {
  return fmt::format("{}", fmt::join(form | std::views::transform(&FormColumn::name), ", "));
}

json to_json(const Form& form) {
  json columns = json::array();
  for (const FormColumn& column : form) columns.push_back({column.number, column.name});
  return columns;
}

Form form_of(const json& columns) {
  Form form;
  for (const json& column : columns) {
    form.push_back({.number = column.at(0).get<int32_t>(), .name = column.at(1).get<std::string>()});
  }
  return form;
}

}  // namespace

void TransformedForms::open(std::filesystem::path file, const std::string& source) {
  file_ = std::move(file);
  source_ = source;
  known_.clear();
  std::error_code missing;
  if (file_.empty() || !std::filesystem::exists(file_, missing)) return;
  const auto text = base::read_file(file_, kBytesMax);
  if (!text) {
    base::log_error("transformed_forms_unreadable", text.error());
    return;
  }
  try {
    const json in = json::parse(*text);
    if (in.at("source") != source_) return;
    for (const json& row : in.at("tables")) {
      Known known;
      row.at("steps").get_to(known.steps);
      for (const json& form : row.at("forms")) known.forms.push_back(form_of(form));
      known.refused = form_of(row.at("refused"));
      known.answered = form_of(row.at("answered"));
      known_.emplace(base::RelationId{row.at("relation").get<uint32_t>()}, std::move(known));
    }
  } catch (const json::exception& exception) {
    known_.clear();
    base::log_event(base::LogLevel::warning, "transformed_forms_unreadable",
                    {{"file", file_.string()}, {"what", exception.what()}});
  }
}

base::Result<void> TransformedForms::retain(const std::set<base::RelationId>& relations) {
  const size_t gone = std::erase_if(known_, [&](const auto& entry) { return !relations.contains(entry.first); });
  return gone > 0 ? note() : base::Result<void>{};
}

base::Result<void> TransformedForms::take(const lcr::TableDescription& table, Form form, const Steps& steps) {
  Known& known = known_[table.relation];
  if (std::string text = text_of(steps); known.steps != text) {
    // Other steps were given by somebody who has seen the form that was refused.
    known = {.steps = std::move(text), .answered = std::move(known.refused)};
  }
  const auto taken = std::ranges::find_if(known.forms, [&](const Form& one) { return has_names_of(one, form); });
  if (taken != known.forms.end() && (!has_numbers(form) || !has_numbers(*taken) || *taken == form)) {
    known.last = *taken;
    return {};
  }
  const Form before = !known.last.empty() || known.forms.empty() ? known.last : known.forms.back();
  if (!before.empty() && !has_names_of(form, known.answered) && !follows(before, form, steps)) {
    known.refused = std::move(form);
    THALWEG_TRY(note());
    const std::string name = pg::quote_table(table.schema_name, table.table_name);
    base::Error error =
        base::fail(base::ErrorCode::transformation_refused,
                   fmt::format("Columns of {} have other names at the source than before, or other places, and its "
                               "transformations name columns: they were {}, and are {}.",
                               name, text_of(before), text_of(known.refused)))
            .error();
    error.table = name;
    return std::unexpected(std::move(error));
  }
  known.last = form;
  known.forms.push_back(std::move(form));
  if (known.forms.size() > kFormsMax) known.forms.erase(known.forms.begin());
  return note();
}

base::Result<void> TransformedForms::note() const {
  if (file_.empty()) return {};
  json tables = json::array();
  for (const auto& [relation, known] : known_) {
    json forms = json::array();
    for (const Form& form : known.forms) forms.push_back(to_json(form));
    tables.push_back({{"relation", relation.value},
                      {"steps", known.steps},
                      {"forms", forms},
                      {"refused", to_json(known.refused)},
                      {"answered", to_json(known.answered)}});
  }
  const json out = {{"source", source_}, {"tables", tables}};
  THALWEG_TRY(base::make_folders(file_.parent_path()));
  return base::write_file_atomically(file_, out.dump(-1, ' ', false, json::error_handler_t::replace), 0600);
}

}  // namespace thalweg::capture
