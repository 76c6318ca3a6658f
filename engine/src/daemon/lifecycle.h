#pragma once

#include "control/state.h"

namespace thalweg::daemon {

using control::State;

// The present state of a stream or of a destination. Owner: whoever guards it.
class Lifecycle {
 public:
  explicit Lifecycle(State first) : state_(first) {}

  State state() const { return state_; }
  control::StateNames names() const { return names_of(state_); }
  bool is_enabled() const { return state_ != State::disabled && state_ != State::aborted && state_ != State::dropped; }
  // False: it was there already. What the table does not have is a defect of ours: it is logged, and taken.
  bool enter(State next);

 private:
  State state_;
};

}  // namespace thalweg::daemon
