#include "apply/parked_failure.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace thalweg::apply {

std::string failure_json(const ParkedFailure& failure, const base::Error& why) {
  nlohmann::json document = nlohmann::json::object();
  if (failure.change > 0) document["change"] = failure.change;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) document[name] = value;
  };
  add("table", why.table);
  add("constraint", failure.named.constraint);
  add("column", failure.named.column);
  add("type", failure.named.type);
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string failure_of(std::string_view message, std::string_view json) {
  return fmt::format("{}::jsonb || jsonb_build_object('of', hashtextextended({}, 0)::text)", json, message);
}

}  // namespace thalweg::apply
