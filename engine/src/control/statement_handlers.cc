#include "control/statement_handlers.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/error_policies.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using base::BindKind;
using nlohmann::json;

constexpr size_t kHandlersMax = 100;
constexpr size_t kStatementBytesMax = 16'384;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own
constexpr size_t kNameBytesMax = 64;
constexpr size_t kErrorsMax = 100;
constexpr std::array<std::string_view, 4> kMoments = {"instead", "after", "precommit", "error"};
constexpr std::array<std::string_view, 3> kOperations = {"INSERT", "UPDATE", "DELETE"};

bool has(const auto& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

void read_operations(ObjectReader& reader, std::vector<std::string>& out) {
  const json* const operations = reader.member("operations", false);
  if (operations == nullptr) return;
  constexpr std::string_view kWrong = "must be an array of INSERT, UPDATE and DELETE, each once at most";
  if (!operations->is_array() || operations->empty()) return reader.refuse("operations", kWrong);
  for (const json& operation : *operations) {
    const bool is_one = operation.is_string() && has(kOperations, operation.get<std::string>());
    if (!is_one || has(out, operation.get<std::string>())) {
      return reader.refuse("operations", kWrong);
    }
    out.push_back(operation.get<std::string>());
  }
}

void read_errors(ObjectReader& reader, std::vector<std::string>& out) {
  const json* const errors = reader.member("errors", false);
  if (errors == nullptr) return;
  const auto refuse = [&] {
    reader.refuse("errors", fmt::format("must be an array of 1 to {}, each once: {}", kErrorsMax, kNamesOfErrors));
  };
  if (!errors->is_array() || errors->empty() || errors->size() > kErrorsMax) return refuse();
  for (const json& error : *errors) {
    if (!error.is_string() || !names_errors(error.get<std::string>()) || has(out, error.get<std::string>())) {
      return refuse();
    }
    out.push_back(error.get<std::string>());
  }
}

// The first name that a statement of this kind cannot have, with the reason; empty: none.
std::string wrong_name(const StatementHandlerDefinition& handler) {
  for (const base::BindName& name : handler.bound.names) {
    const bool is_column = name.kind == BindKind::new_value || name.kind == BindKind::old_value;
    const bool is_of_change =
        is_column || name.kind == BindKind::operation || name.kind == BindKind::schema || name.kind == BindKind::table;
    if (handler.when == HandlerMoment::precommit && is_of_change) {
      return fmt::format("{} is of a change: at the end of a transaction there are :commit_time, :commit_lsn and :xid",
                         written(name));
    }
    if (handler.when != HandlerMoment::error && base::is_of_failure(name.kind)) {
      return fmt::format("{} is of an error: only a handler of `error` has it", written(name));
    }
    if (is_column && handler.table.empty()) {
      return fmt::format("{} is a column of one table: name it", written(name));
    }
  }
  return {};
}

base::Result<StatementHandlerDefinition> read_handler(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  StatementHandlerDefinition out;
  const std::string when = reader.string("when", 1, kNameBytesMax);
  const auto moment = std::ranges::find(kMoments, when);
  if (moment != kMoments.end()) out.when = static_cast<HandlerMoment>(moment - kMoments.begin());
  if (moment == kMoments.end() && !reader.failed()) {
    reader.refuse("when", fmt::format("must be one of {}", fmt::join(kMoments, ", ")));
  }
  const bool has_schema = reader.member("schema", false) != nullptr;
  if (has_schema || reader.member("table", false) != nullptr) {
    out.schema = reader.string("schema", 1, kIdentifierBytesMax);
    out.table = reader.string("table", 1, kIdentifierBytesMax);
  }
  read_operations(reader, out.operations);
  if (out.when == HandlerMoment::precommit) {
    if (!out.table.empty()) reader.refuse("table", "is none of a handler that stands at the end of a transaction");
    if (!out.operations.empty()) {
      reader.refuse("operations", "are none of a handler that stands at the end of a transaction");
    }
  }
  if (out.when == HandlerMoment::instead && out.table.empty()) {
    reader.refuse("table", "is needed: a statement takes the place of the changes of one table");
  }
  read_errors(reader, out.errors);
  if (out.when != HandlerMoment::error && !out.errors.empty()) {
    reader.refuse("errors", "are only of a handler whose `when` is `error`");
  }
  out.statement = reader.string("statement", 1, kStatementBytesMax);
  if (!reader.failed()) {
    auto bound = base::bind_names(out.statement);
    if (bound) out.bound = std::move(*bound);
    const std::string why = bound ? wrong_name(out) : bound.error();
    if (!why.empty()) reader.refuse("statement", why);
  }
  THALWEG_TRY(reader.finish());
  return out;
}

}  // namespace

std::string_view name_of(HandlerMoment when) { return kMoments[static_cast<size_t>(when)]; }

bool StatementHandlerDefinition::is_of(std::string_view operation) const {
  return when != HandlerMoment::precommit && (operations.empty() || has(operations, operation));
}

base::Result<StatementHandlerDefinitions> read_statement_handlers(const json& value, const std::string& pointer) {
  if (!value.is_array() || value.size() > kHandlersMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} handlers", kHandlersMax)));
  }
  StatementHandlerDefinitions out;
  for (size_t i = 0; i < value.size(); ++i) {
    THALWEG_ASSIGN(StatementHandlerDefinition handler, read_handler(value[i], fmt::format("{}/{}", pointer, i)));
    out.push_back(std::move(handler));
  }
  return out;
}

void to_json(json& out, const StatementHandlerDefinition& handler) {
  out = {{"when", name_of(handler.when)}, {"statement", handler.statement}};
  if (!handler.table.empty()) {
    out["schema"] = handler.schema;
    out["table"] = handler.table;
  }
  if (!handler.operations.empty()) out["operations"] = handler.operations;
  if (!handler.errors.empty()) out["errors"] = handler.errors;
}

}  // namespace thalweg::control
