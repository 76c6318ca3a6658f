#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "shipment/staging.h"

// Receives a source's WAL over a physical slot and stages it. The source may forget what is durable here, and nothing
// else: not what a destination has not got.

namespace thalweg::shipment {

// The staged WAL, and how it stands with the source.
struct StagingReport {
  uint32_t segment_bytes = 0;
  uint32_t timeline = 0;
  base::Lsn begin = {};               // none: nothing is staged
  base::Lsn end = {};                 // received up to here: the segments' files have it
  base::Lsn durable = {};             // on the disk up to here
  uint64_t bytes = 0;                 // on the disk, or on their way there
  bool is_full = false;               // nothing is received until something can be dropped
  base::UnixMicros server_time = {};  // when the source sent the last bytes, by its clock; none: it has sent none yet
};

struct ReceiverOptions {
  base::Conninfo source;
  std::string slot;  // a physical one
  std::filesystem::path directory;
  const base::Clock& clock;
  const std::atomic<bool>* stop;  // by any thread; run() ends within a second
  // By the receiving thread, before the source hears of it: all of the WAL up to there is durable.
  std::function<void(base::Lsn)> on_durable = [](base::Lsn) {};
  // By the receiving thread, whenever something has changed.
  std::function<void(const StagingReport&)> on_staged = [](const StagingReport&) {};
  // Segments that end there or before may go, once they are durable. Written by any thread. Null: all are kept.
  const std::atomic<uint64_t>* needed_from = nullptr;
  // Of all segments. At it the receiver reads nothing more: the source keeps what comes then.
  uint64_t bytes_max = UINT64_MAX;
};

// Owner: one thread, which runs it.
class Receiver {
 public:
  static constexpr std::chrono::milliseconds kSyncInterval{100};
  static constexpr uint64_t kUnsyncedBytesMax = uint64_t{8} << 20;
  static constexpr std::chrono::seconds kFeedbackInterval{1};
  // A source that has said nothing for so long is asked, and lost when it does not answer for as long again.
  static constexpr std::chrono::seconds kSilence{30};

  explicit Receiver(const ReceiverOptions& options) : options_(options) {}
  // One connection, until it is stopped (success) or fails: transient errors can be tried again. WAL of another system
  // than the staged one's is a protocol_violation. Each timeline is staged by itself: nothing yet joins one to the
  // next.
  base::Result<void> run();

 private:
  base::Result<void> start();
  base::Result<void> receive();
  base::Result<void> sync_if_due();
  base::Result<void> tell(bool asks = false);
  base::Result<void> take(const pg::StreamMessage& message);
  base::Result<void> watch_silence();
  base::Result<void> drop_unneeded();
  bool is_full() const { return staging_->bytes() >= options_.bytes_max; }
  void report();

  ReceiverOptions options_;
  std::optional<pg::ReplicationStream> stream_;
  std::optional<Staging> staging_;
  std::chrono::steady_clock::time_point synced_at_;
  std::chrono::steady_clock::time_point told_at_;
  base::Lsn told_;
  base::Lsn restart_;  // the slot's, when it was started
  base::Lsn dropped_;  // up to where it was looked for what is not needed
  std::chrono::steady_clock::time_point heard_at_;
  bool has_asked_ = false;
  StagingReport report_;
};

}  // namespace thalweg::shipment
