#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apply/coordinator/schedule_policy.h"
#include "apply/parameters.h"
#include "apply/retries.h"
#include "base/clock.h"
#include "base/doorbell.h"
#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"

// The few things that several agents of one apply look at.

namespace thalweg::apply {

class Coordinator;

// Live parameters, readable by every agent. Writer: Apply, when it is made and in set_parameters. Readers: any
// (relaxed: a change takes effect at the next group).
struct LiveParameters {
  std::atomic<int> parallelism;
  std::atomic<CommitSerialization> commit_serialization;
  LiveErrorPolicies errors;
  std::atomic<int64_t> conflict_retention_days;
  std::atomic<bool> data_layer;
  std::atomic<size_t> group_size;
  std::atomic<size_t> txn_lcr_spill_threshold;
  std::atomic<int64_t> txn_age_spill_seconds;

  void set(const ApplyParameters& p) {
    parallelism.store(p.parallelism, std::memory_order_relaxed);
    commit_serialization.store(p.commit_serialization, std::memory_order_relaxed);
    errors.set({.entries = p.error_policies,
                .conflict_handlers = p.conflict_handlers,
                .disable_on_error = p.disable_on_error});
    conflict_retention_days.store(p.conflict_retention.count(), std::memory_order_relaxed);
    data_layer.store(p.data_layer, std::memory_order_relaxed);
    group_size.store(p.group_size, std::memory_order_relaxed);
    txn_lcr_spill_threshold.store(p.txn_lcr_spill_threshold, std::memory_order_relaxed);
    txn_age_spill_seconds.store(p.txn_age_spill_threshold.count(), std::memory_order_relaxed);
  }
};

// Thread-safe. The first failure of any agent; it ends the apply.
class FirstError {
 public:
  void set(base::Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    is_set_.store(true, std::memory_order_release);
  }
  bool is_set() const { return is_set_.load(std::memory_order_acquire); }
  std::optional<base::Error> get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<base::Error> error_;
  // Release in set pairs with acquire in is_set; a cheap look before the lock.
  std::atomic<bool> is_set_{false};
};

// State that all agents of one apply share. Apply fills it in before it starts them, also the atomics whose writer is
// one of them; each agent's thread sees that because it starts later. "The coordinator" is the holder of its baton.
struct SharedState {
  std::string stream_id;
  base::Conninfo destination_conninfo;
  const base::Clock* clock = nullptr;
  int64_t epoch = 0;
  std::vector<metadata::ComparedTable> compared;               // for TableLoader; as it is at start
  std::vector<metadata::StatementHandler> statement_handlers;  // as they are at start
  Retries* retries = nullptr;
  const SchedulePolicy policy = {};
  LiveParameters parameters;
  FirstError error;
  // Writer: stop(), which Apply, the coordinator and the recorder call (release). Readers: all agents (acquire).
  std::atomic<bool> stop_now{false};
  // Writer: Apply::request_stop (release). Reader: the reader (acquire).
  std::atomic<bool> drain{false};
  // Writers: Apply::start, then the coordinator (release, after the commits it stands for). Readers: the other agents
  // and Apply::status (acquire).
  std::atomic<uint64_t> low_watermark{0};
  // The number of the last group of an unbroken row of committed ones. Writer: the coordinator (release). Readers:
  // appliers that wait for their turn (acquire).
  std::atomic<uint64_t> committed_through{0};
  // The durable low watermark. Writers: Apply::start, then the recorder (release, after its commit). Readers: capture
  // and Apply::status (acquire).
  std::atomic<uint64_t> confirmed{0};
  // Transactions in the error queue. Writers: Apply::start, then the coordinator. Readers: anybody. Relaxed: it says
  // nothing but itself.
  std::atomic<uint64_t> parked{0};
  // Data transactions committed so far. Writer: the coordinator (release, after it has stored low_watermark). Reader:
  // the recorder (acquire, before it loads low_watermark: so that covers at least these).
  std::atomic<uint64_t> commits{0};
  // No more groups are assigned, and no more commits come. Writer: the coordinator at its end (release). Readers:
  // appliers, the recorder (acquire).
  std::atomic<bool> commits_ended{false};
  // The error queue was changed, or is about to be: while this is set, the coordinator assigns only groups that running
  // ones wait for; with nothing running it clears this and loads the queue again. Writers: note_errors_changed and
  // hold_for_errors set it (release, after hold_until); the coordinator clears it (before it loads the queue). Reader:
  // the coordinator (acquire where it goes on to hold_until, else relaxed).
  std::atomic<bool> reload_parked{false};
  // Until then (steady clock, since its epoch) the coordinator leaves the queue unread and reload_parked set: an
  // operator is about to change the queue. 0: nobody is. Writers: hold_for_errors, note_errors_changed. Reader: the
  // coordinator. Relaxed: reload_parked orders them.
  std::atomic<std::chrono::steady_clock::rep> hold_until{0};
  // The coordinator holds back, and nothing runs. Writers: the coordinator sets it (release), hold_for_errors clears
  // it. Reader: Apply::is_held (acquire).
  std::atomic<bool> is_held{false};
  // Null: there is none to do the work of. Writer: the coordinator's thread when it begins, and the coordinator's
  // destructor (release). Readers: tell_coordinator (acquire).
  std::atomic<Coordinator*> coordinator{nullptr};
  base::Doorbell coordinator_bell;
  base::Doorbell reader_bell;
  base::Doorbell recorder_bell;

  // Connections are given up, whatever they wait for. Writers: Apply::join, and the watch of Apply::start. Readers: the
  // waits of the start and of the agents. Relaxed: it says nothing but itself.
  std::atomic<bool> abandon{false};

  // Options of every connection of an agent. The part shows in pg_stat_activity.
  pg::ConnectOptions connect_options(std::string_view part) const {
    pg::ConnectOptions options;
    options.application_name = fmt::format("thalweg {} {}", stream_id, part);
    options.abandon = &abandon;
    options.answer_bytes_max = pg::kRowBytesMax;  // the error queue's hashes
    return options;
  }
  // Thread-safe, for the reader and the appliers: there is a transaction, or a group has finished.
  void tell_coordinator();
  // Thread-safe: wakes everybody who looks at ending().
  void stop() {
    stop_now.store(true, std::memory_order_release);
    coordinator_bell.ring();
    reader_bell.ring();
    recorder_bell.ring();
  }
  bool ending() const { return stop_now.load(std::memory_order_acquire) || error.is_set(); }
};

}  // namespace thalweg::apply
