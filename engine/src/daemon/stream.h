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
#include "daemon/healing.h"
#include "daemon/lifecycle.h"
#include "daemon/places.h"
#include "daemon/sessions.h"
#include "daemon/stream_memory.h"
#include "daemon/stream_start.h"
#include "daemon/wait_watch.h"
#include "search/searches.h"

namespace thalweg::daemon {

// One stream under supervision: a thread that brings it into its desired state (README.md has the lifecycle table).
//
// Thread-safe: any thread may call its methods. Three locks guard what they share with the supervisor: `mutex_` the
// desired and the observed state; `sessions_lock_` the sessions' life, shared by readers, exclusive for the supervisor
// when it creates or destroys them; `memories_lock_` the map of the destinations' memories, which guard themselves. A
// thread that needs several takes them in this order.
class Stream {
 public:
  // `peering` outlives the stream.
  // `revision`: of the document that has the definition.
  Stream(control::StreamDefinition definition, uint64_t revision, const std::filesystem::path& state_directory,
         const base::Clock& clock, Peering& peering);
  ~Stream();  // request_stop and join
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void desire(control::StreamDefinition definition, uint64_t revision);
  // Retries a destination, or (empty) the capture.
  base::Result<void> retry(const std::string& destination);
  // Drains and ends the supervisor. The desired state stays for the next start of the engine.
  void request_stop();
  bool has_ended() const { return ended_; }
  // Removes the files of a DROPPED stream that is no longer desired from the state directory.
  void forget();

  const std::string& id() const { return id_; }
  control::StreamStatus status() const;
  control::StreamDefinition desired() const;
  control::StreamStats stats() const;
  telemetry::TransactionSamples transactions() const;  // of all destinations
  telemetry::MarkerTrail markers() const;
  base::Result<void> place_marker(const std::string& id, const std::string& label);
  // The next changes of a table's rows, within the patience. Fails with changes_not_captured.
  base::Result<capture::TappedChanges> recent_changes(const control::TableRef& table, size_t limit,
                                                      std::chrono::milliseconds patience);
  // Searches in the WAL that is kept of the source.
  base::Result<telemetry::SearchList> searches();
  base::Result<telemetry::SearchStatus> begin_search(telemetry::SearchRequest request, Place place);
  base::Result<telemetry::FoundPart> search(const std::string& id, const telemetry::SearchPart& part);
  base::Result<void> end_search(const std::string& id);
  base::Result<telemetry::LoggedConflicts> conflicts(const std::string& destination,
                                                     const telemetry::ConflictPart& part) const;
  base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const std::string& destination) const;
  base::Result<control::ParkedListView> errors(const std::string& destination, const telemetry::ParkedPart& part) const;
  base::Result<telemetry::ParkedTree> error_tree(const std::string& destination, int64_t error_id,
                                                 const telemetry::TreePart& part) const;
  base::Result<control::ParkedContentsView> error_contents(const std::string& destination, int64_t error_id,
                                                           const telemetry::ChangesPart& part) const;
  base::Result<control::ExecutionState> execute_error(const std::string& destination,
                                                      const telemetry::ParkedChoice& choice);
  base::Result<control::DryRunView> dry_run_error(const std::string& destination, int64_t error_id,
                                                  const std::string& role) const;
  base::Result<void> edit_error(const std::string& destination, int64_t error_id, uint64_t change,
                                const std::optional<telemetry::ParkedEdit>& edit, const std::string& version) const;
  base::Result<void> drop_error(const std::string& destination, int64_t error_id);
  base::Result<void> copy_table(const std::string& destination, const control::TableRef& table);
  base::Result<void> accept_table(const std::string& destination, const control::TableRef& table);

 private:
  void supervise();
  // Each runs until it has nothing more to do or something else is desired.
  void be_enabled();
  void be_disabled();
  void be_dropped(const control::StreamDefinition& definition);

  base::Result<void> run_sessions(const control::StreamDefinition& definition);
  void note_trouble(const std::optional<base::Error>& trouble);
  void wait_to_retry(const base::Error& error);
  void abort_with(const control::StreamDefinition& definition, const base::Error& error);
  void remember_fresh_start();
  bool heals_by_itself(const control::StreamDefinition& definition, const base::Error& error);

  void observe(State state);
  void observe_locked(State state);
  void clear_error();
  bool has_error() const;
  // With mutex_.
  void take_desired(control::StreamDefinition definition);
  void adopt(const std::string& id);
  void watch_tables(const control::StreamDefinition& definition);
  DestinationMemory& memory_of(const std::string& destination) const;
  void start_over(const std::string& destination);
  void clear_memory();
  // Whether the supervisor should interrupt its work: the engine stops, or a new desired state needs it.
  bool is_interrupted() const { return interrupt_; }
  void note_errors_changed(const std::string& destination);
  void hold_apply(const std::string& destination);
  base::Result<search::SearchedStream> searched() const;
  base::Result<control::Delivery> desired_of(const std::string& destination) const;
  void add_destinations(control::StreamStatus& out, const control::StreamDefinition& definition) const;
  // A definition that sessions run by.
  struct TakenUp {
    control::StreamDefinition definition;
    std::map<std::string, uint64_t> judging;  // by destination (effect.h)
  };
  void take_up(control::StreamDefinition& in_effect);
  void note_taken_up(const control::StreamDefinition& definition);
  void add_in_effect(control::StreamStatus& out, const control::StreamDefinition& definition, const TakenUp* taken_up,
                     uint64_t revision) const;

  const std::string id_;
  const std::filesystem::path spill_directory_;
  const std::filesystem::path archives_file_;
  const base::Clock& clock_;
  Peering& peering_;
  const StreamMemory memory_;
  pg::SessionBoard board_;  // what its start, or its removal, has databases do
  WaitWatch waits_{board_, clock_};
  capture::ChangeTap tap_;  // of one capture after the other

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  control::StreamDefinition desired_;
  uint64_t revision_;                        // of the newest document, which has it
  std::shared_ptr<const TakenUp> taken_up_;  // what the sessions run by, or ran by until their last error
  bool has_news_ = true;  // desired_ changed, or retry was asked for, since the supervisor last looked
  bool retry_asked_ = false;
  bool stopping_ = false;
  Lifecycle life_;
  std::optional<control::ReportedError> error_;
  std::optional<base::UnixMicros> retry_at_;

  // Writers: desire, copy_table and request_stop set it, the supervisor clears it. Readers: the supervisor, and waits
  // for a database in its name, at their next look. Relaxed is enough: the news itself is read under mutex_.
  std::atomic<bool> interrupt_{false};
  std::atomic<bool> ended_{false};  // Writer: the supervisor, last. Reader: the engine's shutdown.

  mutable std::shared_mutex sessions_lock_;
  std::unique_ptr<Sessions> sessions_;

  // Executions that operators have asked for, and the flag that ends their waits for a database. Writer: request_stop.
  // Readers: the executions' connections.
  std::atomic<bool> abandon_{false};
  mutable search::Searches searches_{clock_};
  mutable Places listings_{3};  // fewer than the engine has: a destination that hangs leaves some for other streams
  ErrorExecutions executions_{clock_, abandon_};

  // By destination; they stay until the stream goes. `memories_lock_` guards the map.
  mutable std::mutex memories_lock_;
  mutable std::map<std::string, std::unique_ptr<DestinationMemory>> memories_;

  Backoff backoff_;
  InUsePatience in_use_;
  std::jthread supervisor_;  // last: it uses everything above
};

}  // namespace thalweg::daemon
