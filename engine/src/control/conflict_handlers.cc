#include "control/conflict_handlers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;
using telemetry::ConflictKind;

constexpr size_t kHandlersMax = 100;
constexpr size_t kWordBytesMax = 64;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own
constexpr size_t kColumnsMax = 1600;
constexpr size_t kOrderMax = 100;
constexpr size_t kValueBytesMax = 1000;
constexpr size_t kExpressionBytesMax = 10'000;
constexpr std::array<std::string_view, 2> kTies = {"discard", "overwrite"};

bool can_overwrite(ConflictKind kind) {
  return kind == ConflictKind::insert_exists || kind == ConflictKind::update_missing ||
         kind == ConflictKind::update_origin_differs || kind == ConflictKind::delete_origin_differs;
}

size_t read_choice(ObjectReader& reader, std::string_view member, std::span<const std::string_view> allowed) {
  const std::string text = reader.string(member, 1, kWordBytesMax);
  const auto found = std::ranges::find(allowed, text);
  if (found != allowed.end()) return static_cast<size_t>(found - allowed.begin());
  if (!reader.failed()) reader.refuse(member, fmt::format("must be one of {}", fmt::join(allowed, ", ")));
  return 0;
}

bool compares(ConflictAction action) {
  return action == ConflictAction::maximum || action == ConflictAction::minimum || action == ConflictAction::latest ||
         action == ConflictAction::priority;
}

// Whether the action decides each column of a group for itself, whatever the others are.
bool is_by_column(ConflictAction action) {
  return action == ConflictAction::delta || action == ConflictAction::append || action == ConflictAction::merge ||
         action == ConflictAction::expression;
}

// Whether there are two rows of which one can be made.
bool can_combine(ConflictKind kind) {
  return kind == ConflictKind::insert_exists || kind == ConflictKind::update_origin_differs;
}

// Texts that differ from each other.
void read_texts(ObjectReader& reader, const char* member, size_t texts_max, size_t bytes_max,
                std::vector<std::string>& out) {
  const json* const texts = reader.member(member, false);
  if (texts == nullptr) return;  // something was refused before
  const std::string rule = fmt::format("must be 1 to {} texts of 1 to {} bytes, each once", texts_max, bytes_max);
  if (!texts->is_array() || texts->empty() || texts->size() > texts_max) return reader.refuse(member, rule);
  for (const json& element : *texts) {
    const auto* const text = element.get_ptr<const std::string*>();
    const bool fits = text != nullptr && !text->empty() && text->size() <= bytes_max;
    if (!fits || std::ranges::find(out, *text) != out.end()) return reader.refuse(member, rule);
    out.push_back(*text);
  }
}

void read_group(ObjectReader& reader, ConflictHandlerDefinition& out) {
  if (reader.member("columns", false) == nullptr) return;
  if (out.table.empty()) reader.refuse("columns", "are those of one table: name it");
  if (!can_combine(out.kind)) reader.refuse("columns", "are for insert_exists and update_origin_differs only");
  read_texts(reader, "columns", kColumnsMax, kIdentifierBytesMax, out.columns);
}

// Members that only one action has, which needs them.
void read_own_members(ObjectReader& reader, ConflictHandlerDefinition& out) {
  const bool has_order = reader.member("order", false) != nullptr;
  if (has_order) read_texts(reader, "order", kOrderMax, kValueBytesMax, out.order);
  if (has_order != (out.action == ConflictAction::priority)) {
    reader.refuse("order", has_order ? "is for priority only" : "lists the values of the column, the best first");
  }
  const bool has_expression = reader.member("expression", false) != nullptr;
  if (has_expression) out.expression = reader.string("expression", 1, kExpressionBytesMax);
  if (has_expression != (out.action == ConflictAction::expression)) {
    reader.refuse("expression", has_expression ? "is for the action of that name only" : "says what the column gets");
  }
  if (has_expression && out.columns.size() != 1) reader.refuse("columns", "names the one column that gets the value");
}

bool is_of_commits(const ConflictHandlerDefinition& handler) {
  return handler.action == ConflictAction::latest && handler.by.empty();
}

