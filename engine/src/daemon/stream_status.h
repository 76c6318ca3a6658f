#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "control/managed_streams.h"
#include "instantiation/progress.h"

// Functions that make the statuses of a stream and of its destinations.

namespace thalweg::daemon {

control::InstantiationStatus to_status(const instantiation::ProgressReport& report);
// Without a backlog and not on its way out: it lives as its capture or receiver does.
bool reads_queue(const control::DestinationDefinition& destination);
control::Mode mode_of(const control::StreamDefinition& definition);
control::Mode mode_of(const control::StreamDefinition& definition, const control::DestinationDefinition& destination);

void add_tables(control::DestinationStatus& out, const control::Delivery& definition,
                std::span<const telemetry::TableSample> changes, const instantiation::ProgressReport& copied,
                bool running);

}  // namespace thalweg::daemon
