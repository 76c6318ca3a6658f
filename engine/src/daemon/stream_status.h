#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "control/managed_streams.h"
#include "instantiation/progress.h"

// Functions that make the statuses of a stream and of its destinations.

namespace thalweg::daemon {

control::InstantiationStatus to_status(const instantiation::ProgressReport& report);
// Whether it reads the queue and lives with the capture or receiver (DirectDestination): it has no backlog and is not
// on its way out.
bool is_direct(const control::DestinationDefinition& destination);
// The direct destination of a stream; null: there is none.
const control::DestinationDefinition* direct_destination(const control::StreamDefinition& stream);
control::StreamMode mode_of(const control::StreamDefinition& stream);
control::DestinationMode mode_of(const control::StreamDefinition& stream,
                                 const control::DestinationDefinition& destination);

void add_tables(control::DestinationStatus& out, const control::Delivery& delivery,
                std::span<const telemetry::TableSample> changes, const instantiation::ProgressReport& copied,
                bool running);

}  // namespace thalweg::daemon
