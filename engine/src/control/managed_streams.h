#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "control/desired_state.h"
#include "control/rehearsal.h"
#include "control/rules_check.h"
#include "control/rules_trial.h"
#include "control/state.h"
#include "telemetry/conflict.h"
#include "telemetry/log_search.h"
#include "telemetry/marker_log.h"
#include "telemetry/parked_contents.h"
#include "telemetry/parked_transaction.h"
#include "telemetry/rule_sample.h"
#include "telemetry/sample.h"
#include "telemetry/transaction_sample.h"

// The control API's interface to the engine. The daemon implements it; control knows nothing below it.

namespace thalweg::control {

// An engine's identity towards other engines.
struct IdentityView {
  std::string name;
  std::string fingerprint;  // SHA-256 of the certificate, in hex
  base::UnixMicros not_after;
};

struct EngineStatus {
  std::string version;
  base::UnixMicros started_at;
  std::string hostname;
  int64_t pid = 0;
  uint64_t desired_revision = 0;
  std::optional<IdentityView> identity;
  std::string propagation_listen;              // HOST:PORT; empty: receives nothing
  std::vector<std::string> wal_archives = {};  // names that a stream's wal_archive may have
};

// An error as the API shows it, with its time.
struct ReportedError {
  base::Error error;
  base::UnixMicros at;
};

// Below replicating: of its initial copy. indexing: its rows are there, its keys and indexes are being made.
enum class TableState : uint8_t { waiting, copying, indexing, copied, replicating, stopped };
constexpr std::string_view name_of(TableState state) {
  constexpr std::array<std::string_view, 6> kNames = {"WAITING", "COPYING",     "INDEXING",
                                                      "COPIED",  "REPLICATING", "STOPPED"};
  return kNames[static_cast<size_t>(state)];
}

struct TableCopyStatus {
  TableRef table;
  TableState state = TableState::waiting;  // up to copied
  int64_t rows_estimated = 0;              // the source's statistics, or a count
  int64_t rows_copied = 0;
  int64_t bytes_copied = 0;
  int64_t ranges_total = 0;
  int64_t ranges_copied = 0;
  int64_t indexes_total = 0;  // keys, constraints, indexes, foreign keys that the engine makes
  int64_t indexes_built = 0;
  double seconds = 0;            // since the table's copy began, until its rows were there
  base::Lsn copied_at = {};      // changes that commit before are in the copy; zero: it is not finished
  int64_t errors_discarded = 0;  // transactions of the error queue that lay before it
};

struct InstantiationStatus {
  base::UnixMicros started_at;
  std::optional<base::UnixMicros> finished_at;
  std::vector<TableCopyStatus> tables;
  std::vector<std::string> warnings;  // constraints left out, with the reason
};

enum class TableTroubleKind : uint8_t {
  missing,
  dropped,
  replaced,
  renamed,
  unpublished,
  partitions_changed,
  unidentified,
};
constexpr std::string_view name_of(TableTroubleKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {
      "MISSING", "DROPPED", "REPLACED", "RENAMED", "UNPUBLISHED", "PARTITIONS CHANGED", "UNIDENTIFIED"};
  return kNames[static_cast<size_t>(kind)];
}

// remove: from the stream; follow: give the stream the new name; copy: once more; accept: as the table is now.
enum class TableResolution : uint8_t { remove, follow, copy, accept };
constexpr std::string_view name_of(TableResolution resolution) {
  constexpr std::array<std::string_view, 4> kNames = {"remove", "follow", "copy", "accept"};
  return kNames[static_cast<size_t>(resolution)];
}

// A change of a table at the source, and its possible resolutions.
struct TableTrouble {
  TableTroubleKind kind = TableTroubleKind::missing;
  std::string reason;
  std::string cure;      // in words
  std::string cure_sql;  // its statements alone, one a line, to be run at the source; empty: none cures it
  base::UnixMicros since;
  std::optional<TableRef> renamed_to;
  std::vector<TableResolution> resolutions;
};

struct TableStatus {
  TableState state = TableState::waiting;
  telemetry::TableSample changes;
  std::optional<TableTrouble> trouble;
};

enum class BacklogState : uint8_t { none, in_memory, on_disk, full };
constexpr std::string_view name_of(BacklogState state) {
  constexpr std::array<std::string_view, 4> kNames = {"NONE", "IN MEMORY", "ON DISK", "FULL"};
  return kNames[static_cast<size_t>(state)];
}

// The backlog of a destination: its changes on the engine's disk.
struct BacklogStatus {
  // none: the destination can have no backlog, and the rest is 0. in_memory: the backlog is empty, and the destination
  // reads the queue's memory.
  BacklogState state = BacklogState::none;
  uint64_t frames = 0;               // that it has not taken: of the backlog, and of the queue's memory
  uint64_t lcrs = 0;                 // of the backlog, as the next two
  uint64_t bytes = 0;                // compressed
  std::chrono::microseconds age{0};  // of the oldest
  uint64_t limit_bytes = 0;
};

// A session at a server that blocks another one by a lock or a running transaction.
struct BlockerStatus {
  int pid = 0;  // 0: a prepared transaction
  // Empty, and none, where the stream's user may not see them.
  std::string user;
  std::string application_name;
  std::string state;
  std::optional<base::UnixMicros> since;  // of its transaction
};

// A wait of a start, or of a removal, at a server.
struct WaitStatus {
  std::string_view side;    // source, destination
  std::string destination;  // empty at the source
  std::string database;
  std::string statement;  // its beginning
  base::UnixMicros since;
  std::vector<BlockerStatus> blockers;
};

// Counts of what rules have decided since the capture started, or since a destination's frames are read.
struct RuleCounts {
  base::UnixMicros counted_since;
  std::vector<telemetry::RuleSample> tables;  // one at least: those with rules
};

// The parts between a stream's source and one of its destinations that are in this engine (daemon/sessions.h).
enum class DestinationMode : uint8_t { combined, sends, receives };
constexpr std::string_view name_of(DestinationMode mode) {
  constexpr std::array<std::string_view, 3> kNames = {"COMBINED CAPTURE AND APPLY", "CAPTURE AND PROPAGATION",
                                                      "PROPAGATION AND APPLY"};
  return kNames[static_cast<size_t>(mode)];
}
// The mode of a stream: that of its one destination; none: it has several.
using StreamMode = std::optional<DestinationMode>;
constexpr std::string_view name_of(StreamMode mode) { return mode ? name_of(*mode) : "FAN-OUT"; }

// A position at which a definition of the stream came into effect at a destination.
struct EffectPosition {
  base::Lsn from;  // changes that commit there or later were judged and applied by it
  base::UnixMicros since;
};

// The stream's definition, as a desired document has it, in effect at a destination.
struct InEffect {
  uint64_t revision = 0;  // of the newest document with this definition
  base::Lsn from;         // changes that commit there or later are judged and applied by it
  base::UnixMicros since;
};

struct DestinationStatus {
  std::string id;
  State state = State::disabled;
  DestinationMode mode = DestinationMode::combined;
  std::optional<ReportedError> error;
  std::optional<base::UnixMicros> retry_at;
  base::Lsn applied;
  base::Lsn confirmed;
  BacklogStatus backlog;
  std::optional<InstantiationStatus> instantiation;
  std::optional<base::UnixMicros> counted_since;  // when its tables began to count: none while nothing is applied here
  std::vector<TableStatus> tables;
  std::optional<RuleCounts> rule_counts = {};  // of its own rules: none where it has none, or nothing is read here
  uint64_t retrying = 0;                       // transactions that wait for their retry
  std::optional<telemetry::TransactionRetry> next_retry = {};
  std::optional<InEffect> in_effect = {};    // none: the present definition is not yet
  std::vector<EffectPosition> effects = {};  // the last ones, in their order; the effect of earlier ones is over
};

// A change of a stream's capture_kind that is under way.
struct KindChangeStatus {
  CaptureKind to = CaptureKind::logical;
  std::optional<base::Lsn> position;   // where that begins to capture; none: it is being prepared
  std::vector<std::string> waits_for;  // destinations that do not have everything from before that durably
};

struct StreamStatus {
  std::string id;
  State state = State::disabled;
  StreamMode mode = DestinationMode::combined;
  std::optional<ReportedError> error;
  std::optional<base::UnixMicros> retry_at;
  base::Lsn captured;
  base::Lsn applied;
  base::Lsn confirmed;
  base::Lsn source_end;
  std::vector<DestinationStatus> destinations;  // one at least
  std::vector<WaitStatus> waits;                // for longer than some seconds
  std::optional<RuleCounts> rule_counts;        // none where no table has rules, or nothing is captured here
  std::optional<KindChangeStatus> kind_change = {};
};

struct DestinationStats {
  std::string id;
  std::vector<std::pair<uint64_t, uint64_t>> latency;
  std::vector<telemetry::TableSample> tables;
  uint64_t error_queue_transactions = 0;
};

// Latency, tables and error queue are the sums of its destinations'.
struct StreamStats {
  std::string id;
  std::vector<telemetry::ComponentSample> components;
  std::vector<std::pair<uint64_t, uint64_t>> latency;  // (upper bound in microseconds, count), counts above zero only
  std::vector<telemetry::TableSample> tables;
  uint64_t error_queue_transactions = 0;
  std::vector<DestinationStats> destinations = {};
};

struct EngineStats {
  base::UnixMicros sampled_at;
  uint64_t monotonic_ns = 0;
  uint64_t resident_bytes = 0;
  uint64_t cpu_ns = 0;
  // The file system that holds the state directory, and so all spills; both are 0 if it cannot be queried.
  uint64_t disk_total_bytes = 0;
  uint64_t disk_free_bytes = 0;
  std::vector<StreamStats> streams;
};

struct ExecutionFailure {
  int64_t error_id = 0;
  base::Error error;
};

inline constexpr size_t kFailuresShownMax = 20;

enum class ExecutionState : uint8_t { running, done, failed };
constexpr std::string_view name_of(ExecutionState state) {
  constexpr std::array<std::string_view, 3> kNames = {"RUNNING", "DONE", "FAILED"};
  return kNames[static_cast<size_t>(state)];
}

struct ErrorExecutionStatus {
  telemetry::ParkedChoice choice;
  ExecutionState state = ExecutionState::running;
  uint64_t executed = 0;
  uint64_t total = 0;
  uint64_t failed = 0;                     // what waits behind these is neither here nor in `executed`
  std::vector<ExecutionFailure> failures;  // the first of them, kFailuresShownMax at most
  uint64_t left_out = 0;                   // of `executed`: those all of whose changes were left out
  std::vector<int64_t> left_out_ids = {};  // the first of them, kFailuresShownMax at most
  base::UnixMicros started_at;
  std::optional<base::UnixMicros> finished_at;
  std::optional<base::Error> error;
};

struct ParkedListView {
  std::vector<telemetry::ParkedTransaction> errors;
  uint64_t total = 0;                          // in the whole queue
  uint64_t roots = 0;                          // those that wait behind no other
  std::vector<telemetry::ParkedCause> causes;  // of the whole queue
  std::optional<int64_t> next_after;
  std::optional<ErrorExecutionStatus> execution;  // the last one
};

// The result that executing a parked transaction would have.
struct DryRunView {
  std::optional<base::Error> error;  // none: it would go through
  uint64_t changes = 0;
  uint64_t edited = 0;         // of its changes
  uint64_t left_out = 0;       // of its changes
  uint64_t settled = 0;        // of its changes: refused, and settled by error handlers
  uint64_t failed_change = 0;  // of its changes, from 1: at which it fails; 0: at none
};

// A parked transaction, opened.
struct ParkedContentsView {
  telemetry::ParkedTransaction error;
  telemetry::ParkedContents contents;
};

struct StreamTarget {
  std::string stream;
  std::string destination;  // only of retry: empty, the stream's capture
};

// Thread-safe: every request thread calls it.
class ManagedStreams {
 public:
  virtual ~ManagedStreams() = default;

