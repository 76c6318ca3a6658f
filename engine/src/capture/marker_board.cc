#include "capture/marker_board.h"

#include <fmt/format.h>

#include <algorithm>

namespace thalweg::capture {

using telemetry::MarkerState;

base::Result<void> MarkerBoard::add(const std::string& id, const std::string& label) {
  const auto waits = [](const Entry& entry) { return entry.marker.state == MarkerState::waiting; };
  if (std::ranges::count_if(entries_, waits) >= static_cast<std::ptrdiff_t>(kWaitingMax)) {
    return base::fail(base::ErrorCode::marker_refused,
                      fmt::format("{} markers wait for the source already", kWaitingMax));
  }
  if (entries_.size() == kKeptMax) entries_.pop_front();
  entries_.push_back({.marker = {.id = id,
                                 .label = label,
                                 .state = MarkerState::waiting,
                                 .placed_at = clock_.unix_now(),
                                 .commit_lsn = {},
                                 .xid = {},
                                 .commit_time = {}},
                      .content = id.empty() ? fmt::format("heartbeat {}", ++heartbeats_) : "marker " + id});
  return {};
}

base::Result<void> MarkerBoard::place(const std::string& id, const std::string& label) {
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.marker.id == id; })) {
      return base::fail(base::ErrorCode::marker_refused, fmt::format("There is a marker {} already", id));
    }
    THALWEG_TRY(add(id, label));
  }
  wake_.notify_all();
  return {};
}

void MarkerBoard::place_heartbeat() {
  const std::lock_guard lock(mutex_);
  // One that waits for a source that does not answer is enough.
  if (!any_waits()) (void)add({}, {});
}

std::vector<telemetry::PlacedMarker> MarkerBoard::read() const {
  const std::lock_guard lock(mutex_);
  std::vector<telemetry::PlacedMarker> out;
  for (const Entry& entry : entries_) out.push_back(entry.marker);
  return out;
}

void MarkerBoard::await(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop, time, [this] { return any_waits(); });
}

bool MarkerBoard::any_waits() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.marker.state == MarkerState::waiting; });
}

MarkerBoard::Entry* MarkerBoard::find(std::string_view content) {
  const auto found = std::ranges::find(entries_, content, &Entry::content);
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<std::string> MarkerBoard::next() const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(entries_, [](const Entry& e) { return e.marker.state == MarkerState::waiting; });
  return found == entries_.end() ? std::nullopt : std::optional(found->content);
}

void MarkerBoard::placed(std::string_view content) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find(content);
  // It may have come back already.
  if (entry != nullptr && entry->marker.state == MarkerState::waiting) entry->marker.state = MarkerState::placed;
}

void MarkerBoard::failed(std::string_view content, std::string_view why) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find(content);
  if (entry == nullptr || entry->marker.state != MarkerState::waiting) return;
  entry->marker.state = MarkerState::failed;
  entry->marker.failure = why;
}

void MarkerBoard::captured(std::string_view content, base::Xid xid, base::Lsn commit_lsn,
                           base::UnixMicros commit_time) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find(content);
  if (entry == nullptr) return;  // an earlier run's
  entry->marker.state = MarkerState::captured;
  entry->marker.xid = xid;
  entry->marker.commit_lsn = commit_lsn;
  entry->marker.commit_time = commit_time;
}

}  // namespace thalweg::capture
