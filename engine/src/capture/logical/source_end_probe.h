#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/ids.h"
#include "capture/logical/standby_snapshots.h"
#include "capture/marker_board.h"
#include "pg/connection.h"

namespace thalweg::capture {

// Asks the source once a second how far its WAL reaches: the replication protocol does not say it while changes flow.
// The replication lag is computed against it. It also has the source commit markers: heartbeats, and those that wait on
// the board. A source that does not answer only leaves the position old: the capture's own connection reports the
// trouble. Thread-safe.
class SourceEndProbe {
 public:
  struct Heartbeats {
    PrimaryOfStandby primary;  // where markers are committed; empty: at the source itself
    std::string system_identifier;
    MarkerBoard* board = nullptr;      // outlives the probe
    std::string prefix;                // of the logical messages
    std::chrono::seconds interval{0};  // zero: no markers
    const base::Clock* clock = nullptr;
  };
  SourceEndProbe(base::Conninfo conninfo, std::string application_name, Heartbeats heartbeats);
  ~SourceEndProbe();
  SourceEndProbe(const SourceEndProbe&) = delete;
  SourceEndProbe& operator=(const SourceEndProbe&) = delete;

  // Zero until the first answer.
  base::Lsn position() const { return {position_.load(std::memory_order_relaxed)}; }
  // As of the last question: it is, and takes no new connections.
  bool is_shutting_down() const { return is_shutting_down_.load(std::memory_order_relaxed); }

 private:
  void run(const std::stop_token& stop);
  base::Result<void> connect();
  base::Result<pg::Connection*> connection_for_markers();
  base::Result<void> ask();
  base::Result<void> place_markers();

  const base::Conninfo conninfo_;
  const std::string application_name_;
  // Writer: the probe's thread. Readers: anybody. Relaxed: each stands for itself.
  std::atomic<uint64_t> position_{0};
  std::atomic<bool> is_shutting_down_{false};
  const Heartbeats heartbeats_;
  std::atomic<bool> abandon_{false};                 // Writer: the destructor. Reader: the connection to the primary
  std::optional<pg::Connection> connection_;         // the thread's
  std::optional<pg::Connection> primary_;            // the thread's; none where the source itself commits markers
  std::chrono::steady_clock::time_point beat_at_{};  // the thread's: the last heartbeat
  std::jthread thread_;
};

}  // namespace thalweg::capture
