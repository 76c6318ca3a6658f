#pragma once

#include <atomic>
#include <cstdint>

#include "control/desired_state.h"

namespace thalweg::daemon {

// The phase of a destination's thread, and what is asked of it. The thread enters phases; the others ask, and what they
// ask may interrupt it. README.md has the table.
//
// Guarded by the destination's mutex, but for the two methods that say otherwise: those are single atomics (relaxed:
// what they announce is read under the mutex).
class DestinationCourse {
 public:
  enum class Phase : uint8_t {
    ended,      // there is no thread, or it is about to end
    resting,    // paused, aborted, waiting for its next try or for a new session; or between two tries
    preparing,  // the copy, then the logs of earlier sessions
    starting,   // the consumer of this session's backlog starts
    live,       // the consumer reads this session's backlog
    leaving,    // the same, until the end of the transactions that it has begun
    removing,   // the stream's objects at the destination
  };
  enum class Ending : uint8_t { none, drained, now };

  explicit DestinationCourse(control::DesiredStatus desired, bool force) : desired_(desired), force_(force) {}

  // --- anybody, without the mutex
  control::DesiredStatus desired() const { return desired_.load(std::memory_order_relaxed); }
  // Whether the present work is to end. Stays set until the thread enters a phase.
  const std::atomic<bool>& interrupt() const { return interrupt_; }

  // --- the supervisor asks
  // Before the thread begins.
  void begin() {
    ending_ = Ending::none;
    enter(Phase::resting);
  }
  // The thread is to end with the session: `drains`: only once it has taken all of the queue, if it is live.
  void end(bool drains) {
    const bool waits = drains && phase_ == Phase::live && ending_ == Ending::none;
    if (ending_ != Ending::now) ending_ = waits ? Ending::drained : Ending::now;
    update();
  }
  // False: that was desired already.
  bool desire(control::DesiredStatus desired, bool force) {
    if (desired == this->desired() && force == force_) return false;
    if (is_dropped()) retry_ = true;  // it goes on with that force
    desired_.store(desired, std::memory_order_relaxed);
    force_ = force;
    update();
    return true;
  }
  // Notes that the destination has other rules now.
  void change_rules() {
    rules_changed_ = true;
    update();
  }

  // --- anybody asks
  void retry() {
    retry_ = true;
    update();
  }
  void start_over() { start_over_ = true; }

  // --- the thread
  void enter(Phase phase) {
    phase_ = phase;
    interrupt_.store(interrupts(), std::memory_order_relaxed);
  }
  // Enters `preparing` with all that was asked for until now. True: a retry was, or other rules, so that earlier errors
  // are past.
  bool begin_try() {
    const bool is_asked_for = take_retry() || rules_changed_;
    rules_changed_ = start_over_ = false;
    enter(Phase::preparing);
    return is_asked_for;
  }
  // Enters `removing`; a retry that was asked for is that.
  void begin_removal() {
    take_retry();
    enter(Phase::removing);
  }

  Phase phase() const { return phase_; }
  Ending ending() const { return ending_; }
  bool force() const { return force_; }
  bool retries() const { return retry_; }
  bool starts_over() const { return start_over_; }
  bool is_dropped() const { return desired() == control::DesiredStatus::dropped; }
  // A rest is over.
  bool is_due() const { return ending_ != Ending::none || retry_ || rules_changed_ || pauses(); }
  bool pauses() const { return desired() != control::DesiredStatus::enabled; }
  // A consumer has, or may have, taken something of this session's backlog.
  bool has_consumer() const { return phase_ == Phase::starting || phase_ == Phase::live || phase_ == Phase::leaving; }
  // The consumer is to end where no change is lost.
  bool leaves() const { return phase_ == Phase::leaving || (phase_ == Phase::live && (pauses() || rules_changed_)); }
  // The present try was interrupted on request.
  bool is_cut_short() const { return interrupt_.load(std::memory_order_relaxed) || leaves(); }

 private:
  bool interrupts() const {
    const bool ends = ending_ == Ending::now;
    switch (phase_) {
      case Phase::ended:
        return false;
      case Phase::resting:
      case Phase::preparing:
      case Phase::starting:
        return ends || pauses() || rules_changed_;
      case Phase::live:
      case Phase::leaving:
        return ends || is_dropped();  // a pause and other rules make it leave
      case Phase::removing:
        return ends || retry_;
    }
    return ends;
  }
  void update() {
    if (interrupts()) interrupt_.store(true, std::memory_order_relaxed);
  }
  bool take_retry() {
    const bool retry = retry_;
    retry_ = false;
    return retry;
  }

  Phase phase_ = Phase::ended;
  Ending ending_ = Ending::none;
  bool retry_ = false;
  bool start_over_ = false;
  bool rules_changed_ = false;
  std::atomic<control::DesiredStatus> desired_;  // Writer: the supervisor. Readers: anybody
  bool force_;
  std::atomic<bool> interrupt_{false};  // Writers: whoever has the mutex. Readers: anybody
};

}  // namespace thalweg::daemon
