#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "control/managed_streams.h"

// The engine's statistics of the last minutes: whoever was away meanwhile asks for what it has missed.

namespace thalweg::control {

struct StatsHistoryOptions {
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds span{15 * 60 * 1000};
  size_t bytes_max = size_t{32} << 20;        // of all samples, compressed: some 600 a stream and sample
  size_t answer_bytes_max = size_t{4} << 20;  // of one answer; one sample always fits
};

// Takes a sample once per interval on a thread of its own. Bounded by span and bytes: the oldest go.
// Thread-safe: any thread may ask.
class StatsHistory {
 public:
  // `streams` outlives it.
  StatsHistory(const ManagedStreams& streams, StatsHistoryOptions options);
  ~StatsHistory();
  StatsHistory(const StatsHistory&) = delete;
  StatsHistory& operator=(const StatsHistory&) = delete;

  // The body of GET /v1/stats/history: samples after the last one that was taken at or before `since` (by the wall
  // clock, which may have jumped: they stay in the order in which they were taken), oldest first, as many as fit.
  std::string answer(base::UnixMicros since) const;

 private:
  struct Taken {
    base::UnixMicros at;
    std::string packed;
    size_t bytes;  // unpacked
  };
  void run(const std::stop_token& stop);
  void take();

  const ManagedStreams& streams_;
  const StatsHistoryOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Taken> taken_;
  size_t packed_bytes_ = 0;

  std::mutex wake_mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses everything above
};

}  // namespace thalweg::control