  // Stores durably, then reconciles in the background. Fails with desired_state_conflict, or disk_full and
  // state_directory_failed when it could not be stored; then nothing has changed.
  virtual base::Result<void> put_desired(DesiredState desired) = 0;
  virtual EngineStatus engine() const = 0;
  virtual std::vector<StreamStatus> status() const = 0;
  virtual EngineStats stats() const = 0;
  // These fail with unknown_stream and unknown_destination.
  virtual base::Result<void> retry(const StreamTarget& target) = 0;
  virtual base::Result<ParkedListView> errors(const StreamTarget& target, const telemetry::ParkedPart& part) = 0;
  // The parked transactions that wait behind one.
  virtual base::Result<telemetry::ParkedTree> error_tree(const StreamTarget& target, int64_t error_id,
                                                         const telemetry::TreePart& part) = 0;
  // One of them, opened, in seconds: also fails with unknown_error_transaction, and with database_busy while others
  // are.
  virtual base::Result<ParkedContentsView> error_contents(const StreamTarget& target, int64_t error_id,
                                                          const telemetry::ChangesPart& part) = 0;
  // Leaves a change of one out, or gives it other values; none: as it came again. Fails with unknown_error_transaction,
  // invalid_request, and database_busy while transactions are executed. `version`: of the edits until now; empty: any.
  virtual base::Result<void> edit_error(const StreamTarget& target, int64_t error_id, uint64_t change,
                                        const std::optional<telemetry::ParkedEdit>& edit,
                                        const std::string& version) = 0;
  // The changes that handlers and policies have settled, the newest first. Also fail with database_busy while other
  // lists are read.
  virtual base::Result<telemetry::LoggedConflicts> conflicts(const StreamTarget& target,
                                                             const telemetry::ConflictPart& part) = 0;
  virtual base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const StreamTarget& target) = 0;
  // Covers all destinations. Fails with unknown_stream.
  virtual base::Result<telemetry::TransactionSamples> transactions(const std::string& stream) = 0;
  // Markers that this engine has placed, and the passages at its components. Fails with unknown_stream.
  virtual base::Result<telemetry::MarkerTrail> markers(const std::string& stream) = 0;
  // Fails with unknown_stream and marker_refused.
  virtual base::Result<void> place_marker(const std::string& stream, const std::string& id,
                                          const std::string& label) = 0;
  // Searches in the WAL that is kept of the stream's source. Fail with unknown_stream, search_refused and
  // unknown_search; begin_search() also with invalid_request, search_busy, and the obstacle to reaching the source.
  virtual base::Result<telemetry::SearchList> searches(const std::string& stream) = 0;
  virtual base::Result<telemetry::SearchStatus> begin_search(const std::string& stream,
                                                             telemetry::SearchRequest request) = 0;
  virtual base::Result<telemetry::FoundPart> search(const std::string& stream, const std::string& id,
                                                    const telemetry::SearchPart& part) = 0;
  virtual base::Result<void> end_search(const std::string& stream, const std::string& id) = 0;
  // Returns done, or running: it continues, and errors() shows its progress. Also fails with database_busy.
  virtual base::Result<ExecutionState> execute_error(const StreamTarget& target,
                                                     const telemetry::ParkedChoice& choice) = 0;
  // Executes one and rolls it back, in seconds; `role` as ParkedChoice's. Fails with what keeps the transaction from
  // being tried.
  virtual base::Result<DryRunView> dry_run_error(const StreamTarget& target, int64_t error_id,
                                                 const std::string& role) = 0;
  virtual base::Result<void> drop_error(const StreamTarget& target, int64_t error_id) = 0;
  // Tries the initial copy's statements without leaving anything behind; takes seconds. Fails with database_busy if too
  // many are running, and with the obstacle to reaching a database.
  virtual base::Result<std::vector<RehearsalProblem>> rehearse(const RehearsalRequest& request) = 0;
  // Whether rules fit tables of a source as it is now. Fails as rehearse does.
  virtual base::Result<std::vector<RuleProblem>> check_rules(const RulesCheckRequest& request) = 0;
  virtual base::Result<RulesTrial> test_rules(const RulesTrialRequest& request) = 0;
  // Copies a table again, or accepts its partitions as they are now. They fail with unknown_table, resolution_refused
  // and the obstacle to copying the table.
  virtual base::Result<void> copy_table(const StreamTarget& target, const TableRef& table) = 0;
  virtual base::Result<void> accept_table(const StreamTarget& target, const TableRef& table) = 0;
  // A certificate request, and its answer. Fail with invalid_request and identity_refused.
  virtual base::Result<std::string> request_identity(const std::string& name) = 0;
  virtual base::Result<IdentityView> install_identity(const std::string& certificate, const std::string& ca) = 0;
};

}  // namespace thalweg::control
