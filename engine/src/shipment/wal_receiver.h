#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "shipment/archive.h"
#include "shipment/staging.h"
#include "shipment/staging_room.h"

// Receives a source's WAL over a physical slot and stages it. The source may forget what is durable here, whatever a
// destination has got; and, where there is no room here, what the archive has.

namespace thalweg::shipment {

// The staged WAL, and how it stands with the source.
struct StagingReport {
  WalIdentity identity = {};
  base::Lsn begin = {};               // none: nothing is staged
  base::Lsn end = {};                 // received up to here: the segments' files have it
  base::Lsn whole = {};               // of that, what does not change any more: up to the end of the last whole record
  base::Lsn durable = {};             // on the disk up to here
  uint64_t bytes = 0;                 // on the disk, or on their way there
  bool is_full = false;               // nothing is received until something can be dropped
  bool is_archived = false;           // what came last came from the archive
  base::UnixMicros server_time = {};  // when the source sent the last bytes, by its clock; none: it has sent none yet
};

struct WalReceiverOptions {
  base::Conninfo source;
  std::string slot;  // a physical one
  std::filesystem::path directory;
  const base::Clock& clock;
  const std::atomic<bool>* stop;  // by any thread; run() ends within a second
  // By the receiving thread, before the source hears of it: all of the WAL up to there is durable.
  std::function<void(base::Lsn)> on_durable = [](base::Lsn) {};
  // By the receiving thread, whenever something has changed.
  std::function<void(const StagingReport&)> on_staged = [](const StagingReport&) {};
  // By the receiving thread: why the archive cannot be used where it should make room; none: it can again.
  std::function<void(std::optional<base::Error>)> on_archive = [](const std::optional<base::Error>&) {};
  // StagingRoomOptions explains these.
  const std::atomic<uint64_t>* needed_from = nullptr;
  const std::atomic<uint64_t>* read_to = nullptr;
  uint64_t bytes_max = UINT64_MAX;  // less than three segments are as three
  const Archive* archive = nullptr;
  // Of every connection. Not known: the first one's is that of the next ones.
  WalIdentity identity = {};
};

StagingRoomOptions room_options(const WalReceiverOptions& options, const WalIdentity& identity);

// Owner: one thread, which runs it.
class WalReceiver {
 public:
  static constexpr std::chrono::milliseconds kSyncInterval{100};
  static constexpr uint64_t kUnsyncedBytesMax = uint64_t{8} << 20;
  static constexpr std::chrono::seconds kFeedbackInterval{1};
  // A source that has said nothing for so long is asked, and lost when it does not answer for as long again.
  static constexpr std::chrono::seconds kSilence{30};

  // `staging`: what an earlier receiver has left of this process, or empty. It outlives the receiver.
  WalReceiver(const WalReceiverOptions& options, std::optional<Staging>& staging)
      : options_(options), staging_(staging) {}
  // One connection, until it is stopped or has all of a timeline that the source has left (success), or fails:
  // transient errors can be tried again. WAL of another system than the staged one's is a protocol_violation.
  base::Result<void> run();
  // It failed because the source is not that of `identity` any more.
  bool is_other_source() const { return is_other_source_; }

 private:
  base::Result<void> start();
  base::Result<void> check(const WalIdentity& found);
  base::Result<void> receive();
  base::Result<void> sync_if_due();
  base::Result<void> tell(bool asks = false);
  base::Result<void> take(const pg::StreamMessage& message);
  base::Result<void> watch_silence();
  base::Result<void> make_room();
  base::Result<void> look_ahead();
  // Up to there the source may forget.
  base::Lsn forgettable() const { return std::max(staging_->durable(), ahead_); }
  void report();

  WalReceiverOptions options_;
  std::optional<pg::ReplicationStream> stream_;
  std::optional<Staging>& staging_;
  std::optional<StagingRoom> room_;
  std::chrono::steady_clock::time_point synced_at_;
  std::chrono::steady_clock::time_point told_at_;
  base::Lsn told_;
  base::Lsn timeline_end_{UINT64_MAX};              // of the one that is received; without end: the source is on it
  base::Lsn restart_;                               // the slot's, when it was started
  base::Lsn ahead_;                                 // the archive has everything before it
  std::chrono::steady_clock::time_point ahead_at_;  // when the archive was asked for more
  std::optional<std::chrono::steady_clock::time_point> archive_failed_at_;  // last; none: it can be used
  std::chrono::steady_clock::time_point heard_at_;
  bool has_asked_ = false;
  bool is_other_source_ = false;
  StagingReport report_;
};

}  // namespace thalweg::shipment
