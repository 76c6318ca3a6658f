#include "simulation/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "daemon/destination_errors.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

using base::ErrorCode;

namespace {

constexpr uint32_t kRetriesOnceInLooks = 40;  // of 50 ms
constexpr uint32_t kExecutesOnceInLooks = 10;

// Errors that the execution of a parked transaction may return.
bool is_expected_at_queue(ErrorCode code) {
  switch (code) {
    case ErrorCode::parked_behind:
    case ErrorCode::apply_failed:
    case ErrorCode::apply_conflict:
    case ErrorCode::unknown_error_transaction:  // somebody was faster, or the last answer was lost
      return true;
    default:
      return is_expected(code);
  }
}

}  // namespace

void Operator::come(daemon::Sessions& sessions) {
  const std::unique_lock lock(sessions_lock_);
  sessions_ = &sessions;
}

void Operator::leave() {
  const std::unique_lock lock(sessions_lock_);
  sessions_ = nullptr;
}

control::StreamStats Operator::look() {
  control::StreamStats stats = sessions_->stats();
  look_at_destinations(stats);
  if (!options_.parameters.disable_on_error && !is_at_queue_ && scheduler_.chance(kExecutesOnceInLooks)) {
    execute_something();
  }
  sessions_->take_up(definition_of(options_));
  return stats;
}

void Operator::look_at_destinations(const control::StreamStats& stats) {
  std::string now;
  for (const telemetry::ComponentSample& component : stats.components) now += fmt::format(" | {}", component.state);
  for (const control::DestinationStatus& destination : sessions_->destinations()) {
    const auto code = destination.error ? std::optional(destination.error->error.code) : std::nullopt;
    const control::StateNames names = names_of(destination.state);
    now += fmt::format(" | {} {} {} {} {}", destination.id, names.status, names.phase,
                       name_of(destination.backlog.state), code ? base::name_of(*code) : "");
    // Nothing damages a backlog here: what a loss of power left was seen to when it was written.
    if (code && (!is_expected(*code) || *code == ErrorCode::corrupt_frame)) {
      fail("destination {} fails with {}: {}", destination.id, base::name_of(*code), destination.error->error.message);
    }
    if (destination.state == control::State::aborted && scheduler_.chance(kRetriesOnceInLooks))
      sessions_->find(destination.id)->retry();
  }
  if (now != shown_) trace("{}", now);
  shown_ = now;
}

void Operator::execute_something() {
  const control::StreamDefinition whole = definition_of(options_);
  const control::DestinationDefinition& chosen = whole.destinations[scheduler_.random(whole.destinations.size())];
  if (at_queue_.joinable()) at_queue_.join();
  is_at_queue_ = true;
  at_queue_ = std::thread([this, destination = chosen.id, delivery = control::delivery_to(whole, chosen)] {
    execute_parked(destination, delivery);
    is_at_queue_ = false;
  });
}

void Operator::execute_parked(const std::string& destination, const control::Delivery& delivery) {
  const std::atomic<bool> never{false};
  const auto parked = daemon::parked_errors(delivery, {}, never);
  if (!parked && !is_expected_at_queue(parked.error().code)) {
    fail("the error queue of {}: {}", destination, parked.error().message);
  }
  if (!parked || parked->errors.empty()) return;
  const size_t which = scheduler_.chance(4) ? scheduler_.random(parked->errors.size()) : 0;  // mostly the oldest
  const int64_t id = parked->errors[which].id;
  const auto executed = daemon::execute_parked_error(delivery, {.id = id});
  note_errors_changed(destination);
  trace("{} are parked at {}; {}: {}", parked->errors.size(), destination, id,
        executed ? "executed" : executed.error().message);
  if (!executed && !is_expected_at_queue(executed.error().code)) {
    fail("transaction {} of the error queue of {} fails with {}: {}", id, destination,
         base::name_of(executed.error().code), executed.error().message);
  }
}

void Operator::note_errors_changed(const std::string& destination) {
  const std::shared_lock lock(sessions_lock_);
  if (sessions_ != nullptr) sessions_->find(destination)->note_errors_changed();
}

}  // namespace thalweg::simulation
