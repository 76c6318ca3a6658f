#pragma once

#include "control/state.h"

namespace thalweg::daemon {

using control::State;

// Called for a transition that may_follow() does not allow, which is a defect of ours: logs it. The simulation has one
// of its own, which fails the world.
void report_forbidden(State from, State to);

// The present state of a stream or of a destination. Owner: whoever guards it.
class Lifecycle {
 public:
  explicit Lifecycle(State first) : state_(first) {}

  State state() const { return state_; }
  control::StateNames names() const { return names_of(state_); }
  bool is_enabled() const { return state_ != State::disabled && state_ != State::aborted && state_ != State::dropped; }
  // False: it was there already. A forbidden transition is reported, and taken: what it stands for has happened.
  bool enter(State next) {
    if (next == state_) return false;
    if (!may_follow(state_, next)) report_forbidden(state_, next);
    state_ = next;
    return true;
  }

 private:
  State state_;
};

}  // namespace thalweg::daemon
