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
    // Only then: what earlier versions have noted stays the same.
    if (!step.expression.empty()) text.back().push_back(columns_read(step));
  }
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool names(const Steps& steps, const std::string& column) {
  return std::ranges::any_of(steps, [&](const Step& step) {
    if (step.column == column || step.to == column) return true;
    if (std::ranges::find(step.columns, column) != step.columns.end()) return true;
    const std::vector<std::string> read = columns_read(step);
    return std::ranges::find(read, column) != read.end();
  });
}

bool has_names_of(const Form& left, const Form& right) {
  return std::ranges::equal(left, right, {}, &FormColumn::name, &FormColumn::name);
}

// Whether two forms are the same, as far as numbers are known.
bool may_be(const Form& left, const Form& right) {
  return std::ranges::equal(left, right, [](const FormColumn& a, const FormColumn& b) {
    return a.name == b.name && (a.number == b.number || a.number == 0 || b.number == 0);
  });
}

// The column, if a step names it, is what it was in the other form, or is not in it.
bool follows(const Form& other, const FormColumn& column, const Steps& steps) {
  const bool is_named = names(steps, column.name);
  if (column.number == 0) return !is_named;
  if (const auto was = std::ranges::find(other, column.number, &FormColumn::number); was != other.end()) {
    return was->name == column.name || (!is_named && !names(steps, was->name));
  }
  return std::ranges::all_of(other, [&](const FormColumn& was) {
    return was.number != 0 || was.name == column.name || (!is_named && !names(steps, was.name));
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

std::vector<std::vector<int32_t>> numbers_of(const Form& form) {
  std::vector<std::vector<int32_t>> numbers;
  for (const FormColumn& column : form) numbers.push_back({column.number});
  return numbers;
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
    read(*text);
  } catch (const json::exception& exception) {
    known_.clear();
    base::log_event(base::LogLevel::warning, "transformed_forms_unreadable",
                    {{"file", file_.string()}, {"what", exception.what()}});
  }
}

void TransformedForms::read(const std::string& text) {
  const json in = json::parse(text);
  if (in.at("source") != source_) return;
  for (const json& row : in.at("tables")) {
    Known known;
    row.at("steps").get_to(known.steps);
    for (const json& form : row.at("forms")) {
      if (form.is_array()) {  // an earlier version's, without its position
        const Form noted = form_of(form);
        if (noted.empty() || std::ranges::find(noted, 0, &FormColumn::number) != noted.end()) continue;
        known.forms.push_back({.form = noted, .highest = noted.back().number, .was_taken = true});
        continue;
      }
      known.forms.push_back({.form = form_of(form.at("columns")),
                             .from = {form.at("from").get<uint64_t>()},
                             .until = {form.at("until").get<uint64_t>()},
                             .highest = form.at("highest").get<int32_t>(),
                             .was_taken = form.at("taken").get<bool>(),
                             .is_first = form.at("first").get<bool>(),
                             .was_decoded = form.at("decoded").get<bool>()});
    }
    known.refused = form_of(row.at("refused"));
    known.answered = form_of(row.at("answered"));
    known_.emplace(base::RelationId{row.at("relation").get<uint32_t>()}, std::move(known));
  }
}

base::Result<void> TransformedForms::retain(const std::set<base::RelationId>& relations) {
  const size_t gone = std::erase_if(known_, [&](const auto& entry) { return !relations.contains(entry.first); });
  return gone > 0 ? note() : base::Result<void>{};
}

TransformedForms::Known& TransformedForms::known(base::RelationId relation, const Steps& steps) {
  Known& known = known_[relation];
  std::string text = text_of(steps);
  if (known.steps == text) return known;
  // Other steps were given by somebody who has seen the form that was refused. The numbers of the forms before are as
  // true as they were.
  known.steps = std::move(text);
  if (!known.refused.empty()) known.answered = std::exchange(known.refused, {});
  for (Noted& noted : known.forms) noted.was_taken = noted.is_first = false;
  return known;
}

bool TransformedForms::wants_beginning(base::RelationId relation, const Steps& steps) {
  const Known& of_relation = known(relation, steps);
  return of_relation.answered.empty() && of_relation.refused.empty() &&
         std::ranges::none_of(of_relation.forms, &Noted::was_taken);
}

base::Result<void> TransformedForms::begin(base::RelationId relation, const CatalogueNow& now, const Steps& steps) {
  if (now.catalogue.empty()) return {};  // it is not there any more
  Known& of_relation = known(relation, steps);
  const auto place = std::ranges::upper_bound(of_relation.forms, now.lsn, {}, &Noted::from);
  of_relation.forms.insert(place, Noted{.form = form_in(now.catalogue),
                                        .from = now.lsn,
                                        .until = now.lsn,
                                        .highest = now.catalogue.back().number,
                                        .was_taken = true,
                                        .is_first = true,
                                        .was_decoded = false});
  return note();
}

// Those that a form at `place` has to follow: the ones before it, and the one behind it where that is not an answer.
std::vector<const Form*> TransformedForms::taken_around(const Known& known, size_t place) {
  std::vector<const Form*> around;
  for (size_t i = place; i > 0; --i) {
    const Noted& noted = known.forms[i - 1];
    if (!noted.was_taken) continue;
    around.push_back(&noted.form);
    if (noted.is_first) break;
  }
  const auto behind = known.forms.begin() + static_cast<std::ptrdiff_t>(place);
  const auto next = std::find_if(behind, known.forms.end(), [](const Noted& noted) { return noted.was_taken; });
  if (next != known.forms.end() && !(next->is_first && next->was_decoded)) around.push_back(&next->form);
  return around;
}

base::Result<void> TransformedForms::take(const lcr::TableDescription& table, const CatalogueLook& look, base::Lsn lsn,
                                          const Steps& steps) {
  Known& of_table = known(table.relation, steps);
  std::vector<Noted>& forms = of_table.forms;
  Form form;
  for (const lcr::ColumnDescription& column : table.columns) form.push_back({.name = column.name});

  const auto place = std::ranges::upper_bound(forms, lsn, {}, &Noted::from);
  Noted* const before = place == forms.begin() ? nullptr : &*std::prev(place);
  const Form nothing;
  const int32_t highest = before != nullptr ? before->highest : 0;
  std::vector<std::vector<int32_t>> possible(form.size());
  if (before != nullptr && has_names_of(before->form, form) &&
      (lsn <= before->until || (place != forms.end() && place->was_decoded))) {
    possible = numbers_of(before->form);  // it comes again
  } else if (look.age == CatalogueLook::Age::later) {
    possible = possible_numbers(form.size(), look.catalogue, before != nullptr ? before->form : nothing, highest);
  } else if (const Form same = form_in(look.catalogue); has_names_of(same, form)) {
    possible = numbers_of(same);
  }
  for (size_t i = 0; i < form.size(); ++i) form[i].number = possible[i].size() == 1 ? possible[i].front() : 0;

  const auto around = taken_around(of_table, static_cast<size_t>(place - forms.begin()));
  const bool is_answer = !of_table.answered.empty() && may_be(form, of_table.answered);
  const bool is_refused = around.empty() && !of_table.refused.empty() && may_be(form, of_table.refused);
  const auto fits = [&](size_t column) {
    if (is_refused) return false;
    if (around.empty())
      return form[column].number != 0 || (!possible[column].empty() && !names(steps, form[column].name));
    return !possible[column].empty() && std::ranges::all_of(possible[column], [&](int32_t number) {
      return std::ranges::all_of(around, [&](const Form* other) {
        return follows(*other, {.number = number, .name = form[column].name}, steps);
      });
    });
  };
  if (!is_answer && !std::ranges::all_of(std::views::iota(size_t{0}, form.size()), fits)) {
    return refuse(of_table, std::move(form), table, around);
  }
  if (before != nullptr && before->form == form && (!is_answer || before->is_first)) {
    before->until = std::max(before->until, lsn);
    if (before->was_taken && before->was_decoded) return {};
    before->was_taken = before->was_decoded = true;
    return note();
  }
  int32_t made = highest;
  for (const FormColumn& column : form) made = std::max(made, column.number);
  if (look.age == CatalogueLook::Age::same && !look.catalogue.empty()) made = look.catalogue.back().number;
  if (is_answer) of_table.answered.clear();
  forms.insert(place, Noted{.form = std::move(form),
                            .from = lsn,
                            .until = lsn,
                            .highest = made,
                            .was_taken = true,
                            .is_first = is_answer,
                            .was_decoded = true});
  if (forms.size() > kFormsMax) forms.erase(forms.begin());
  return note();
}

base::Result<void> TransformedForms::refuse(Known& known, Form form, const lcr::TableDescription& table,
                                            const std::vector<const Form*>& others) {
  const std::string name = pg::quote_table(table.schema_name, table.table_name);
  const bool has_numbers = std::ranges::find(form, 0, &FormColumn::number) == form.end();
  const std::string before = others.empty() ? "" : fmt::format("they were {}, and are ", text_of(*others.front()));
  known.refused = std::move(form);
  THALWEG_TRY(note());
  base::Error error =
      base::fail(base::ErrorCode::transformation_refused,
                 has_numbers
                     ? fmt::format("Columns of {} have other names at the source than before, or other places, and "
                                   "its transformations name columns: {}{}.",
                                   name, before, text_of(known.refused))
                     : fmt::format("The columns of {} have changed at the source more than once since the changes "
                                   "that come, so the source cannot say which ones these are, and the table's "
                                   "transformations name columns: {}{}.",
                                   name, before, text_of(known.refused)))
          .error();
  error.table = name;
  return std::unexpected(std::move(error));
}

base::Result<void> TransformedForms::note() const {
  if (file_.empty()) return {};
  json tables = json::array();
  for (const auto& [relation, known] : known_) {
    json forms = json::array();
    for (const Noted& noted : known.forms) {
      forms.push_back({{"columns", to_json(noted.form)},
                       {"from", noted.from.value},
                       {"until", noted.until.value},
                       {"highest", noted.highest},
                       {"taken", noted.was_taken},
                       {"first", noted.is_first},
                       {"decoded", noted.was_decoded}});
    }
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
