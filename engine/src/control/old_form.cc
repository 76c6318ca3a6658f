#include "control/old_form.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace thalweg::control {

using nlohmann::json;

void migrate_old_form(json& stream) {
  if (stream.contains("receive_from")) stream["receive_from"].erase("shared_capture");
  if (stream.contains("destinations")) {
    for (json& destination : stream["destinations"]) {
      if (!destination.contains("backlog")) destination["backlog"] = true;
    }
    return;
  }
  json only = {{"id", kOldFormId}, {"status", "ENABLED"}, {"backlog", false}};
  if (stream.contains("send_to")) {
    only["name"] = stream["send_to"]["engine"];
    only["send_to"] = std::move(stream["send_to"]);
    stream.erase("send_to");
  } else {
    only["name"] = stream["destination"]["name"];
    only["conninfo"] = stream["destination"]["conninfo"];
    stream.erase("destination");
  }
  stream["destinations"].push_back(std::move(only));
}

std::optional<std::string> adopt_id(const StreamDefinition& now, const StreamDefinition& next) {
  const DestinationDefinition* const migrated = now.find(kOldFormId);
  if (!migrated || next.find(kOldFormId)) return std::nullopt;
  if (next.destinations.size() == 1) return next.destinations.front().id;
  const auto same = std::ranges::find_if(next.destinations, [&](const DestinationDefinition& destination) {
    return destination.conninfo.text == migrated->conninfo.text && destination.send_to == migrated->send_to;
  });
  if (same == next.destinations.end()) return std::nullopt;
  return same->id;
}

}  // namespace thalweg::control
