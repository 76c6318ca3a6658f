#pragma once

#include "queue/lcr_queue.h"
#include "telemetry/sample.h"

namespace thalweg::daemon {

// The component QUEUE, as the statistics show it.
telemetry::ComponentSample queue_sample(const queue::LcrQueue& queue);

}  // namespace thalweg::daemon
