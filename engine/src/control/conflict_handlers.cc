#include "control/conflict_handlers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

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
constexpr std::array<std::string_view, 3> kActions = {"error", "discard", "overwrite"};

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

base::Result<ConflictHandlerDefinition> read_handler(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  ConflictHandlerDefinition out;
  out.kind = static_cast<ConflictKind>(read_choice(reader, "kind", telemetry::kConflictKindNames));
  const bool has_schema = reader.member("schema", false) != nullptr;
  if (has_schema || reader.member("table", false) != nullptr) {
    out.schema = reader.string("schema", 1, kIdentifierBytesMax);
    out.table = reader.string("table", 1, kIdentifierBytesMax);
  }
  out.action = static_cast<HandlerAction>(read_choice(reader, "action", kActions));
  if (!reader.failed() && out.action == HandlerAction::overwrite && !can_overwrite(out.kind)) {
    reader.refuse("action",
                  "can be overwrite for insert_exists, update_missing, update_origin_differs and "
                  "delete_origin_differs only");
  }
  THALWEG_TRY(reader.finish());
  return out;
}

}  // namespace

std::string_view name_of(HandlerAction action) { return kActions[static_cast<size_t>(action)]; }

base::Result<ConflictHandlerDefinitions> read_conflict_handlers(const json& value, const std::string& pointer) {
  if (!value.is_array() || value.size() > kHandlersMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} handlers", kHandlersMax)));
  }
  ConflictHandlerDefinitions out;
  for (size_t i = 0; i < value.size(); ++i) {
    THALWEG_ASSIGN(ConflictHandlerDefinition handler, read_handler(value[i], fmt::format("{}/{}", pointer, i)));
    out.push_back(std::move(handler));
  }
  return out;
}

void to_json(json& out, const ConflictHandlerDefinition& handler) {
  out = {{"kind", telemetry::name_of(handler.kind)}, {"action", name_of(handler.action)}};
  if (handler.table.empty()) return;
  out["schema"] = handler.schema;
  out["table"] = handler.table;
}

}  // namespace thalweg::control