void read_resolution(ObjectReader& reader, ConflictHandlerDefinition& out) {
  if (reader.member("by", false) != nullptr) out.by = reader.string("by", 1, kIdentifierBytesMax);
  const bool has_tie = reader.member("tie", false) != nullptr;
  if (has_tie) out.tie_overwrites = read_choice(reader, "tie", kTies) == 1;
  if (reader.failed()) return;
  if ((!out.by.empty() || has_tie) && !compares(out.action)) {
    reader.refuse(has_tie ? "tie" : "by", "is for maximum, minimum, latest and priority only");
  }
  if (out.by.empty() && compares(out.action) && out.action != ConflictAction::latest) {
    reader.refuse("by", "names the column that decides");
  }
  if (is_of_commits(out) && !out.columns.empty()) {
    reader.refuse("by", "names the column that decides: a commit is that of the whole row, not of a group of columns");
  }
  if (!out.by.empty() && out.table.empty()) reader.refuse("by", "is a column of one table: name it");
  if ((compares(out.action) || is_by_column(out.action)) && !can_combine(out.kind)) {
    reader.refuse("action", "of two rows is for insert_exists and update_origin_differs only");
  }
  if (out.action == ConflictAction::delta && out.kind != ConflictKind::update_origin_differs) {
    reader.refuse("action", "can be delta for update_origin_differs only");
  }
  if (is_by_column(out.action) && out.columns.empty()) {
    reader.refuse("columns", fmt::format("names what {} is for", name_of(out.action)));
  }
}

// `handler`, behind `before`, both of one kind. The member that is wrong, and the reason; no member: none is.
std::pair<std::string_view, std::string> wrong_behind(const ConflictHandlerDefinition& before,
                                                      const ConflictHandlerDefinition& handler) {
  const bool is_same_table = before.schema == handler.schema && before.table == handler.table;
  if (!handler.columns.empty() && before.columns.empty() && (is_same_table || before.table.empty())) {
    return {"columns", "are of a table and kind for which a handler before decides"};
  }
  if (before.columns.empty() || !(is_same_table || handler.table.empty())) return {};
  if (is_of_commits(handler)) {
    return {"by",
            "names the column that decides: there is a group of columns, whose changes give the row another time"};
  }
  const auto shared = std::ranges::find_first_of(handler.columns, before.columns);
  if (shared == handler.columns.end()) return {};
  return {"columns", fmt::format("has {}, which is in the group of a handler before", *shared)};
}

base::Result<ConflictHandlerDefinition> read_handler(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  ConflictHandlerDefinition out;
  out.kind = static_cast<ConflictKind>(read_choice(reader, "kind", telemetry::kConflictKindNames));
  const bool has_schema = reader.member("schema", false) != nullptr;
  if (has_schema || reader.member("table", false) != nullptr) {
    out.schema = reader.string("schema", 1, kIdentifierBytesMax);
    out.table = reader.string("table", 1, kIdentifierBytesMax);
  }
  out.action = static_cast<ConflictAction>(read_choice(reader, "action", telemetry::kConflictActionNames));
  if (!reader.failed() && out.action == ConflictAction::overwrite && !can_overwrite(out.kind)) {
    reader.refuse("action",
                  "can be overwrite for insert_exists, update_missing, update_origin_differs and "
                  "delete_origin_differs only");
  }
  read_group(reader, out);
  read_resolution(reader, out);
  read_own_members(reader, out);
  THALWEG_TRY(reader.finish());
  return out;
}

}  // namespace

base::Result<ConflictHandlerDefinitions> read_conflict_handlers(const json& value, const std::string& pointer) {
  if (!value.is_array() || value.size() > kHandlersMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} handlers", kHandlersMax)));
  }
  ConflictHandlerDefinitions out;
  for (size_t i = 0; i < value.size(); ++i) {
    THALWEG_ASSIGN(ConflictHandlerDefinition handler, read_handler(value[i], fmt::format("{}/{}", pointer, i)));
    for (const ConflictHandlerDefinition& before : out) {
      if (before.kind != handler.kind) continue;
      const auto [member, why] = wrong_behind(before, handler);
      if (!member.empty()) return std::unexpected(invalid_at(fmt::format("{}/{}/{}", pointer, i, member), why));
    }
    out.push_back(std::move(handler));
  }
  return out;
}

void to_json(json& out, const ConflictHandlerDefinition& handler) {
  out = {{"kind", telemetry::name_of(handler.kind)}, {"action", name_of(handler.action)}};
  if (!handler.table.empty()) {
    out["schema"] = handler.schema;
    out["table"] = handler.table;
  }
  if (!handler.columns.empty()) out["columns"] = handler.columns;
  if (!handler.by.empty()) out["by"] = handler.by;
  if (handler.tie_overwrites) out["tie"] = "overwrite";
  if (!handler.order.empty()) out["order"] = handler.order;
  if (!handler.expression.empty()) out["expression"] = handler.expression;
}

}  // namespace thalweg::control
