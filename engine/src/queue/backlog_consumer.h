#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/error.h"
#include "base/ids.h"
#include "queue/backlog_ledger.h"
#include "queue/frame_source.h"
#include "queue/lcr_queue.h"
#include "queue/spillable.h"
#include "queue/spilling_consumer.h"
#include "queue/taken_frames.h"
#include "spill/durable_log.h"
#include "spill/spill_space.h"

// The consumer of one of several destinations (docs/decisions/fan-out.md; Wong et al. 2009, figure 4). As long as no
// agent has taken anything from memory, frames go to a durable log: the destination may be away for days, and the
// source need not keep its WAL. An agent reads that log. Once it has read all of it, it reads the queue's memory like
// any other consumer; a lag is then spilled without being durable (SpillingConsumer).

namespace thalweg::queue {

inline constexpr uint64_t kBacklogSegmentBytes = uint64_t{16} << 20;

struct BacklogOptions {
  std::filesystem::path folder;  // of the log, made when it is needed; its parent exists
  uint64_t session = 0;          // the log's id: of this start of the capture, and no other
  base::Lsn from;                // every transaction that commits from here on comes whole
  // Minimum time on disk, of a destination that fell behind a moment ago.
  std::chrono::milliseconds on_disk_for{0};
  uint64_t segment_bytes = kBacklogSegmentBytes;  // on disk; then a segment ends with the transaction
};

struct BacklogStatistics {
  bool on_disk = false;                // the agent reads, or would read, from disk
  uint64_t frames = 0;                 // not taken yet, in the queue's memory and on disk
  uint64_t frames_on_disk = 0;         // of those
  uint64_t lcrs = 0;                   // on disk
  uint64_t spilled_lcrs = 0;           // moved to disk so far
  uint64_t spilled_bytes = 0;          // before compression
  std::optional<base::Error> failure;  // why nothing can be moved now: the queue keeps it, the source is held back
  bool not_durable = false;            // `failure` is an fsync's: see BacklogConsumer::not_durable
};

// Thread-safe: browse, dequeue and release belong to the agent, move to the spiller, the rest to the destination,
// statistics and logged to anybody. The agent must not wait for anything but browse while it looks at a frame.
class BacklogConsumer final : public FrameSource, public Spillable {
 public:
  // Takes consumer `consumer` of `queue` over, before the first enqueue. Queue, space and clock outlive it. The space
  // is this consumer's own.
  BacklogConsumer(LcrQueue& queue, size_t consumer, spill::SpillSpace& space, const base::Clock& clock,
                  BacklogOptions options);
  BacklogConsumer(const BacklogConsumer&) = delete;
  BacklogConsumer& operator=(const BacklogConsumer&) = delete;

  // --- the agent
  base::Result<const std::byte*> browse(std::chrono::microseconds timeout) override;
  void dequeue() override;
  void release() override;

  // --- the spiller
  bool move() override;
  bool is_spilling() const override { return on_disk_.load(std::memory_order_relaxed) || memory_.is_spilling(); }

  // --- the destination
  // For an agent that is to end while the capture goes on. True: it may end anywhere, it reads from disk. False: it
  // gets nothing more from the next place on where no transaction has begun and not ended (is_cut).
  bool cut();
  bool is_cut() const { return is_cut_.load(std::memory_order_acquire); }
  // Once it is cut: everything that the agent got commits below.
  base::Lsn taken() const;
  // Call it when the agent has ended. True: the next agent gets everything again that has not been confirmed. False:
  // some of it was in memory and is gone; only a new start of the capture brings it back. `durable`: transactions that
  // commit below are durable at the destination. Of an agent that was cut nothing is gone if that is all it got.
  bool leave(base::Lsn durable);
  // The next agent gets every transaction whole that commits from there on. Until one has taken something from memory.
  base::Lsn begins_at() const;
  // From now on discards what it holds and what comes: the operator has given the destination up. The agent has ended.
  void discard();
  // Transactions that commit below `durable` are durable at the destination: removes them from the log.
  void confirm(base::Lsn durable);
  // Keeps it on disk until further notice.
  void stay_on_disk(bool stay);
  // Ends writing: syncs what it can, for the next process or session. The spiller has ended.
  void close();

  // Transactions that commit below it are durable in the log, or at the destination; `from` until there are some.
  base::Lsn logged() const { return {logged_.load(std::memory_order_acquire)}; }
  // An fsync failed, or what was spilled cannot be read: `logged` no longer advances, though the log continues. Either
  // a new start of the capture brings the lost part again, or the agent reads all of the log, and none is needed. Any
  // thread may call this.
  bool not_durable() const { return not_durable_.load(std::memory_order_relaxed); }
  BacklogStatistics statistics() const;

 private:
  void join();
  // Functions that are called with mutex_ held.
  base::Result<bool> take_batch();
  base::Result<void> append(const lcr::FrameView& frame);
  base::Result<void> sync_if_due(bool now);
  void note_durability();
  bool may_leave_disk() const;
  bool go_to_disk(base::Lsn durable);
  base::Result<const std::byte*> browse_memory(std::chrono::microseconds timeout);
  base::Result<const std::byte*> next_spilled();

  LcrQueue& queue_;
  const size_t consumer_;
  spill::SpillSpace& space_;
  const base::Clock& clock_;
  const BacklogOptions options_;
  const std::chrono::steady_clock::time_point begun_;
  base::Doorbell bell_;
  SpillingConsumer memory_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool attended_ = false;  // an agent reads: its first browse said so
  bool stay_ = false;
  bool discarding_ = false;
  bool is_lost_ = false;  // frames that had been spilled cannot be read: this log ends before them
  base::Lsn from_;        // every transaction that commits from here on comes whole, of those that its log gets
  std::unique_ptr<spill::DurableLog> log_;
  BacklogLedger ledger_;
  std::vector<uint32_t> undescribed_;  // relations of which the segment does not repeat the description yet
  uint64_t unsynced_bytes_ = 0;
  std::chrono::steady_clock::time_point synced_at_;
  std::optional<base::Error> failure_;
  uint64_t appended_lcrs_ = 0, appended_bytes_ = 0;

  // The agent's.
  bool joined_ = false;
  std::span<const std::byte> run_;  // read from the log, not dequeued
  const std::byte* at_ = nullptr;   // browsed in memory, and not dequeued; null: none
  TakenFrames taken_;               // from memory. With mutex_ held where there is no agent, and once it is cut
  // Writer: the agent in browse, the destination while there is no agent; both under mutex_. Readers: the agent (its
  // own writes), is_spilling.
  std::atomic<bool> on_disk_{false};
  std::atomic<bool> consumed_{
      false};  // an agent took something from memory. Writer: the agent. Reader: spiller, destination
  // Writer: the destination, under mutex_. Reader: the agent, relaxed: it sees it soon enough.
  std::atomic<bool> cut_asked_{false};
  std::atomic<bool> is_cut_{false};  // Writer: the agent (release), the destination while there is none. Reader: it
  std::atomic<uint64_t> logged_;     // Writer: under mutex_ (release). Readers: anybody (acquire)
  std::atomic<bool> not_durable_{false};  // Writer: under mutex_. Readers: anybody
};

}  // namespace thalweg::queue
