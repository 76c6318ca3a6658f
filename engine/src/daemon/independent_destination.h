#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <thread>

#include "daemon/backoff.h"
#include "daemon/destination.h"
#include "daemon/destination_course.h"
#include "daemon/earlier_logs.h"
#include "daemon/healing.h"
#include "daemon/lifecycle.h"
#include "queue/backlog_consumer.h"
#include "spill/durable_log.h"
#include "spill/spill_space.h"

// A destination with a thread of its own. Its failures never reach the capture or another destination, except that it
// may ask for a new session. It has a backlog; only one that is being dropped may have none.
//
// A session is one run of the capture. It begins at the source's slot position, which every destination has reached
// durably. So each one with a backlog receives again everything that it lacks. It first applies the logs of earlier
// sessions, one after the other, each with a separate apply: the destination's progress suppresses transactions that
// come twice, as after any restart. A log knows the source's timeline that it comes from. After a failover, changes
// that the new server never had are not applied (docs/decisions/failover.md).

namespace thalweg::daemon {

// A new session of the capture, for a destination's sake.
enum class SessionWish : uint8_t {
  none,
  when_due,  // a table of its waits to be published, which is not urgent: every session interrupts all destinations
  now,
};

// Thread-safe: as Destination; its thread runs it within a session.
class IndependentDestination final : public Destination {
 public:
  explicit IndependentDestination(const DestinationOptions& options);
  ~IndependentDestination() override;

  bool is_dropped() const override { return course_.desired() == control::DesiredStatus::dropped; }
  bool is_forgotten() const override;

  // --- the supervisor
  bool lives_with_capture() const override { return false; }
  void rest() override;
  base::Result<void> begin(SessionStart& session) override;
  // Requests a new session if only that can make the backlog durable or publish a table. Never fails.
  base::Result<void> tend() override;
  // It has failed, is paused or dropped, or has applied what the source had when it began to read its backlog.
  bool has_caught_up(QueueProducer& producer) const override;
  // No effect where it keeps to the disk already.
  void keep_to_disk() override;
  base::Lsn lacks_from() const override;
  // Something that its agent had taken is lost to it, or what it lacks is mined again, it has been behind the others
  // for too long, or its backlog has not become durable.
  bool needs_session() const override;
  // If its agent is gone, or it is behind, the next session brings the queue's contents again.
  void drain() override;
  void request_stop() override;
  bool has_ended() const override;
  void end() override;
  // It is paused, resumed or dropped, or reads on with other rules from where its destination is: nobody else notices.
  // Asks for a new session only if its destination cannot finish within seconds what it has taken from memory.
  void take_up(const control::DestinationDefinition& desired) override;
  void forget() override;

  base::Lsn confirmed() const override;

  // --- the operator
  void retry() override;
  void start_over() override;
  control::DestinationStatus status() const override;

 private:
  // --- the supervisor
  void begin_own_session(const SourceSlot& slot);
  void begin_removal();
  void end_session(bool drain);
  void desire(control::DesiredStatus status, bool force);
  void set_rules(const control::TableRules& rules);

  // --- its thread
  void run();
  void be_dropped();
  void be_disabled();
  std::optional<control::Delivery> await_try();
  bool await_session();
  bool leave_backlog();
  void note_failure(const base::Error& error);
  bool takes_leave(std::optional<std::chrono::steady_clock::time_point>& until);
  base::Result<void> run_once(const control::Delivery& delivery);
  base::Result<void> replay(const control::Delivery& delivery, const StartedDestination& started,
                            spill::DurableLog& log);
  base::Result<void> go_live(const control::Delivery& delivery, const StartedDestination& started);
  base::Result<void> watch(base::Lsn until);
  bool has_caught_up(base::Lsn target);
  base::Result<bool> joins_backlog(base::Lsn reached) const;
  base::Result<void> go_on_from(base::Lsn reached) override;
  StartContext start_context() override;
  control::Delivery present_delivery() const override;
  base::Lsn captured_before() const override;
  void stop_consumer();
  void enter(DestinationCourse::Phase phase);
  bool is_interrupted() const { return course_.interrupt(); }
  bool is_wanted_otherwise() const;
  bool heals_by_itself(const base::Error& error);
  bool waits_for_publication(const base::Error& error) const;

  // --- either
  void wish_session();
  void observe(State state);
  void observe_locked(State state);
  void clear_error();
  void give_up_or_wait(const base::Error& error, State waiting = State::retrying);

  // --- anybody
  void add_backlog_to(control::StreamStats& stats) const override;
  bool has_given_up() const;
  bool is_disabled() const { return course_.desired() == control::DesiredStatus::disabled; }

  const std::filesystem::path mined_wal_;  // of the stream, where it mines
  spill::SpillSpace space_;
  std::jthread thread_;

  // The supervisor's.
  const std::atomic<uint64_t>* source_end_ = nullptr;  // read by its thread
  Backoff session_backoff_;                            // between sessions for the sake of a backlog that is not durable
  std::chrono::steady_clock::time_point begun_at_;
  std::optional<std::chrono::steady_clock::time_point> session_due_;
  std::chrono::milliseconds on_disk_for_{0};

  // Guarded by mutex_.
  std::condition_variable changed_;
  Lifecycle life_{State::initializing};
  std::optional<control::ReportedError> error_;
  std::optional<base::UnixMicros> retry_at_;
  std::optional<std::chrono::steady_clock::time_point> retry_due_;
  DestinationCourse course_;
  SessionWish session_wish_ = SessionWish::none;
  base::Lsn lacks_from_;    // what commits from there on is to be mined again, by another session; zero: nothing
  bool caught_up_ = false;  // since its consumer began to read this session's backlog
  bool forgotten_ = false;
  control::TableRules rules_;  // in effect once its consumer starts

  // Their life is guarded by session_lock_.
  std::unique_ptr<queue::BacklogConsumer> backlog_;
  EarlierLogs logs_;

  // The thread's, and the supervisor's between two sessions.
  Backoff backoff_;
  InUsePatience in_use_;
};

}  // namespace thalweg::daemon
