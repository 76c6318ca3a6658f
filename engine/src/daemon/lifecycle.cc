#include "daemon/lifecycle.h"

#include "base/log.h"

namespace thalweg::daemon {

bool Lifecycle::enter(State next) {
  if (next == state_) return false;
  if (!may_follow(state_, next)) {
    base::log_event(base::LogLevel::error, "state_out_of_order",
                    {{"from_status", names().status},
                     {"from_phase", names().phase},
                     {"to_status", names_of(next).status},
                     {"to_phase", names_of(next).phase}});
  }
  state_ = next;
  return true;
}

}  // namespace thalweg::daemon
