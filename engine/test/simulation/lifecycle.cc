// A forbidden transition fails the world: takes the place of daemon/lifecycle.cc.

#include "daemon/lifecycle.h"

#include "simulation/verdict.h"

namespace thalweg::daemon {

void report_forbidden(State from, State to) {
  simulation::fail("{} {} may not follow {} {}", names_of(to).status, names_of(to).phase, names_of(from).status,
                   names_of(from).phase);
}

}  // namespace thalweg::daemon
