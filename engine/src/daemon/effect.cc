#include "daemon/effect.h"

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
    judging_ = in.at("judging").get<uint64_t>();
    begin_ = EffectBegin{.from = {in.at("from").get<uint64_t>()}, .since = {in.at("since").get<int64_t>()}};
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
  std::error_code error;
  std::filesystem::remove(file_, error);
  if (error) base::log_error("effect_not_removed", base::file_error(error.value(), "remove " + file_.string()));
}

void Effect::begin(uint64_t judging, const EffectBegin& at) {
  std::lock_guard lock(mutex_);
  if (judging_ == judging && begin_) return;
  // Before anybody can be told. A disk that takes no file costs a later position after the engine's next start.
  const json document = {{"judging", judging}, {"from", at.from.value}, {"since", at.since.value}};
  if (auto stored = base::write_file_atomically(file_, document.dump() + "\n", 0600); !stored) {
    base::log_error("effect_not_stored", stored.error());
  }
  judging_ = judging;
  begin_ = at;
}

std::optional<EffectBegin> Effect::of(uint64_t judging) const {
  std::lock_guard lock(mutex_);
  return judging_ == judging ? begin_ : std::nullopt;
}

}  // namespace thalweg::daemon
