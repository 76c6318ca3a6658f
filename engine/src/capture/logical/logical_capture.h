#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "capture/capture.h"
#include "capture/logical/feedback_schedule.h"
#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_parser.h"
#include "capture/logical/receive_pace.h"
#include "capture/logical/silence_watch.h"
#include "capture/logical/source_end_probe.h"
#include "capture/logical/timeline_fence.h"
#include "capture/marker_board.h"
#include "pg/replication_stream.h"
#include "telemetry/agent.h"

namespace thalweg::capture {

// The agent of a logical capture: one thread that reads the replication stream, translates, enqueues and reports back.
// While the queue is full it goes on reporting, so that the source does not give it up.
//
// Thread-safe as Capture says. Everything without a comment belongs to the agent's thread.
class LogicalCapture final : public Capture, private FrameSink {
 public:
  explicit LogicalCapture(CaptureOptions options);
  ~LogicalCapture() override;

  void start() override;
  void request_stop() override;
  void await_quiet() override;
  void join() override;
  CaptureStatus status() const override;
  telemetry::ComponentSample sample() const override;
  std::vector<telemetry::RuleSample> rules() const override;
  base::Result<void> place_marker(const std::string& id, const std::string& label) override;
  void add_to(telemetry::MarkerTrail& trail) const override;

 private:
  using Duration = std::chrono::steady_clock::duration;

  std::unique_ptr<RowFilters> make_filters() const;
  void run();
  base::Result<void> capture();
  base::Result<void> connect();
  base::Result<void> start_replication(base::Lsn from, bool binary);
  base::Result<void> guard(const pg::SystemIdentity& identity);
  base::Result<void> read_until_stopped();
  // Takes the messages that libpq and the socket hold; returns once there are no more.
  base::Result<void> drain();
  base::Result<void> take(const pg::StreamMessage& message);
  // One of the output plugin's messages; `sent`: by the source's clock.
  base::Result<void> take_message(std::span<const std::byte> bytes, base::Lsn lsn, base::UnixMicros sent);
  base::Result<void> take_keepalive(const pg::StreamMessage& message);
  // Feedback and PROGRESS frames that are due.
  base::Result<void> serve_timers();
  base::Result<void> put_due_progress();
  base::Result<void> give_feedback_if_due();
  base::Result<void> watch_silence();
  base::Result<void> stay_connected_until_join();
  std::chrono::milliseconds wait_limit() const;
  base::Result<void> wait_for_wal();
  void publish_counters();
  base::Lsn confirmed() const { return {options_.confirmed_lsn->load(std::memory_order_acquire)}; }
  bool caught_up() const;
  void note_marker(const PgoutputMessage& message);
  void fail(base::Error error);

  // FrameSink
  std::span<std::byte> reserve(size_t frame_bytes) override;
  void enqueue() override;

  const CaptureOptions options_;
  const std::string application_name_;

  std::optional<pg::ReplicationStream> stream_;
  MarkerBoard markers_;
  telemetry::MarkerLog markers_captured_;
  telemetry::MarkerLog markers_enqueued_;
  // The marker that came last, until the commit of its transaction.
  struct {
    std::string content;
    base::Xid xid;  // zero: none
    base::UnixMicros at;
  } marker_;
  std::optional<TimelineFence> fence_;  // of a standby
  std::optional<SourceEndProbe> probe_;
  std::optional<FeedbackSchedule> feedback_;
  PgoutputParser parser_;
  const std::unique_ptr<RowFilters> filters_;  // null: no table has rules
  FrameTranslator translator_{*this, filters_.get(), options_.tap};
  ReceivePace pace_;
  SilenceWatch silence_;
  std::chrono::microseconds send_delay_{0};               // of the last commit, from its time to its sending
  uint64_t messages_ = 0;                                 // pgoutput's and keepalives taken
  pg::OutputPlugin plugin_ = pg::OutputPlugin::pgoutput;  // the slot's
  base::Lsn received_;                                    // highest WAL position heard of
  base::Lsn progress_enqueued_;                           // lsn of the last PROGRESS frame
  base::Lsn progress_pending_;                            // of a keepalive that no PROGRESS frame has passed on yet
  base::UnixMicros progress_time_;
  std::chrono::steady_clock::time_point progress_at_;
  base::UnixMicros last_commit_time_;
  std::optional<base::Error> sink_error_;  // why reserve() gave nothing, unless a stop was requested

  // Writer: the agent. Readers: anybody. Relaxed: each stands for itself.
  std::atomic<uint64_t> captured_{0};
  std::atomic<uint64_t> reported_{0};
  std::atomic<uint64_t> source_end_{0};
  std::atomic<uint64_t> first_position_{0};
  std::atomic<int> streaming_{-1};  // transactions come before their commit: 0, 1; -1: not known yet
  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter lcrs_;
  telemetry::Counter transactions_;
  telemetry::Counter bytes_;
  telemetry::Counter batches_;
  std::atomic<int64_t> latency_us_{0};

  // Writer: the owner (release). Reader: the agent (acquire).
  std::atomic<bool> stop_{false};
  std::atomic<bool> end_{false};
  // Writer: the agent (release), the owner before the thread starts. Readers: anybody (acquire).
  std::atomic<bool> running_{false};
  std::atomic<bool> enqueuing_{false};  // waited for by await_quiet()

  mutable std::mutex error_mutex_;  // guards error_
  std::optional<base::Error> error_;
  std::thread thread_;  // the owner's
};

}  // namespace thalweg::capture
