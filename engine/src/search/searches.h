#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "search/log_search.h"
#include "telemetry/log_search.h"

namespace thalweg::search {

// The searches of one stream: one runs, and the last ones that ended are kept for a while. Thread-safe.
class Searches {
 public:
  static constexpr std::chrono::minutes kKept{10};
  static constexpr size_t kEndedMax = 4;

  explicit Searches(const base::Clock& clock) : clock_(clock) {}

  base::Result<telemetry::SearchList> list(const SearchedStream& stream);
  // Held while the search runs; null: there is none for it.
  using Place = std::shared_ptr<void>;
  // `to` of the request may lie behind what is kept, `from` before it. Fails with search_refused, search_busy,
  // invalid_request, and as the source does, where a key has to be compared with the table.
  base::Result<telemetry::SearchStatus> begin(const SearchedStream& stream, telemetry::SearchRequest request,
                                              Place place, const std::atomic<bool>& abandon);
  // These fail with unknown_search.
  base::Result<telemetry::FoundPart> part(const std::string& id, const telemetry::SearchPart& part);
  base::Result<void> end(const std::string& id);

  // Ends and forgets all of them, also one that is about to begin.
  void end_all();
  // Those that ended long ago; to be called from time to time.
  void forget_old();
  // Asks them to end, and lets none begin any more.
  void close();

 private:
  base::Result<std::shared_ptr<LogSearch>> find(const std::string& id);
  void forget_old_locked();
  base::Result<void> check_begin_locked();
  bool is_running() const;

  const base::Clock& clock_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<LogSearch>> searches_;  // the newest last
  bool is_closed_ = false;
  uint64_t endings_ = 0;  // of all of them
};

}  // namespace thalweg::search
