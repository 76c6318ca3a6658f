#pragma once

#include "simulation/scheduler.h"

namespace thalweg::simulation {

// The poll(2) events of the socket of a database connection (a PGconn); `changes`: when they may change by themselves.
short database_events(const void* connection, short wanted, Time& changes);

}  // namespace thalweg::simulation
