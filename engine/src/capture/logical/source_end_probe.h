#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/ids.h"

namespace thalweg::capture {

// Asks the source once a second how far its WAL reaches: the replication protocol does not say it while changes flow.
// Backlogs are shown against it. A source that does not answer only leaves the position old: the capture's own
// connection reports the trouble. Thread-safe.
class SourceEndProbe {
 public:
  SourceEndProbe(std::string conninfo, std::string application_name);
  ~SourceEndProbe();
  SourceEndProbe(const SourceEndProbe&) = delete;
  SourceEndProbe& operator=(const SourceEndProbe&) = delete;

  // Zero until the first answer.
  base::Lsn position() const { return {position_.load(std::memory_order_relaxed)}; }

 private:
  void run(const std::stop_token& stop);

  const std::string conninfo_;
  const std::string application_name_;
  // Writer: the probe's thread. Readers: anybody. Relaxed: it stands for itself.
  std::atomic<uint64_t> position_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace thalweg::capture
