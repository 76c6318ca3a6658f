#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apply/apply.h"
#include "apply/frame_blocks.h"
#include "apply/reader/assembler.h"
#include "apply/reader/destination_watch.h"
#include "apply/reader/table_writer.h"
#include "apply/reader/transaction_queue.h"
#include "apply/shared_state.h"
#include "base/baton.h"
#include "metadata/metadata_cache.h"
#include "queue/frame_source.h"
#include "telemetry/agent.h"
#include "telemetry/marker_log.h"
#include "telemetry/snapshot.h"
#include "telemetry/transaction_sample.h"

// Browses the queue, assembles transactions, suppresses transactions that are already at the destination.

namespace thalweg::apply {

// An agent; any thread may call sample(). The holder of the baton does its work: the agent's thread, or at low load the
// thread that puts the frames into the queue (docs/decisions/speed.md).
class Reader {
 public:
  Reader(SharedState& shared, const ApplyOptions& options, LsnRanges applied, pg::Connection connection,
         BlockPool& pool, spill::SpillSpace& spill, metadata::MetadataCache& cache, TransactionQueue& out);
  ~Reader();  // joins; the shared state must be ending, or draining
  void join();
  // Thread-safe: does the agent's work, for new frames, on the caller's thread, or leaves it to the thread that is at
  // it. False: wake the agent.
  bool try_work();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  telemetry::ComponentSample sample() const;
  const telemetry::MarkerLog& markers() const { return markers_; }
  // Open transactions, as of a second ago.
  std::shared_ptr<const telemetry::TransactionSamples> transactions() const { return shown_.read(); }

 private:
  void run();
  base::Result<void> read();
  // Waits for a frame, without the baton where others may take it; then as FrameSource::browse.
  base::Result<const std::byte*> await(uint32_t ticket);
  base::Result<void> take(const lcr::FrameView& frame);
  bool look();
  bool is_little(const lcr::FrameView& frame) const;
  // COMMIT and PROGRESS give what is to be handed over.
  base::Result<std::unique_ptr<Transaction>> handle(const lcr::FrameView& frame);
  base::Result<std::unique_ptr<Transaction>> handle_truncate(const lcr::FrameView& frame, size_t spill_above);
  base::Result<void> hand_over(std::unique_ptr<Transaction> transaction);
  base::Result<void> keep_within_budget();
  base::Result<void> spill_old();
  void tend_tables();
  // Lends the baton while the destination answers, so that new frames do not wait for the answer.
  base::Result<void> watch_destination();
  void show_transactions();
  bool await_spill_space();
  bool is_duplicate(base::Lsn commit_lsn) const;

  SharedState& shared_;
  queue::FrameSource& frames_;
  // The holder does the agent's work. Guards everything below that is not atomic or published.
  base::Baton baton_;
  base::Doorbell frames_bell_;          // rung by the producer, where it does the agent's work
  bool producer_works_ = false;         // constant once the thread runs
  std::optional<base::Error> failure_;  // of the producer's work: it ends the agent
  const std::function<void()> on_partitions_;
  const size_t memory_budget_bytes_;
  const base::Lsn recovered_low_watermark_;
  const LsnRanges applied_;
  BlockPool& pool_;
  spill::SpillSpace& spill_;
  TransactionQueue& out_;
  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter lcrs_, transactions_, bytes_, duplicates_;
  metadata::MetadataCache& cache_;
  TableWriter tables_;
  DestinationWatch watch_;  // the agent's
  Assembler::Counters counters_;
  std::chrono::steady_clock::time_point ages_seen_at_;
  Assembler assembler_;
  telemetry::MarkerLog markers_;
  telemetry::Snapshot<telemetry::TransactionSamples> shown_;
  std::chrono::steady_clock::time_point shown_at_;
  bool shown_any_ = false;
  std::thread thread_;
};

}  // namespace thalweg::apply
