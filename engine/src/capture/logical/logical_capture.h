#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "capture/capture_agent.h"
#include "capture/logical/feedback_schedule.h"
#include "capture/logical/pgoutput_parser.h"
#include "capture/logical/receive_pace.h"
#include "capture/logical/silence_watch.h"
#include "capture/logical/source_end_probe.h"
#include "capture/logical/timeline_fence.h"
#include "pg/replication_stream.h"

namespace thalweg::capture {

// The agent of a logical capture: one thread that reads the replication stream, translates, enqueues and reports back.
// While the queue is full it goes on reporting, so that the source does not give it up.
//
// Thread-safe as Capture says. Everything belongs to the agent's thread.
class LogicalCapture final : public CaptureAgent {
 public:
  explicit LogicalCapture(CaptureOptions options) : CaptureAgent(std::move(options)) {}
  ~LogicalCapture() override;

 private:
  using Duration = std::chrono::steady_clock::duration;

  base::Result<void> work() override;
  base::Result<void> await_end() override;
  void release() override;
  base::Result<void> while_held_back() override { return give_feedback_if_due(); }

  base::Result<void> connect();
  base::Result<void> start_replication(base::Lsn from, bool binary, std::string row_filters);
  const char* why_whole() const;  // transactions come so
  base::Result<std::string> filters_for_source();
  base::Result<void> leave_rules_to_engine(const base::Error& refusal);
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
  std::chrono::milliseconds wait_limit() const;
  base::Result<void> wait_for_wal();
  bool caught_up() const;

  std::optional<pg::ReplicationStream> stream_;
  std::optional<TimelineFence> fence_;  // of a standby
  std::optional<SourceEndProbe> probe_;
  std::optional<FeedbackSchedule> feedback_;
  PgoutputParser parser_;
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
};

}  // namespace thalweg::capture
