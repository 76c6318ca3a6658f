#include "daemon/lifecycle.h"

#include "base/log.h"

namespace thalweg::daemon {

void report_forbidden(State from, State to) {
  base::log_event(base::LogLevel::error, "state_out_of_order",
                  {{"from_status", names_of(from).status},
                   {"from_phase", names_of(from).phase},
                   {"to_status", names_of(to).status},
                   {"to_phase", names_of(to).phase}});
}

}  // namespace thalweg::daemon
