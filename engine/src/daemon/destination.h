#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
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
#include "daemon/destination_course.h"
#include "daemon/earlier_logs.h"
#include "daemon/healing.h"
#include "daemon/lifecycle.h"
#include "daemon/peering.h"
#include "daemon/queue_consumer.h"
#include "daemon/ruled_frames.h"
#include "daemon/stream_start.h"
#include "daemon/table_watch.h"
#include "instantiation/progress.h"
#include "queue/backlog_consumer.h"
#include "queue/frame_source.h"
#include "spill/durable_log.h"
#include "spill/spill_space.h"

// One destination of a stream: its copy, its apply or sender, its errors; with a backlog or without
// (docs/decisions/one-form-of-stream.md, docs/decisions/fan-out.md).
//
// Without a backlog it reads the queue: the supervisor opens it before the capture, which begins at the destination's
// position, and its failure ends the session. With a backlog it has its own thread, and its failures never reach the
// capture or another destination, except that it may ask for a new session.
//
// A session is one run of the capture. It begins at the source's slot position, which every destination has reached
// durably. So each one with a backlog receives again everything that it lacks. It first applies the logs of earlier
// sessions, one after the other, each with a separate apply: the destination's progress suppresses transactions that
// come twice, as after any restart. A log knows the source's timeline that it comes from. After a failover, changes
// that the new server never had are not applied (docs/decisions/failover.md).

namespace thalweg::daemon {

struct DestinationOptions {
  std::string id;
  control::Delivery definition;
  bool backlog = false;
  control::Mode mode = control::Mode::combined;
  std::filesystem::path directory;     // of its logs, where it has a backlog, and of what else it spills
  const base::Clock* clock = nullptr;  // these outlive the destination
  Peering* peering = nullptr;
  pg::SessionBoard* board = nullptr;
  TableWatch* tables = nullptr;                 // may be none
  instantiation::Progress* progress = nullptr;  // may be none
  apply::Retries* retries = nullptr;            // may be none
  const std::atomic<bool>* stop = nullptr;      // ends open()
  std::function<void()> on_copy;                // open() begins one
  // Whether a new session would publish nothing more. Called by its thread.
  std::function<base::Result<bool>(const DatabaseWork&)> publishes_all = [](const auto&) { return true; };
  uint64_t backlog_segment_bytes = queue::kBacklogSegmentBytes;
};

// The position where a capture begins, and its server.
struct CaptureStart {
  CaptureIdentity identity;
  base::Lsn from;
};

// A new session of the capture, for a destination's sake.
enum class SessionWish : uint8_t {
  none,
  when_due,  // a table of its waits to be published, which is not urgent: every session interrupts all destinations
  now,
};

// Thread-safe: methods marked so belong to the stream's supervisor; with a backlog, a separate thread runs the
// destination within a session; any thread may call the rest.
class Destination {
 public:
  explicit Destination(DestinationOptions options);
  ~Destination();
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  std::string id() const;
  void rename(const std::string& id);  // of one without a backlog
  // It is being dropped: nothing waits for it, and what it still has of a queue is discarded.
  bool is_dropped() const { return course_.wanted() == control::DesiredStatus::dropped; }
  bool is_disabled() const { return course_.wanted() == control::DesiredStatus::disabled; }
  bool reads_queue() const { return !options_.backlog && !is_dropped(); }
  bool sends() const { return options_.definition.send_to.has_value(); }

  // --- a session, the supervisor's: one of the three begins it
  void begin_removal();
  // Takes consumer `consumer` of `queue` over, before the first enqueue. All transactions that commit from the slot's
  // position on will come whole. `source_end`: the source's WAL end, as far as known; both outlive the session.
  base::Result<void> begin(queue::LcrQueue& queue, size_t consumer, const SourceSlot& slot,
                           const std::atomic<uint64_t>& source_end);
  // Without a backlog: the one consumer of `queue` from now on. `slot`: where this engine made it; empty where the
  // start does, or another engine captures.
  base::Result<CaptureStart> open(queue::LcrQueue& queue, const SourceSlot& slot);

  queue::Spillable* spillable() { return backlog_.get(); }
  // drain: first applies or sends the contents of the queue, until has_ended() or until end() cuts it short.
  void request_stop(bool drain);
  bool has_ended() const;
  void end();      // nothing is applied or sent any more
  void release();  // after the producer's end, which reads confirmed_lsn()
  // Something that its agent had taken is lost to it, or it has been behind the others for too long, or it starts over.
  bool needs_session() const;
  // Pauses, resumes or drops one with a backlog within its session: nobody else notices. Only where it has taken from
  // memory what its destination does not get done with in seconds, it asks for a new session. No effect where nothing
  // has changed.
  void desire(control::DesiredStatus status, bool force);
  // It was dropped, and nothing desires it any more: its object lasts as long as its session.
  void forget();
  bool is_forgotten() const;
  // Requests a new session if only that can make the backlog durable or publish a table.
  void tend_backlog();
  // It is behind: from the next session on it keeps to the disk for a while. No effect where it does already.
  void keep_to_disk();

  // --- of an open one, the supervisor's
  // Returns its failure, or a table's trouble.
  base::Result<void> look();
  std::optional<base::Error> trouble() const { return consumer_->trouble(); }  // what it mends by itself right now
  const std::atomic<uint64_t>& confirmed_lsn() const { return consumer_->confirmed(); }
  base::Lsn applied() const { return consumer_->applied(); }
  // Those that had to wait until its tables agreed with one state of the source. Between two sessions.
  base::Result<void> add_due_constraints();

