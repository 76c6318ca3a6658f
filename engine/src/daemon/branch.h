#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/backoff.h"
#include "daemon/peering.h"
#include "daemon/queue_consumer.h"
#include "daemon/stream_start.h"
#include "daemon/table_watch.h"
#include "instantiation/progress.h"
#include "queue/backlog_consumer.h"
#include "spill/durable_log.h"
#include "spill/spill_space.h"

// One destination of several (docs/decisions/fan-out.md): its copy, its apply or sender, its backlog, its errors. What
// happens to it never reaches the capture or another destination, except that it may ask for a new session.
//
// A session is one run of the capture. It begins where the source's slot is, which every branch has reached durably;
// so each branch gets everything again that it has not. What earlier sessions left in a branch's logs is applied
// first, one log after the other, each by an apply of its own: transactions that come twice are recognised by the
// destination's progress, as after any restart. A log knows the source's timeline that it comes from: after a failover
// what the new server never had is not applied (docs/decisions/failover.md).

namespace thalweg::daemon {

struct BranchOptions {
  std::string id;
  control::StreamDefinition definition;  // control::branch_of
  std::filesystem::path directory;       // of its spilled LCRs
  const base::Clock* clock = nullptr;    // these four outlive the branch
  Peering* peering = nullptr;
  TableWatch* tables = nullptr;  // may be none
  pg::SessionBoard* board = nullptr;
  uint64_t backlog_segment_bytes = queue::kBacklogSegmentBytes;
};

// Thread-safe: begin, end, tend_backlog and convict belong to the stream's supervisor; a thread of its own runs the
// branch within a session; the rest may be called by anybody.
class Branch {
 public:
  explicit Branch(BranchOptions options);
  ~Branch();
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  const std::string& id() const { return options_.id; }
  // Without a consumer of the queue: it is being dropped.
  bool is_dropped() const { return options_.definition.status == control::DesiredStatus::dropped; }

  // --- a session
  // Takes consumer `consumer` of `queue` over, before the first enqueue. All transactions that commit from the slot's
  // position on will come whole. `source_end`: the source's WAL end, as far as known; both outlive the session.
  base::Result<void> begin(queue::LcrQueue& queue, size_t consumer, const SourceSlot& slot,
                           const std::atomic<uint64_t>& source_end);
  queue::Spillable* spillable() { return backlog_.get(); }
  // drain: what the queue holds is worked off first; until drained(), or cut short by end.
  void request_stop(bool drain);
  bool has_ended() const { return ended_; }
  void end();
  // Something that its agent had taken is lost to it, or it has been behind the others for too long.
  bool needs_session() const { return needs_session_; }
  // Has it ask for a session when its backlog can be made durable in no other way.
  void tend_backlog();
  // It is behind: from the next session on it keeps to the disk for a while. No effect where it does already.
  void convict();

  // Everything that commits below is durable at the destination, or in the backlog.
  base::Lsn confirmed() const;
  bool has_caught_up_or_failed() const;

  // --- the operator
  void retry();
  void start_over();  // from its destination's start on, within the session where that can be
  void set_parameters(const control::StreamParameters& parameters);
  void note_errors_changed();  // Apply's

  control::DestinationStatus status() const;
  void add_to(control::StreamStats& stats) const;
  void add_to(telemetry::TransactionSamples& transactions) const;
  void add_to(telemetry::MarkerTrail& trail) const;

 private:
  void run();
  void be_dropped();
  bool has_been_dropped() const;
  base::Result<void> run_once();
  base::Result<void> replay(const StartedDestination& started, spill::DurableLog& log);
  base::Result<void> go_live(const StartedDestination& started);
  base::Result<void> watch(base::Lsn until);
  base::Result<void> check_reach(base::Lsn low_watermark) const;
  void drop_strays();
  bool is_history(const spill::DurableLog& log, int timeline_if_untold) const;
  void set_strays_aside(int timeline_if_untold);
  std::optional<base::Error> unresolved_trouble() const;
  base::Result<void> open_logs(base::Lsn from);
  base::Result<void> find_logs();
  base::Result<base::Lsn> start_consumer(const StartedDestination& started, queue::FrameSource& frames);
  void stop_consumer();
  void note_confirmed(base::Lsn lsn);
  void observe(std::string_view status, std::string_view phase);
  void clear_error();
  void give_up_or_wait(const base::Error& error);
  bool stopping() const { return stop_; }
  bool heals_by_itself(const base::Error& error);
  StartContext start_context();
  std::string file_folder(uint64_t number) const;

  const BranchOptions options_;
  spill::SpillSpace space_;
  instantiation::Progress progress_;
  std::jthread thread_;

  // The supervisor's, between begin and end; read by the branch's thread.
  base::Lsn from_;
  CaptureIdentity source_;
  pg::TimelineHistory history_{0};  // of the server that is captured from
  const std::atomic<uint64_t>* source_end_ = nullptr;
  uint64_t next_log_ = 1;
  uint64_t own_log_ = 0;      // this session's
  bool logs_unread_ = false;  // earlier sessions' could not be opened; by its thread, too
  Backoff session_backoff_;   // between sessions for the sake of a backlog that is not durable
  std::chrono::steady_clock::time_point begun_at_;
  std::optional<std::chrono::steady_clock::time_point> session_due_;

  mutable std::mutex mutex_;  // guards what follows up to the next blank line
  std::condition_variable changed_;
  std::string_view status_ = "ENABLED";
  std::string_view phase_ = "INITIALIZING";
  std::optional<control::ReportedError> error_;
  std::optional<base::UnixMicros> retry_at_;
  std::optional<std::chrono::steady_clock::time_point> retry_due_;
  bool aborted_ = false;
  bool retry_asked_ = false;
  bool is_starting_ = false;  // the consumer of this session's backlog: a stop does not wait for what it waits for
  control::StreamParameters parameters_;  // in effect

  mutable std::shared_mutex session_lock_;  // the life of backlog, old logs and consumer
  std::unique_ptr<queue::BacklogConsumer> backlog_;
  std::deque<std::unique_ptr<spill::DurableLog>> old_logs_;
  // What a server had committed that another one took the place of, and that never reached that one. Not applied; kept
  // until the destination turns out to need nothing of it.
  std::deque<std::unique_ptr<spill::DurableLog>> strays_;
  std::unique_ptr<QueueConsumer> consumer_;
  base::UnixMicros counted_since_{};  // its tables' counts

  // Writers: the supervisor (stop_, drain_), the branch's thread (the others). Readers: both, relaxed is enough: what
  // they announce is read under a lock.
  std::atomic<bool> stop_{false}, drain_{false};
  std::atomic<bool> start_over_{false};     // Writer: anybody; the thread clears it. Readers: both
  std::atomic<uint64_t> error_changes_{0};  // Writer: anybody. Reader: the thread
  std::atomic<bool> ended_{true}, needs_session_{false}, caught_up_{false};
  std::atomic<bool> is_live_{false};   // the consumer reads this session's backlog
  std::atomic<uint64_t> durable_{0};   // at the destination. Writer: the thread (release). Reader: the supervisor
  std::atomic<uint64_t> replayed_{0};  // in the logs of earlier sessions

  Backoff backoff_;
  std::chrono::milliseconds on_disk_for_{0};
  std::optional<std::chrono::steady_clock::time_point> in_use_since_;
};

}  // namespace thalweg::daemon
