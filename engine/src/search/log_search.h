#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/networks.h"
#include "capture/wal/masked_columns.h"
#include "capture/wal/wal_folder.h"
#include "search/kept_wal.h"
#include "shipment/wal_identity.h"
#include "telemetry/log_search.h"

namespace thalweg::search {

class ChangeFinder;

// The stream, as far as a search needs it.
struct SearchedStream {
  std::string id;
  std::filesystem::path folder;  // of its mining
  base::Conninfo source;
  capture::MaskedColumns::Transformations transformations;
};

// One search, in a thread of its own that takes less of the processor than a capture. Thread-safe.
class LogSearch {
 public:
  static constexpr size_t kResultBytesMax = size_t{16} << 20;
  // Of rows of open transactions that are built; larger ones come in pieces.
  static constexpr uint64_t kBuilderBytes = uint64_t{16} << 20;

  struct Options {
    std::string id;
    SearchedStream stream;
    telemetry::SearchRequest request;
    KeptWal kept;
    base::Lsn from;  // within what is kept
    base::Lsn to;
    const base::Clock* clock = nullptr;     // outlives it
    std::shared_ptr<void> place = nullptr;  // held while it runs
  };
  explicit LogSearch(Options options);
  ~LogSearch();  // request_stop and join
  LogSearch(const LogSearch&) = delete;
  LogSearch& operator=(const LogSearch&) = delete;

  const std::string& id() const { return id_; }
  void request_stop() { stop_.store(true, std::memory_order_relaxed); }
  telemetry::SearchStatus status() const;
  telemetry::FoundPart part(const telemetry::SearchPart& part) const;

 private:
  void run(Options options);
  base::Result<void> search(const Options& options);
  base::Result<void> mine(const Options& options, const Begin& begin, const shipment::WalIdentity& identity,
                          ChangeFinder& finder);
  // False: there is no room for all of it.
  bool publish(std::vector<std::shared_ptr<telemetry::FoundChange>> found);

  const std::string id_;
  std::atomic<bool> stop_{false};         // writer: anybody. Readers: the thread, its connections
  std::atomic<uint64_t> mined_bytes_{0};  // writer: the thread. Readers: anybody
  mutable std::mutex mutex_;              // guards these
  telemetry::SearchStatus status_;
  std::vector<std::shared_ptr<const telemetry::FoundChange>> found_;
  size_t found_bytes_ = 0;
  std::thread thread_;
};

}  // namespace thalweg::search
