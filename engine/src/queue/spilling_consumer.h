#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/doorbell.h"
#include "base/error.h"
#include "queue/frame_source.h"
#include "queue/lcr_queue.h"
#include "queue/spillable.h"
#include "spill/spill_log.h"
#include "spill/spill_space.h"
#include "telemetry/agent.h"
#include "telemetry/sample.h"

// Queue spill: keeps one slow consumer of an LcrQueue from holding up the others. Once it lags too far, a QueueSpiller
// moves its frames from the queue to segments on disk; it reads them from there, in order, before it reads from memory
// again (the paper's queue spill, WLCG 2007, without a table; Wong et al. 2009, figure 4).

namespace thalweg::queue {

struct SpillingOptions {
  std::string label = "queue";  // in the segments' names
  // Spilling begins when the consumer is behind by more than either. 0: half of what the queue holds.
  uint64_t lag_frames_max = 0;
  uint64_t lag_bytes_max = 0;
  // Spills a consumer that is behind only if its lag is more than twice that of the consumer farthest ahead; otherwise
  // its lag is the source's burst, and flow control is cheaper than the disk. Off: spills on its own lag alone. A
  // queue's only consumer always does.
  bool compare_with_others = true;
};

// Each is written by one owner; any thread may read them at any time.
struct QueueSpillStatistics {
  bool spilling;                       // frames are on their way through the disk now
  uint64_t spilled_frames;             // moved to disk so far
  uint64_t spilled_lcrs;               // those of them that are changes
  uint64_t spilled_bytes;              // their bytes, before compression
  uint64_t waiting_frames;             // moved and not yet given back
  uint64_t waiting_bytes;              // their bytes, before compression
  uint64_t episodes;                   // times that spilling began
  spill::SpillUse use;                 // of the space, which others may share
  std::optional<base::Error> failure;  // why frames cannot be moved now: spill_limit_reached, disk_full, file_error
};

// Adds the statistics to a component's sample: counters spilled_lcrs and spilled_bytes; gauges spill_frames,
// spill_bytes and spill_age_us (engine/contract/metrics.json).
void add_to(telemetry::ComponentSample& sample, const QueueSpillStatistics& statistics);

// Thread-safe: browse, dequeue and set_doorbell belong to the consumer's agent, move to the spiller. Any thread may
// call statistics, and discard once the agent has ended.
//
// The two sides share the queue's consumer under a mutex, held for one frame by the agent and for one batch by the
// spiller. While the agent looks at a frame in memory (between browse and dequeue) the spiller cannot move that frame
// or any after it. So an agent must not wait for anything else in between: dequeue first, then wait. One that breaks
// this holds up the queue as a consumer without spill does; nothing is lost.
class SpillingConsumer final : public FrameSource, public Spillable {
 public:
  // Takes consumer `consumer` of `queue` over, before the first enqueue. Queue and space outlive it. A space of its own
  // (with clear() called at start) makes limit, bytes and age those of this consumer.
  SpillingConsumer(LcrQueue& queue, size_t consumer, spill::SpillSpace& space, SpillingOptions options = {});
  SpillingConsumer(const SpillingConsumer&) = delete;
  SpillingConsumer& operator=(const SpillingConsumer&) = delete;

  // --- the consumer's agent, as with LcrQueue
  // The first frame, from disk or from memory, or nullptr when there is none until `timeout` has passed. Valid and
  // unchanged until dequeue. Fails with what reading a segment fails with: corrupt_frame, file_error.
  base::Result<const std::byte*> browse(std::chrono::microseconds timeout) override;
  void dequeue() override;
  void release() override;
  // Rings `bell` instead of its own when something arrives. Before the first enqueue.
  void set_doorbell(base::Doorbell* bell);

  // --- the spiller
  // Moves one batch of frames to disk if the consumer lags too far or has frames there already. Returns whether it
  // moved any. If it fails, the frames stay in the queue (flow control), and the next call tries again.
  bool move() override;
  bool is_spilling() const override { return spilling_flag_.load(std::memory_order_relaxed); }

  // From now on discards its frames and all new ones: the operator has given this consumer up. The spiller does it.
  void discard();

  QueueSpillStatistics statistics() const;

 private:
  bool lags_too_far() const;
  base::Result<void> next_run();  // lock held
  void end_spilling();            // lock held
  bool throw_away();              // lock held

  LcrQueue& queue_;
  const size_t consumer_;
  spill::SpillSpace& space_;
  const SpillingOptions options_;
  base::Doorbell own_bell_;
  base::Doorbell* bell_ = &own_bell_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool held_ = false;  // the agent looks at the queue's first frame
  bool discarding_ = false;
  std::unique_ptr<spill::SpillLog> log_;  // while spilling
  std::optional<spill::LogReader> reader_;
  std::optional<base::Error> failure_;

  // The agent's. Frames from disk that it has not dequeued; they lie in reader_ or in tail_.
  std::span<const std::byte> run_;
  std::vector<std::byte> tail_;

  // Writer: whoever holds mutex_. Readers: the spiller's nap, statistics.
  std::atomic<bool> spilling_flag_{false};
  // Writers: the first four the spiller, the last two the agent.
  telemetry::Counter spilled_frames_, spilled_lcrs_, spilled_bytes_, episodes_;
  telemetry::Counter given_frames_, given_bytes_;
};

}  // namespace thalweg::queue
