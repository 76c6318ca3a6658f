#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capture/capture.h"
#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_parser.h"
#include "capture/marker_board.h"
#include "capture/shutdown_watch.h"
#include "telemetry/agent.h"

namespace thalweg::capture {

// The agent of any kind of capture: its thread and its life, its numbers, the queue as its sink, markers.
//
// Thread-safe as Capture says. Members belong to the agent's thread, except for those with a comment and for what is
// thread-safe by itself: markers and counters of rules. The destructor of a subclass calls request_stop() and join().
class CaptureAgent : public Capture, protected FrameSink {
 public:
  void start() override;
  void request_stop() override;
  void await_quiet() override;
  void join() override;
  CaptureStatus status() const override;
  telemetry::ComponentSample sample() const override;
  std::vector<telemetry::RuleSample> rules() const override;
  base::Result<void> place_marker(const std::string& id, const std::string& label) override;
  void add_to(telemetry::MarkerTrail& trail) const override;

 protected:
  explicit CaptureAgent(CaptureOptions options);

  // Captures until a stop is requested, or fails.
  virtual base::Result<void> work() = 0;
  // Nothing is enqueued any more: until is_ended(), keeps telling the source what becomes durable.
  virtual base::Result<void> await_end() = 0;
  virtual void release() = 0;  // connections
  // Called while the queue is full.
  virtual base::Result<void> while_held_back() = 0;

  bool is_stopped() const { return stop_.load(std::memory_order_acquire); }
  bool is_ended() const { return end_.load(std::memory_order_acquire); }
  base::Lsn confirmed() const { return {options_.confirmed_lsn->load(std::memory_order_acquire)}; }
  base::Lsn captured() const { return {captured_.load(std::memory_order_relaxed)}; }
  // All of what commits before it has been enqueued.
  void note_captured(base::Lsn lsn);
  void begin_at(base::Lsn lsn);
  void note_commit(const PgoutputMessage& commit);
  void note_marker(const PgoutputMessage& message, base::Xid open_xid);
  // False: a stop was requested while the queue was full.
  base::Result<bool> put(bool enqueued);
  base::Result<bool> put_progress(base::Lsn lsn, base::UnixMicros time);
  void publish_counters();
  void set_trouble(std::optional<base::Error> trouble);
  // Fails where a source that is shut down would wait for this session for ever.
  base::Result<void> watch_shutdown(bool is_shutting_down, base::Lsn durable);

  // FrameSink
  std::span<std::byte> reserve(size_t frame_bytes) override;
  void enqueue() override;

  const CaptureOptions options_;
  const std::string application_name_;
  MarkerBoard markers_;
  const std::unique_ptr<RowFilters> filters_;  // null: no table has rules
  FrameTranslator translator_{*this, filters_.get(), options_.tap, options_.rules.reads_transaction};

  // Writer: the agent. Readers: anybody. Relaxed: each stands for itself.
  std::atomic<uint64_t> reported_{0};
  std::atomic<uint64_t> source_end_{0};
  std::atomic<int> streaming_{-1};  // transactions come before their commit: 0, 1; -1: not known yet
  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter batches_;

 private:
  std::unique_ptr<RowFilters> make_filters() const;
  void run();
  base::Result<void> capture();
  void fail(base::Error error);

  telemetry::MarkerLog markers_captured_;
  telemetry::MarkerLog markers_enqueued_;
  // The marker that came last, until the commit of its transaction.
  struct {
    std::string content;
    base::Xid xid;  // zero: none
    base::UnixMicros at;
  } marker_;
  base::UnixMicros last_commit_time_;
  ShutdownWatch shutdown_;
  std::optional<base::Error> sink_error_;  // why reserve() gave nothing, unless a stop was requested

  // As those above.
  std::atomic<uint64_t> captured_{0};
  std::atomic<uint64_t> first_position_{0};
  telemetry::Counter lcrs_;
  telemetry::Counter transactions_;
  telemetry::Counter bytes_;
  std::atomic<int64_t> latency_us_{0};

 protected:
  // Writer: the owner (release). Reader: the agent (acquire).
  std::atomic<bool> stop_{false};

 private:
  std::atomic<bool> end_{false};  // writer: the owner; reader: the agent
  // Writer: the agent (release), the owner before the thread starts. Readers: anybody (acquire).
  std::atomic<bool> running_{false};
  std::atomic<bool> enqueuing_{false};  // waited for by await_quiet()

  mutable std::mutex error_mutex_;  // guards these two
  std::optional<base::Error> error_;
  std::optional<base::Error> trouble_;
  std::thread thread_;  // the owner's
};

}  // namespace thalweg::capture
