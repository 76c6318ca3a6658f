#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace thalweg::telemetry {

// A copy of an agent's list that changes all the time, made when it suits the agent. Neither side holds the other up:
// the lock is held for the exchange of a pointer, values are made and freed outside it.
// Thread-safe: publish belongs to one agent, read to anybody.
template <typename T>
class Snapshot {
 public:
  void publish(T value) {
    auto next = std::make_shared<const T>(std::move(value));
    const std::lock_guard lock(mutex_);
    value_.swap(next);
  }
  // The value published last; an empty one before the first.
  std::shared_ptr<const T> read() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_ = std::make_shared<const T>();
};

}  // namespace thalweg::telemetry
