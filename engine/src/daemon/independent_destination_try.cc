#include "capture/wal/wal_start.h"
#include "daemon/independent_destination.h"
#include "daemon/log_frames.h"
#include "daemon/source_slot.h"

// One try at a destination with a backlog: its copy, the logs of earlier sessions, then this one's LCRs.

namespace thalweg::daemon {
namespace {

using base::Lsn;
using Ending = DestinationCourse::Ending;
using Phase = DestinationCourse::Phase;

constexpr std::chrono::milliseconds kLook{50};  // between two looks at a running consumer
constexpr std::chrono::seconds kLinkPatience{5};

}  // namespace

base::Result<void> IndependentDestination::run_once(const control::Delivery& delivery) {
  if (logs_.is_unread()) {
    std::unique_lock lock(session_lock_);
    THALWEG_TRY(logs_.read_again());
  }
  StartedDestination started;
  if (!delivery.destination.send_to) {
    THALWEG_ASSIGN(started, start_destination(delivery, start_context()));
    if (options_.tables != nullptr) options_.tables->refresh();
    THALWEG_TRY(go_on_from(started.low_watermark));
    note_reached(started.low_watermark);
  }
  backlog_->stay_on_disk(static_cast<bool>(started.constraints_from));
  while (!logs_.empty() && !is_interrupted()) {
    spill::DurableLog& log = logs_.front();
    if (durable() < log.synced()) THALWEG_TRY(replay(delivery, started, log));
    if (durable() < log.synced()) return {};  // stopped
    log.remove();
    std::unique_lock lock(session_lock_);
    logs_.drop_front();
  }
  return go_live(delivery, started);
}

// False: what is between is to be had from the WAL that the capture keeps.
base::Result<bool> IndependentDestination::joins_backlog(Lsn reached) const {
  const Lsn begins_at = std::max(from_, backlog_->begins_at());
  auto joins = logs_.check_reach(reached, begins_at, slot_made_at_, options_.delivery.destination.name);
  if (joins) return true;
  const bool captures = mines(options_.delivery.stream) && !options_.delivery.stream.receive_from;
  if (joins.error().code == base::ErrorCode::source_diverged || !captures) {
    return std::unexpected(std::move(joins.error()));
  }
  auto kept = capture::check_kept(mined_wal_, reached);
  if (kept) return false;
  // A slot that was lost says more than what the next one keeps.
  return std::unexpected(std::move(joins.error().code == base::ErrorCode::slot_lost ? joins.error() : kept.error()));
}

// Its destination was restored to an earlier state, perhaps: then this session has nothing that it could apply.
base::Result<void> IndependentDestination::go_on_from(Lsn reached) {
  THALWEG_ASSIGN(const bool joins, joins_backlog(reached));
  if (!joins) {
    note_reached(reached);  // what it had before it was restored counts no more, in the next session either
    std::lock_guard lock(mutex_);
    lacks_from_ = reached;
    return base::fail(base::ErrorCode::position_gap, "What it lacks is mined again");
  }
  std::unique_lock lock(session_lock_);
  logs_.drop_strays();  // it needs nothing of them
  return {};
}

void IndependentDestination::stop_consumer() {
  if (!consumer_) return;
  consumer_->request_stop(false);
  consumer_->join();
  note_confirmed({consumer_->confirmed().load(std::memory_order_acquire)});
  release_consumer();
}

base::Result<void> IndependentDestination::replay(const control::Delivery& delivery, const StartedDestination& started,
                                                  spill::DurableLog& log) {
  log.rewind();
  LogFrames frames(log);
  THALWEG_TRY(start_consumer(delivery, started, frames));
  clear_error();
  observe(State::catching_up);
  auto watched = watch(log.synced());
  stop_consumer();
  return watched;
}

base::Result<void> IndependentDestination::go_live(const control::Delivery& delivery,
                                                   const StartedDestination& started) {
  {
    std::lock_guard lock(mutex_);
    caught_up_ = false;
    if (is_interrupted()) return {};
    course_.enter(Phase::starting);
  }
  auto begun = start_consumer(delivery, started, *backlog_);
  // If it was paused meanwhile, or got other rules, what it has started may have taken something by now.
  if (begun) enter(Phase::live);
  THALWEG_TRY(std::move(begun));
  note_effect(delivery);
  clear_error();
  in_use_.reset();
  observe(State::catching_up);
  THALWEG_TRY(watch(started.constraints_from));
  if (!started.constraints_from || durable() < started.constraints_from || is_wanted_otherwise()) return {};
  const Lsn applied = consumer_->applied();
  stop_consumer();
  return add_late_constraints(delivery, start_context(), applied);
}

// Whether it has applied what the source had when this began; then it shows that.
bool IndependentDestination::has_caught_up(Lsn target) {
  if (!target || consumer_->applied() < target) return false;
  std::lock_guard lock(mutex_);
  if (course_.phase() != Phase::live) return false;
  caught_up_ = true;
  observe_locked(State::replicating);
  return true;
}

// Returns when interrupted, drained, when it has to start over, or once everything below `until` (zero: never) is
// durable; fails when the consumer does.
base::Result<void> IndependentDestination::watch(Lsn until) {
  Lsn target;  // the source's end when this began
  std::optional<std::chrono::steady_clock::time_point> link_broken_at;
  bool draining = false;
  bool caught_up = false;
  std::optional<std::chrono::steady_clock::time_point> leaves_until;
  while (!is_interrupted()) {
    if (auto failed = consumer_->failure()) return std::unexpected(*failed);
    bool of_session = false;  // what it reads is this session's backlog
    bool leaves = false;
    bool drains = false;
    {
      std::lock_guard lock(mutex_);
      if (course_.starts_over()) return {};
      of_session = course_.has_consumer();
      leaves = course_.leaves();
      drains = course_.ending() == Ending::drained;
    }
    if (auto trouble = unresolved_trouble()) {
      if (options_.delivery.destination.parameters.stops_tables()) return {};  // the next start does it
      return std::unexpected(std::move(*trouble));
    }
    const Lsn confirmed{consumer_->confirmed().load(std::memory_order_acquire)};
    note_confirmed(confirmed);
    if (of_session) backlog_->confirm(durable());
    if (until && confirmed >= until) return {};
    if (leaves && takes_leave(leaves_until)) return {};
    if (drains && !draining) {
      draining = true;
      consumer_->request_stop(true);
    }
    if (draining && !consumer_->is_running()) return {};
    if (auto trouble = consumer_->trouble()) {
      const auto now = std::chrono::steady_clock::now();
      if (!link_broken_at) link_broken_at = now;
      if (now - *link_broken_at >= kLinkPatience || draining) return std::unexpected(*trouble);
    } else {
      link_broken_at.reset();
      if (!target) target = {source_end_->load(std::memory_order_acquire)};
      caught_up = caught_up || has_caught_up(target);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook, [&] { return is_interrupted(); });
  }
  return {};
}

}  // namespace thalweg::daemon
