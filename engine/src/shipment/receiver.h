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

struct ReceiverOptions {
  base::Conninfo source;
  std::string slot;  // a physical one
  std::filesystem::path directory;
  const base::Clock& clock;
  const std::atomic<bool>* stop;  // by any thread; run() ends within a second
  // By the receiving thread, before the source hears of it: all of the WAL up to there is durable.
  std::function<void(base::Lsn)> on_durable = [](base::Lsn) {};
};

// Owner: one thread, which runs it.
class Receiver {
 public:
  static constexpr std::chrono::milliseconds kSyncInterval{100};
  static constexpr uint64_t kUnsyncedBytesMax = uint64_t{8} << 20;
  static constexpr std::chrono::seconds kFeedbackInterval{1};

  explicit Receiver(const ReceiverOptions& options) : options_(options) {}
  // One connection, until it is stopped (success) or fails: transient errors can be tried again. WAL of another system
  // than the staged one's is a protocol_violation. Each timeline is staged by itself: nothing yet joins one to the
  // next.
  base::Result<void> run();

 private:
  base::Result<void> start();
  base::Result<void> receive();
  base::Result<void> sync_if_due();
  base::Result<void> tell();

  ReceiverOptions options_;
  std::optional<pg::ReplicationStream> stream_;
  std::optional<Staging> staging_;
  std::chrono::steady_clock::time_point synced_at_;
  std::chrono::steady_clock::time_point told_at_;
  base::Lsn told_;
  base::Lsn restart_;  // the slot's, when it was started
};

}  // namespace thalweg::shipment
