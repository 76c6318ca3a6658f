#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

// Message tracking. A marker is a transaction without changes that the engine has the source commit; every component
// notes when it passed. So the way of one commit through the path can be told, over several engines by its commit LSN,
// and an idle stream shows its true latency (docs/decisions/markers.md).

namespace thalweg::telemetry {

struct MarkerPassage {
  base::Lsn commit_lsn;
  base::UnixMicros commit_time;  // by the source's clock
  base::UnixMicros at;           // by this engine's
};

// The markers that passed one place. Thread-safe: a lock, taken by its agent for markers only: a few a minute.
class MarkerLog {
 public:
  static constexpr size_t kKeptMax = 128;

  void note(const MarkerPassage& passage) {
    const std::lock_guard lock(mutex_);
    if (passages_.size() == kKeptMax) passages_.pop_front();
    passages_.push_back(passage);
  }
  // Oldest first.
  std::vector<MarkerPassage> read() const {
    const std::lock_guard lock(mutex_);
    return {passages_.begin(), passages_.end()};
  }
  // The latency of the last marker, from its commit at the source to here.
  std::optional<int64_t> latency_micros() const {
    const std::lock_guard lock(mutex_);
    if (passages_.empty()) return std::nullopt;
    return std::max<int64_t>(0, passages_.back().at.value - passages_.back().commit_time.value);
  }

 private:
  mutable std::mutex mutex_;
  std::deque<MarkerPassage> passages_;
};

// placed: the source has it; captured: it has come back in the WAL.
enum class MarkerState : uint8_t { waiting, placed, captured, failed };
constexpr std::string_view name_of(MarkerState state) {
  constexpr std::array<std::string_view, 4> kNames = {"WAITING", "PLACED", "CAPTURED", "FAILED"};
  return kNames[static_cast<size_t>(state)];
}

// A marker that this engine has placed.
struct PlacedMarker {
  std::string id;     // empty: a heartbeat
  std::string label;  // what the user calls it
  MarkerState state = MarkerState::waiting;
  base::UnixMicros placed_at;
  base::Lsn commit_lsn = {};  // this and the next two once it is captured
  base::Xid xid = {};
  base::UnixMicros commit_time = {};
  std::string failure = {};
};

// A place of the path and what passed it.
struct MarkerStage {
  std::string_view component;  // CAPTURE, QUEUE, PROPAGATION SENDER, PROPAGATION RECEIVER, APPLY
  std::string_view stage;      // CAPTURE, ENQUEUE, SEND, RECEIVE, DEQUEUE, DISPATCH, COMMIT
  std::vector<MarkerPassage> passages;
  std::string destination = {};  // id of the one destination of several
};

struct MarkerTrail {
  std::vector<PlacedMarker> placed;  // oldest first
  std::vector<MarkerStage> stages;   // in the path's order
};

}  // namespace thalweg::telemetry
