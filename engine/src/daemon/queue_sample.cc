#include "daemon/queue_sample.h"

namespace thalweg::daemon {

telemetry::ComponentSample queue_sample(const queue::LcrQueue& queue) {
  const queue::LcrQueueGauges gauges = queue.gauges();
  // Half an arena in use and no slot free are both normal for a moment; a twentieth left is not.
  const bool full = gauges.depth + gauges.depth / 20 >= gauges.capacity && gauges.depth > 0;
  const bool memory = gauges.depth_bytes + gauges.depth_bytes / 20 >= gauges.memory_bytes;
  return {.type = "QUEUE",
          .name = "queue",
          .sub_component = "",
          .server = 0,
          .state = full     ? "IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES"
                   : memory ? "IN FLOW CONTROL: INSUFFICIENT MEMORY"
                            : "NORMAL",
          .time_ns = {},
          .counters = {{"lcrs", gauges.enqueued_lcrs}, {"bytes", gauges.enqueued_bytes}},
          .gauges = {{"depth", static_cast<int64_t>(gauges.depth)},
                     {"depth_bytes", static_cast<int64_t>(gauges.depth_bytes)},
                     {"capacity", static_cast<int64_t>(gauges.capacity)},
                     {"memory_bytes", static_cast<int64_t>(gauges.memory_bytes)}}};
}

}  // namespace thalweg::daemon
