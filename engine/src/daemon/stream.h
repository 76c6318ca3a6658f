#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/backoff.h"
#include "daemon/error_executions.h"
#include "daemon/fan_out.h"
#include "daemon/pipeline.h"
#include "daemon/stream_memory.h"
#include "daemon/stream_start.h"
#include "daemon/table_watch.h"
#include "daemon/wait_watch.h"
#include "instantiation/progress.h"

namespace thalweg::daemon {

// One stream under supervision: a thread that makes actual what is desired (README.md has the lifecycle table).
//
// Thread-safe: desire, retry, request_stop, status and stats may be called by anybody. Three pieces of shared state:
// `mutex_` guards what is desired and what is observed; `pipeline_lock_` guards the pipeline's life, shared by readers,
// exclusive for the supervisor when it makes or unmakes it; the copy's progress guards itself.
class Stream {
 public:
  // `peering` outlives the stream.
  Stream(control::StreamDefinition definition, const std::filesystem::path& state_directory, const base::Clock& clock,
         Peering& peering);
  ~Stream();  // request_stop and join
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void desire(control::StreamDefinition definition);
  // Of the stream, or (not empty) of one of several destinations; so do those of the error queue.
  base::Result<void> retry(const std::string& destination);
  // Drains and ends the supervisor. What is desired stays desired for the next start of the engine.
  void request_stop();
  bool has_ended() const { return ended_; }
  // Removes what the state directory holds of a DROPPED stream that is desired no longer.
  void forget();

  const std::string& id() const { return id_; }
  control::StreamStatus status() const;
  control::StreamDefinition desired() const;
  control::StreamStats stats() const;
  telemetry::TransactionSamples transactions() const;  // of all destinations
  telemetry::MarkerTrail markers() const;
  base::Result<void> place_marker(const std::string& id, const std::string& label);
  base::Result<control::ParkedListView> errors(const std::string& destination, const telemetry::ParkedPart& part) const;
  base::Result<control::ParkedContentsView> error_contents(const std::string& destination, int64_t error_id) const;
  base::Result<std::string_view> execute_error(const std::string& destination, std::optional<int64_t> error_id);
  base::Result<void> drop_error(const std::string& destination, int64_t error_id);
  base::Result<void> copy_table(const std::string& destination, const control::TableRef& table);
  base::Result<void> accept_table(const std::string& destination, const control::TableRef& table);

 private:
  void supervise();
  // Each runs until it has nothing more to do or something else is desired.
  void be_enabled();
  void be_disabled();
  void be_dropped(const control::StreamDefinition& definition);

  base::Result<void> run_once(const control::StreamDefinition& definition);
  base::Result<void> watch(const control::StreamDefinition& definition, base::Lsn constraints_from);
  void observe_pipeline();
  void stop_pipeline(bool drain);
  void wait_to_retry(const base::Error& error);
  void abort_with(const control::StreamDefinition& definition, const base::Error& error);
  void remember_fresh_start();
  bool heals_by_itself(const control::StreamDefinition& definition, const base::Error& error);

  void observe(std::string_view status, std::string_view phase);
  void set_phase(std::string_view phase);
  void clear_error();
  bool has_error() const;
  void watch_tables(const control::StreamDefinition& definition);
  TableWatch& watch_of(const std::string& destination) const;
  void start_over(const std::string& destination);
  void clear_memory();
  // Whether the supervisor should leave what it does: the engine stops, or something that needs it is desired.
  bool is_interrupted() const { return interrupt_; }
  StartContext start_context(const control::StreamDefinition& definition);
  void note_errors_changed(const std::string& destination);
  base::Result<void> check_destination(const std::string& destination) const;
  control::StreamDefinition desired_of(const std::string& destination) const;
  void add_destinations(control::StreamStatus& out, const control::StreamDefinition& definition) const;
  base::Result<void> run_fan_out(const control::StreamDefinition& definition);
  void take_up_live_parameters(control::StreamDefinition& in_effect);

  const std::string id_;
  const std::filesystem::path spill_directory_;
  const base::Clock& clock_;
  Peering& peering_;
  const StreamMemory memory_;
  instantiation::Progress progress_;
  pg::SessionBoard board_;  // what its start, or its removal, has databases do
  WaitWatch waits_{board_, clock_};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  control::StreamDefinition desired_;
  bool has_news_ = true;  // desired_ changed, or retry was asked for, since the supervisor last looked
  bool retry_asked_ = false;
  bool stopping_ = false;
  std::string_view status_ = "DISABLED";
  std::string_view phase_ = "STOPPED";
  std::optional<control::ReportedError> error_;
  std::optional<base::UnixMicros> retry_at_;

  // Writer: whoever calls desire or request_stop sets it, the supervisor clears it. Readers: the supervisor, and what
  // waits for a database in its name, at their next look. Relaxed is enough: the news itself is read under mutex_.
  std::atomic<bool> interrupt_{false};
  std::atomic<bool> ended_{false};  // Writer: the supervisor, last. Reader: the engine's shutdown.

  mutable std::shared_mutex pipeline_lock_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<FanOut> fan_out_;         // instead, where there are several destinations
  std::atomic<uint64_t> error_changes_{0};  // of the error queue, by an operator. Writer: anybody. Reader: supervisor

  // What operators have asked for, and what waits for a database. Writer: request_stop. Readers: its connections.
  std::atomic<bool> abandon_{false};
  ErrorExecutions executions_{clock_, abandon_};

  // By destination, empty for the only one; they stay until the stream goes. `watches_lock_` guards the map.
  mutable std::mutex watches_lock_;
  mutable std::map<std::string, std::unique_ptr<TableWatch>> watches_;

  Backoff backoff_;
  std::optional<std::chrono::steady_clock::time_point> in_use_since_;
  std::jthread supervisor_;  // last: it uses everything above
};

}  // namespace thalweg::daemon
