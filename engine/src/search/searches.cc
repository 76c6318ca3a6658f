#include "search/searches.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "pg/connection.h"
#include "search/searched_key.h"

namespace thalweg::search {

namespace {

constexpr size_t kIdLetters = 7;
// Somebody waits for the answer on one of the control API's threads.
constexpr std::chrono::seconds kConnectMax{3};
constexpr std::chrono::seconds kCheckMax{20};

std::string new_id() {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  std::string id = "s";
  for (size_t i = 0; i < kIdLetters; ++i) id += kLetters[letter(random)];
  return id;
}

base::Result<void> compare_key(const SearchedStream& stream, const telemetry::SearchRequest& request,
                               const std::atomic<bool>& abandon) {
  if (request.key.empty()) return {};
  const capture::WalFolder folder(stream.folder);
  THALWEG_ASSIGN(pg::Connection source, pg::Connection::open(stream.source, {.application_name = "thalweg search",
                                                                             .connect_timeout = kConnectMax,
                                                                             .abandon = &abandon,
                                                                             .lifetime = kCheckMax}));
  THALWEG_ASSIGN(capture::MaskedColumns masked, capture::MaskedColumns::load(folder.masked_columns()));
  THALWEG_TRY(masked.note(source, stream.transformations, {}));
  return check_key(source, request, masked);
}

}  // namespace

base::Result<telemetry::SearchList> Searches::list(const SearchedStream& stream) {
  THALWEG_ASSIGN(const KeptWal kept, find_kept(capture::WalFolder(stream.folder)));
  telemetry::SearchList out{.kept_from = kept.from, .kept_until = kept.until, .kept_bytes = kept.bytes};
  if (kept.from_time != base::UnixMicros{}) out.kept_from_time = kept.from_time;
  const std::lock_guard lock(mutex_);
  forget_old_locked();
  for (const auto& search : searches_) out.searches.push_back(search->status());
  return out;
}

base::Result<telemetry::SearchStatus> Searches::begin(const SearchedStream& stream, telemetry::SearchRequest request,
                                                      Place place, const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(KeptWal kept, find_kept(capture::WalFolder(stream.folder)));
  const base::Lsn from = std::max(request.from.value_or(kept.from), kept.from);
  const base::Lsn to = std::min(request.to.value_or(kept.until), kept.until);
  if (request.to && *request.to <= kept.from) {
    return base::fail(base::ErrorCode::search_refused,
                      fmt::format("The WAL is kept from {} on only, and the range ends at {}.",
                                  base::to_string(kept.from), base::to_string(*request.to)));
  }
  if (!place) return base::fail(base::ErrorCode::search_busy, "Searches of other streams are running.");
  uint64_t endings = 0;
  {
    // Before the source is asked, whose answer may take long.
    const std::lock_guard lock(mutex_);
    THALWEG_TRY(check_begin_locked());
    endings = endings_;
  }
  THALWEG_TRY(compare_key(stream, request, abandon));
  const std::lock_guard lock(mutex_);
  THALWEG_TRY(check_begin_locked());
  if (endings != endings_) return base::fail(base::ErrorCode::search_busy, "The stream has changed meanwhile.");
  searches_.push_back(std::make_shared<LogSearch>(LogSearch::Options{.id = new_id(),
                                                                     .stream = stream,
                                                                     .request = std::move(request),
                                                                     .kept = std::move(kept),
                                                                     .from = from,
                                                                     .to = to,
                                                                     .clock = &clock_,
                                                                     .place = std::move(place)}));
  return searches_.back()->status();
}

base::Result<void> Searches::check_begin_locked() {
  if (is_closed_) return base::fail(base::ErrorCode::engine_stopping, "The engine is stopping");
  forget_old_locked();
  if (is_running()) return base::fail(base::ErrorCode::search_busy, "Another search of the stream is running.");
  return {};
}

base::Result<telemetry::FoundPart> Searches::part(const std::string& id, const telemetry::SearchPart& part) {
  THALWEG_ASSIGN(const auto search, find(id));
  return search->part(part);
}

base::Result<void> Searches::end(const std::string& id) {
  THALWEG_ASSIGN(const auto search, find(id));
  search->request_stop();
  const std::lock_guard lock(mutex_);
  std::erase(searches_, search);
  return {};
}

void Searches::end_all() {
  std::vector<std::shared_ptr<LogSearch>> ending;
  {
    const std::lock_guard lock(mutex_);
    ending.swap(searches_);
    ++endings_;
  }
  for (const auto& search : ending) search->request_stop();
}

void Searches::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  for (const auto& search : searches_) search->request_stop();
}

base::Result<std::shared_ptr<LogSearch>> Searches::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  forget_old_locked();
  const auto found = std::ranges::find(searches_, id, [](const auto& search) { return search->id(); });
  if (found != searches_.end()) return *found;
  return base::fail(base::ErrorCode::unknown_search, fmt::format("The stream has no search {}.", id));
}

bool Searches::is_running() const {
  return std::ranges::any_of(
      searches_, [](const auto& search) { return search->status().state == telemetry::SearchState::running; });
}

void Searches::forget_old() {
  const std::lock_guard lock(mutex_);
  forget_old_locked();
}

// Those that have ended have no thread to wait for.
void Searches::forget_old_locked() {
  const base::UnixMicros now = clock_.unix_now();
  size_t ended = 0;
  for (auto at = searches_.end(); at != searches_.begin();) {
    --at;
    const auto ended_at = (*at)->status().ended_at;
    if (!ended_at) continue;
    const bool is_old = now.value - ended_at->value > std::chrono::microseconds(kKept).count();
    if (is_old || ++ended > kEndedMax) at = searches_.erase(at);
  }
}

}  // namespace thalweg::search
