#pragma once

#include "simulation/scheduler.h"

namespace thalweg::simulation {

// The wall clock of all machines of the world: microseconds since 1970. It jumps when it is stepped.
int64_t wall_now_micros();
void step_wall_clock(Time by);

}  // namespace thalweg::simulation
