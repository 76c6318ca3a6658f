#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "telemetry/marker_log.h"

// The markers of one capture: asked for, on their way to the source, back in its stream.

namespace thalweg::capture {

// Thread-safe: a lock, taken for markers only. A caller places one; the thread that talks to the source takes it from
// there and says what became of it; the capture's agent finds it in the stream.
class MarkerBoard {
 public:
  static constexpr size_t kKeptMax = 128;    // placed ones that are remembered
  static constexpr size_t kWaitingMax = 16;  // that the source has not got yet

  explicit MarkerBoard(const base::Clock& clock) : clock_(clock) {}

  // Fails with marker_refused when too many wait, or one of that id is there.
  base::Result<void> place(const std::string& id, const std::string& label);
  std::vector<telemetry::PlacedMarker> read() const;

  // Waits until a marker is there, the time is up, or `stop`.
  void await(const std::stop_token& stop, std::chrono::milliseconds time);
  // The content to write into the source's WAL for the oldest marker that waits; none if no marker waits.
  std::optional<std::string> next() const;
  // A heartbeat: it waits like the others.
  void place_heartbeat();
  // Outcome for the content that next() returned: the source has committed it, or has refused it.
  void placed(std::string_view content);
  void failed(std::string_view content, std::string_view why);

  // The source's stream had this content, committed so.
  void captured(std::string_view content, base::Xid xid, base::Lsn commit_lsn, base::UnixMicros commit_time);

 private:
  base::Result<void> add(const std::string& id, const std::string& label);
  bool any_waits() const;

  const base::Clock& clock_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any wake_;
  struct Entry {
    telemetry::PlacedMarker marker;
    std::string content;
  };
  Entry* find(std::string_view content);
  std::deque<Entry> entries_;
  uint64_t heartbeats_ = 0;
};

}  // namespace thalweg::capture