  // Everything that commits below is durable at the destination, or in the backlog.
  base::Lsn confirmed() const;
  bool has_caught_up_or_failed() const;

  // --- the operator
  void retry();
  void start_over();  // from its destination's start on, within the session where that can be
  void set_parameters(const control::StreamParameters& parameters);
  // Of one with a backlog: it reads on with other rules, from where its destination is. Nobody else notices, as when it
  // is paused. No effect where nothing has changed.
  void set_rules(const control::TableRules& rules);
  void forget_retries();       // it was stopped
  void note_errors_changed();  // Apply's, as the next two
  void hold_for_errors(std::chrono::milliseconds most);
  bool is_held() const;

  control::DestinationStatus status() const;
  void add_to(control::StreamStats& stats) const;
  void add_to(telemetry::TransactionSamples& transactions) const;
  void add_to(telemetry::MarkerTrail& trail) const;

 private:
  void run();
  void be_dropped();
  void be_disabled();
  std::optional<control::Delivery> await_try();
  bool await_session();
  bool leave_backlog();
  void note_failure(const base::Error& error);
  bool takes_leave(std::optional<std::chrono::steady_clock::time_point>& until);
  base::Result<void> run_once(const control::Delivery& definition);
  base::Result<void> replay(const control::Delivery& definition, const StartedDestination& started,
                            spill::DurableLog& log);
  base::Result<void> go_live(const control::Delivery& definition, const StartedDestination& started);
  base::Result<void> watch(base::Lsn until);
  base::Result<void> check_reach(base::Lsn reached) const;
  base::Result<void> go_on_from(base::Lsn reached);
  std::optional<base::Error> unresolved_trouble() const;
  base::Result<void> check_refusal();
  base::Result<base::Lsn> start_consumer(const control::Delivery& definition, const StartedDestination& started,
                                         queue::FrameSource& frames);
  base::Result<std::unique_ptr<RuledFrames>> with_rules(const control::Delivery& definition,
                                                        queue::FrameSource& frames);
  void stop_consumer();
  void note_confirmed(base::Lsn lsn);
  void begin_session(const SourceSlot& slot);
  void observe(State state);
  void observe_locked(State state);
  void enter(DestinationCourse::Phase phase);
  void wish_session();
  bool has_caught_up(base::Lsn target);
  void clear_error();
  void give_up_or_wait(const base::Error& error, State waiting = State::retrying);
  bool is_interrupted() const { return course_.interrupt(); }
  bool is_wanted_otherwise() const;
  bool heals_by_itself(const base::Error& error);
  bool waits_for_publication(const base::Error& error) const;
  StartContext start_context();

  const DestinationOptions options_;
  spill::SpillSpace space_;
  std::jthread thread_;

  // The supervisor's, between begin and end; read by its thread.
  base::Lsn from_;
  base::Lsn slot_made_at_;
  CaptureIdentity source_;
  const std::atomic<uint64_t>* source_end_ = nullptr;
  Backoff session_backoff_;  // between sessions for the sake of a backlog that is not durable
  std::chrono::steady_clock::time_point begun_at_;
  std::optional<std::chrono::steady_clock::time_point> session_due_;

  mutable std::mutex mutex_;  // guards what follows up to the next blank line
  std::condition_variable changed_;
  std::string id_;
  Lifecycle life_{State::initializing};  // where it reads the queue: the stream's is shown
  std::optional<control::ReportedError> error_;
  std::optional<base::UnixMicros> retry_at_;
  std::optional<std::chrono::steady_clock::time_point> retry_due_;
  DestinationCourse course_;  // of its thread
  SessionWish session_wish_ = SessionWish::none;
  bool caught_up_ = false;  // since its consumer began to read this session's backlog
  bool forgotten_ = false;
  control::StreamParameters parameters_;  // in effect
  control::TableRules rules_;             // in effect once its consumer starts

  mutable std::shared_mutex session_lock_;    // the life of backlog, logs and consumer
  std::optional<queue::QueueFrames> frames_;  // without a backlog
  std::unique_ptr<queue::BacklogConsumer> backlog_;
  EarlierLogs logs_;
  std::unique_ptr<RuledFrames> ruled_;  // what the consumer reads; null: it has no rules of its own
  std::unique_ptr<QueueConsumer> consumer_;
  base::UnixMicros counted_since_{};  // its tables' counts

  // The supervisor's, without a backlog: since open().
  base::Lsn constraints_from_;                // once applied that far, constraints can be added; zero: none are missing
  std::optional<base::Lsn> constraints_due_;  // they can
  std::optional<std::chrono::steady_clock::time_point> refused_since_;  // by the engine that receives

  // How often the error queue was changed. Writer: anybody. Reader: the thread.
  std::atomic<uint64_t> error_changes_{0};
  // At the destination. Writers: the thread; the supervisor without a backlog, or between sessions (release).
  std::atomic<uint64_t> durable_{0};

  // The thread's.
  Backoff backoff_;
  std::chrono::milliseconds on_disk_for_{0};
  InUsePatience in_use_;
};

}  // namespace thalweg::daemon
