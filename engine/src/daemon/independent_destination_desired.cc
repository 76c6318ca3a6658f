#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "daemon/independent_destination.h"
#include "daemon/stream_removal.h"

// A destination with a backlog that is paused, resumed or dropped, or gets other rules, while its session goes on for
// the others.

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using Ending = DestinationCourse::Ending;
using Phase = DestinationCourse::Phase;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kLeavePatience{10};  // of one that is paused, with what it has begun

}  // namespace

void IndependentDestination::take_up(const control::DestinationDefinition& desired) {
  space_.set_limit(desired.parameters.queue_spill_limit_bytes());
  Destination::take_up(desired);
  set_rules(desired.rules);
  desire(desired.status, desired.force);
}

void IndependentDestination::desire(control::DesiredStatus status, bool force) {
  {
    std::lock_guard lock(mutex_);
    if (!course_.desire(status, force)) return;
  }
  changed_.notify_all();
}

void IndependentDestination::set_rules(const control::TableRules& rules) {
  {
    std::lock_guard lock(mutex_);
    if (rules_ == rules) return;
    rules_ = rules;
    course_.change_rules();
    if (life_.state() == State::aborted || retry_due_) course_.retry();  // perhaps it lacked just that
  }
  changed_.notify_all();
}

// True: its consumer may be ended. It was paused or got other rules, and either keeps what it reads on disk, or has got
// done with what it had taken, or does not get done with it.
bool IndependentDestination::takes_leave(std::optional<std::chrono::steady_clock::time_point>& until) {
  const auto now = std::chrono::steady_clock::now();
  if (!until) {
    enter(Phase::leaving);  // and stays there if it is resumed meanwhile: a consumer that was cut gets nothing more
    if (backlog_->cut()) return true;
    observe(State::draining);
    until = now + kLeavePatience;
  }
  if (!consumer_->is_running() || now >= *until) return true;
  if (!backlog_->is_cut()) return false;
  // An apply records the last of it once it ends; another engine's is asked until it has done so.
  if (consumer_->apply() != nullptr || durable() >= backlog_->taken()) consumer_->request_stop(true);
  return false;
}

void IndependentDestination::be_disabled() {
  clear_error();
  forget_retries();
  observe(State::disabled);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return course_.ending() != Ending::none || !is_disabled(); });
  backoff_.reset();
  in_use_.reset();
}

void IndependentDestination::be_dropped() {
  {
    std::lock_guard lock(mutex_);
    if (life_.state() == State::dropped) return;
    observe_locked(State::dropping);
  }
  {
    std::unique_lock lock(session_lock_);
    if (backlog_) backlog_->discard();
    logs_.close();
  }
  while (true) {
    control::Delivery delivery = options_.delivery;
    {
      std::lock_guard lock(mutex_);
      if (course_.ending() != Ending::none) return;
      course_.begin_removal();
      retry_due_.reset();
      delivery.destination.force = course_.force();
    }
    auto removed = remove_destination(delivery, {.stop = &course_.interrupt(), .board = options_.board});
    if (!removed && is_interrupted()) continue;
    std::error_code error;
    if (removed && options_.delivery.destination.backlog) fs::remove_all(options_.directory, error);
    if (removed && error) {
      removed = std::unexpected(base::file_error(error.value(), "remove " + options_.directory.string()));
    }
    if (removed) {
      clear_error();
      if (!removed->empty()) {
        std::lock_guard lock(mutex_);
        error_ = control::ReportedError{base::fail(ErrorCode::database_unreachable, *removed).error(),
                                        options_.clock->unix_now()};
      }
      if (options_.progress != nullptr) options_.progress->clear();
      return observe(State::dropped);
    }
    give_up_or_wait(removed.error(), State::dropping);
    std::unique_lock lock(mutex_);
    const auto due = [&] { return course_.ending() != Ending::none || course_.retries(); };
    if (life_.state() == State::aborted) {
      changed_.wait(lock, due);
    } else {
      changed_.wait_until(lock, *retry_due_, due);
    }
    observe_locked(State::dropping);
  }
}

}  // namespace thalweg::daemon
