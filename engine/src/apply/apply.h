#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apply/error_queue.h"
#include "apply/parameters.h"
#include "apply/progress.h"
#include "apply/retries.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "lcr/frame.h"
#include "pg/session_board.h"
#include "queue/frame_source.h"
#include "telemetry/agent.h"
#include "telemetry/marker_log.h"
#include "telemetry/sample.h"
#include "telemetry/transaction_sample.h"

// Apply: executes the LCRs of one queue at one destination (README.md has the essay).

namespace thalweg::apply {

// Where a table's initial copy came from. All positions compare with a change's commit LSN:
//   commit <  copied_from               the copy has it: skipped
//   copied_from <= commit < copied_to   the copy may have it: applied idempotently
//   copied_to <= commit                 applied normally
// copied_from: the slot's consistent point, or the oldest snapshot's position. copied_to: pg_current_wal_insert_lsn()
// read after the youngest snapshot of the table's ranges was taken. Equal where one exported snapshot copied all.
struct CatchUpSpan {
  std::string schema_name;  // at the destination
  std::string table_name;
  base::Lsn copied_from;
  base::Lsn copied_to;
  base::RelationId relation = {};  // at the source, whatever it is called there; zero: the one of the stream's name
  bool stopped = false;            // its changes are left out
  bool recorded = false;           // thalweg.stream_table has a row of it, which is told of TRUNCATEs
  std::string stream_schema = {};  // as the stream names it; empty: as the destination does
  std::string stream_table = {};

  bool is_named(const lcr::TableDescription& table) const {
    const bool has_own = !stream_table.empty();
    return (has_own ? stream_schema : schema_name) == table.schema_name &&
           (has_own ? stream_table : table_name) == table.table_name;
  }
};

struct ApplyOptions {
  std::string stream_id;
  base::Conninfo destination_conninfo;
  queue::FrameSource* frames = nullptr;  // the source of LCRs; outlives the apply
  ApplyParameters parameters;
  std::filesystem::path spill_directory;  // exists; this apply owns what it finds there
  std::vector<CatchUpSpan> catch_up;      // of the stream's tables; empty: all that come, by their names
  const base::Clock* clock = nullptr;     // outlives the apply
  // Setting it gives up a start() that waits for the destination. Null: start() waits as long as it takes.
  const std::atomic<bool>* stop_start = nullptr;
  pg::SessionBoard* board = nullptr;  // for what the start has the destination do; it outlives the apply
  Retries* retries = nullptr;         // of applies before and after this one, which they outlive. Null: begins anew
  // Partitions of tables have been noted in thalweg.stream_table. Called by an agent; must not block. May be none.
  std::function<void()> on_partitions = {};
};

struct ApplyStatus {
  bool running = false;              // false before start, and once every thread has ended
  std::optional<base::Error> error;  // why it ended by itself; class transient: start a new Apply
  base::Lsn applied;                 // low watermark: every transaction with commit LSN < applied is committed
  base::Lsn confirmed;               // the durable low watermark: what capture may confirm to the source
};

// start, join and the destructor belong to the thread that made it; once start() has returned, any thread may call the
// other methods, and any number of them at a time. One start per object.
class Apply {
 public:
  explicit Apply(ApplyOptions options);
  ~Apply();  // stops without draining, and joins
  Apply(const Apply&) = delete;
  Apply& operator=(const Apply&) = delete;

  // Connects, takes the stream's lock, recovers progress and starts the agents. The stream must be registered
  // (progress.h). Fails with stream_in_use, unknown_stream, or the error of a connection; then nothing runs. Returns
  // the recovered low watermark: capture starts at or before it.
  base::Result<base::Lsn> start();
  // drain: apply everything that the queue holds first (the producer has stopped). Otherwise running groups end and
  // the rest is left to the next start.
  void request_stop(bool drain);
  // Takes some seconds at most: then it abandons statements that still wait for the destination.
  void join();

  // Takes effect while it runs, except for the parameters that parameters.h marks as not live.
  void set_parameters(const ApplyParameters& parameters);

  ApplyStatus status() const;
  // Once started: no earlier apply of the stream has applied anything that commits at this position or above.
  base::Lsn begins_at() const;
  // LSN value that capture reports upstream as flushed: transactions with commit LSN below it are durable here.
  // Writer: the recorder (release, after the destination's durable commit). Reader: capture (acquire).
  const std::atomic<uint64_t>& confirmed_lsn() const;

  // Reader, coordinator and appliers, in that order.
  std::vector<telemetry::ComponentSample> sample() const;
  std::vector<telemetry::TableSample> tables() const;
  // Destination commit time minus source commit time; counts by LatencyHistogram's buckets, all appliers and markers
  // together.
  std::array<uint64_t, telemetry::LatencyHistogram::kBucketCount> latency() const;
  uint64_t parked_transactions() const;
  // Open ones and those that wait or execute, as of a second ago; none once it has ended.
  telemetry::TransactionSamples transactions() const;
  // When markers were dequeued, dispatched, and had everything before them committed.
  void add_to(telemetry::MarkerTrail& trail) const;

  // Call it after an attempt to execute or remove transactions of the error queue (error_queue.h).
  void note_errors_changed();
  // Hands out nothing for a moment, while somebody works at the error queue: from is_held() on nothing is parked until
  // note_errors_changed() is called, or `timeout` is over.
  void hold_for_errors(std::chrono::milliseconds timeout);
  bool is_held() const;

 private:
  void give_up_if_need_be();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg::apply
