#pragma once

#include "simulation/scheduler.h"

namespace thalweg::simulation {

// What poll(2) says of the socket of a database connection (a PGconn), and when that may change by itself.
short database_events(const void* connection, short wanted, Time& changes);

}  // namespace thalweg::simulation
