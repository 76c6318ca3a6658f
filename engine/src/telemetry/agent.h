#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

// Where an agent's time goes, and what it counts.

namespace thalweg::telemetry {

// The current activity of a thread. Names are stable: the API and the advisor use name_of().
enum class Activity : uint8_t {
  busy,
  idle,          // waiting for input
  flow_control,  // waiting for downstream
  network,       // waiting for bytes to or from a database or an engine
  execute,       // waiting for the destination to execute statements
  commit,        // waiting for the destination's commit
  dependency,    // waiting for another transaction to commit
  commit_order,  // done, waiting for its turn to commit
  lock,          // waiting for a retry after a deadlock or lock time-out
  disk,          // waiting for spill or state files
};
inline constexpr size_t kActivityCount = 10;
std::string_view name_of(Activity activity);

// One writer at a time: enter() belongs to the agent's thread, or to the holder of its baton (base/baton.h), which
// orders the writes of successive holders. Readers sample at any time without stopping it.
class TimeAccount {
 public:
  TimeAccount();
  void enter(Activity activity);  // one clock read; call it per batch, not per LCR
  Activity current() const;
  // Nanoseconds in each activity so far, the running one included.
  std::array<uint64_t, kActivityCount> sample() const;

 private:
  // Writer of all four: as enter(). Readers: anybody in sample(). A sequence lock without fences: the writer stores
  // version_ odd (relaxed), then the fields (release, so that none moves before the odd version), then version_ even
  // (release). A reader loads version_ (acquire), the fields (acquire, so that none moves behind the second version_
  // load), version_ again; both even and equal: the fields belong together.
  std::atomic<uint64_t> version_{0};
  std::array<std::atomic<uint64_t>, kActivityCount> nanoseconds_{};
  std::atomic<uint64_t> entered_at_;
  std::atomic<uint8_t> current_;
};

// Enters an activity for a scope and returns to the previous one.
class ActivityScope {
 public:
  ActivityScope(TimeAccount& account, Activity activity) : account_(account), before_(account.current()) {
    account_.enter(activity);
  }
  ~ActivityScope() { account_.enter(before_); }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  TimeAccount& account_;
  Activity before_;
};

// One writer at a time: an agent, or the holder of its baton (relaxed load and store, no read-modify-write). Reader:
// anybody (relaxed).
class Counter {
 public:
  void add(uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// The state text of a component or sub-component, from a fixed set of string literals ("CAPTURING CHANGES"). One writer
// at a time: the agent, the holder of its baton, or the owner of an agent that has no thread. Readers: anybody
// (relaxed: a literal says nothing but itself).
class StateText {
 public:
  explicit StateText(const char* initial) : text_(initial) {}
  void set(const char* literal) { text_.store(literal, std::memory_order_relaxed); }
  const char* get() const { return text_.load(std::memory_order_relaxed); }

 private:
  std::atomic<const char*> text_;
};

// Cumulative latency histogram in microseconds: log-linear, 16 steps per power of two, up to ~71 minutes; relative
// error below 1/16. Single writer, sampled by anybody; two samples subtract to the interval's distribution.
class LatencyHistogram {
 public:
  static constexpr size_t kBucketCount = 464;
  void record(std::chrono::microseconds latency);
  // The largest latency that counts in `bucket` (the last bucket also counts everything above).
  static uint64_t upper_bound_micros(size_t bucket);
  uint64_t count(size_t bucket) const { return buckets_[bucket].get(); }

 private:
  std::array<Counter, kBucketCount> buckets_{};
};

}  // namespace thalweg::telemetry
