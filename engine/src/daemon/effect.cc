#include "daemon/effect.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace thalweg::daemon {
namespace {

using nlohmann::json;

constexpr size_t kFileBytesMax = 4096;

}  // namespace

uint64_t judging(const control::Delivery& delivery) {
  control::StreamDefinition definition = delivery.stream;
  definition.name.clear();
  definition.status = control::DesiredStatus::enabled;
  definition.force = false;
  definition.source = {};
  if (definition.receive_from) definition.capture_kind = {};
  definition.receive_from.reset();
  definition.parameters = {};  // the destination has them, with its own over them
  control::DestinationDefinition only;
  only.rules = delivery.destination.rules;
  only.parameters = control::without_live(delivery.destination.parameters);
  definition.destinations = {std::move(only)};
  return control::fingerprint(definition);
}

Effect::Effect(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code missing;
  if (!std::filesystem::exists(file_, missing)) return;
  const auto content = base::read_file(file_, kFileBytesMax);
  if (!content) {
    base::log_error("effect_unreadable", content.error());
    return;
  }
  const json in = json::parse(*content, nullptr, false);
  try {
    const auto read = [](const json& at) {
      return EffectBegin{.from = {at.at("from").get<uint64_t>()}, .since = {at.at("since").get<int64_t>()}};
    };
    std::vector<EffectBegin> positions;
    for (const json& at : in.value("positions", json::array())) positions.push_back(read(at));
    judging_ = in.at("judging").get<uint64_t>();
    if (in.contains("from")) begin_ = read(in);
    std::vector<Awaited> awaited;
    const json none = json::array();
    const json& waiting = in.contains("awaited") ? in.at("awaited") : none;
    if (waiting.is_object())
      awaited.push_back({.at = read(waiting)});  // of an earlier release, which kept the last one
    for (const json& at : waiting.is_array() ? waiting : none) {
      awaited.push_back({.at = read(at), .is_met = at.at("met").get<bool>(), .is_over = at.at("over").get<bool>()});
    }
    awaited_ = std::move(awaited);
    if (positions.empty() && begin_) positions.push_back(*begin_);  // of an earlier release, which kept the last one
    positions_ = std::move(positions);
  } catch (const json::exception& exception) {
    base::log_event(base::LogLevel::warning, "effect_unreadable",
                    {{"file", file_.string()}, {"what", exception.what()}});
  }
}

void Effect::expect(uint64_t judging) {
  std::lock_guard lock(mutex_);
  if (judging_ == judging) return;
  judging_ = judging;
  begin_.reset();
  if (!awaited_.empty()) awaited_.back().is_over = true;
  settle();
  store();
}

void Effect::await(uint64_t judging, const EffectBegin& at) {
  std::lock_guard lock(mutex_);
  if (judging_ != judging || begin_ || (!awaited_.empty() && !awaited_.back().is_over)) return;
  if (awaited_.size() == kPositionsMax) awaited_.erase(awaited_.begin());
  awaited_.push_back({.at = at});
  store();
}

void Effect::reached(base::Lsn applied) {
  std::lock_guard lock(mutex_);
  if (std::ranges::all_of(awaited_, &Awaited::is_met)) return;
  for (Awaited& awaited : awaited_) {
    if (!awaited.is_met) awaited.at.from = std::max(awaited.at.from, applied);
    awaited.is_met = true;
  }
  settle();
  store();
}

// Those that are known for good are positions like the others.
void Effect::settle() {
  const auto is_open = [](const Awaited& awaited) { return !awaited.is_met || !awaited.is_over; };
  const auto first = std::ranges::find_if(awaited_, is_open);
  for (auto settled = awaited_.begin(); settled != first; ++settled) add(settled->at);
  awaited_.erase(awaited_.begin(), first);
}

void Effect::begin(uint64_t judging, const EffectBegin& at) {
  std::lock_guard lock(mutex_);
  if (judging_ == judging && begin_) return;
  judging_ = judging;
  begin_ = at;
  for (const Awaited& awaited : awaited_) {
    if (awaited.is_over) add(awaited.at);
  }
  awaited_.clear();
  add(at);
  store();  // before anybody can be told
}

std::optional<EffectBegin> Effect::of(uint64_t judging) const {
  std::lock_guard lock(mutex_);
  return judging_ == judging ? begin_ : std::nullopt;
}

std::vector<EffectBegin> Effect::positions() const {
  std::lock_guard lock(mutex_);
  return positions_;
}

// Positions there or behind, of an earlier word, have judged nothing.
void Effect::add(const EffectBegin& at) {
  std::erase_if(positions_, [&](const EffectBegin& earlier) { return earlier.from >= at.from; });
  if (positions_.size() == kPositionsMax) positions_.erase(positions_.begin());
  positions_.push_back(at);
}

// A disk that takes no file costs a later position after the engine's next start.
void Effect::store() const {
  const auto written = [](const EffectBegin& at) { return json{{"from", at.from.value}, {"since", at.since.value}}; };
  json document = begin_ ? written(*begin_) : json::object();
  document["judging"] = judging_;
  for (const Awaited& awaited : awaited_) {
    json& added = document["awaited"].emplace_back(written(awaited.at));
    added["met"] = awaited.is_met;
    added["over"] = awaited.is_over;
  }
  json& positions = document["positions"] = json::array();
  for (const EffectBegin& at : positions_) positions.push_back(written(at));
  if (auto stored = base::write_file_atomically(file_, document.dump() + "\n", 0600); !stored) {
    base::log_error("effect_not_stored", stored.error());
  }
}

}  // namespace thalweg::daemon
