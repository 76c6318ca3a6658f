#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "capture/change_tap.h"
#include "capture/stream_rules.h"
#include "queue/lcr_queue.h"
#include "shipment/archive.h"
#include "telemetry/marker_log.h"
#include "telemetry/rule_sample.h"
#include "telemetry/sample.h"

// Capture: turns a source's WAL into LCR frames and enqueues them (README.md has the essay).
// One interface for every kind of source: capture/logical and capture/wal.

namespace thalweg::capture {

// Of a capture that mines the source's WAL.
struct MiningOptions {
  std::filesystem::path folder = {};        // of the stream's staged WAL and dictionaries, begun by start_wal()
  uint64_t staging_bytes_max = UINT64_MAX;  // of staged WAL; when there is so much, the source keeps what follows
  uint64_t keep_bytes = 0;                  // of WAL that is kept for searches alone; at the limit it goes first
  uint64_t memory_bytes = UINT64_MAX;       // of rows of open transactions; above it the largest comes in pieces
  std::optional<shipment::ArchivePlace> archive = {};        // where the source's WAL is as well
  uint64_t dictionary_interval_bytes = uint64_t{256} << 20;  // of WAL, between two dictionaries on disk
};

struct CaptureOptions {
  std::string stream_id;
  base::Conninfo source_conninfo;
  // The standby's primary, where the source may be a standby: markers are committed there. Empty: it is the primary.
  base::Conninfo primary_conninfo = {};
  std::string slot;
  std::vector<std::string> publications;  // what they publish together is sent; all are older than the slot
  // Apply's recovered low watermark: every transaction with commit LSN below it is applied. Capture starts here, and
  // fails with position_gap when the slot has moved past it. Zero: start where the slot is.
  base::Lsn start;
  // The stream's system and timeline (apply::StreamRecord); empty or zero: not compared. Another system:
  // source_changed. Another timeline: connection_lost, because the start has compared it a moment ago and will do so
  // again.
  std::string system_identifier;
  int timeline = 0;
  queue::LcrQueue* queue = nullptr;  // outlives the capture, which is its producer
  // Transactions with commit LSN below it are durable at every destination: reported to the source as flushed.
  // Writer: the recorder of the direct destination's apply; where destinations have backlogs, the supervisor (release).
  // Reader: capture (acquire). Zero: not known yet. Outlives the capture.
  const std::atomic<uint64_t>* confirmed_lsn = nullptr;
  const base::Clock* clock = nullptr;  // outlives the capture
  // How often the source commits a marker (telemetry/marker_log.h). Zero: never, and none can be placed; then the
  // source's logical messages are not asked for.
  std::chrono::seconds heartbeat_interval{0};
  StreamRules rules = {};  // which changes of the tables go into the queue
  MiningOptions mining = {};
  ChangeTap* tap = nullptr;  // shows changes to whoever asks; outlives the capture. Null: to nobody
};

struct CaptureStatus {
  bool running = false;              // from start() until the agent has ended
  bool enqueuing = false;            // false: no further frame will be enqueued
  std::optional<base::Error> error;  // why it ended by itself; class transient: make a new one, with queue and apply
  std::optional<base::Error> trouble = {};  // what holds it up until somebody acts, though it runs
  const char* state = "";                   // INITIALIZING, CAPTURING CHANGES, WAITING FOR WAL, ...
  base::Lsn captured;                       // everything that commits before it has been enqueued
  base::Lsn source_end;                     // the source's flushed WAL, at most two seconds old; never below captured
  base::Lsn confirmed;                      // last reported to the source as flushed
};

// Thread-safe: status() and sample() may be called by anybody; start, request_stop, await_quiet, join and the
// destructor belong to the owner's thread. One start per object: errors end it, the owner makes another.
//
// A graceful end:  capture.request_stop(); capture.await_quiet();  (let apply drain the queue)  capture.join();
class Capture {
 public:
  virtual ~Capture() = default;  // request_stop and join
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Starts the agent's thread, which connects; failures show in status().
  virtual void start() = 0;
  // Stops reading. The connection and its feedback live on until join(), so that what apply still drains is confirmed.
  virtual void request_stop() = 0;
  // Returns once no further frame will be enqueued. request_stop() came before.
  virtual void await_quiet() = 0;
  // Sends the last feedback and ends the thread.
  virtual void join() = 0;

  virtual CaptureStatus status() const = 0;
  // Counters lcrs, transactions, bytes (of frames), wal_bytes, batches (of thalweg_output; 0 with pgoutput); gauge
  // latency_us (age of the last commit when enqueued), streaming (1: transactions come before
  // their commit).
  virtual telemetry::ComponentSample sample() const = 0;
  // Of a capture with several agents, what the others do, too.
  virtual std::vector<telemetry::ComponentSample> parts() const { return {}; }
  // Of the tables with rules, since start(). Changes that come before their transaction is rolled back count, too.
  virtual std::vector<telemetry::RuleSample> rules() const = 0;

  // Has the source commit a marker of this id as soon as it can. Fails with marker_refused.
  virtual base::Result<void> place_marker(const std::string& id, const std::string& label) = 0;
  // Markers placed, and when they were captured and enqueued.
  virtual void add_to(telemetry::MarkerTrail& trail) const = 0;

 protected:
  Capture() = default;
};

// Logical decoding with pgoutput: capture/logical.
std::unique_ptr<Capture> make_logical_capture(CaptureOptions options);
// Mining of the source's WAL: capture/wal. `options.slot` is a physical one.
std::unique_ptr<Capture> make_wal_capture(CaptureOptions options);

}  // namespace thalweg::capture
