#include "control/stats_history.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <stdexcept>

#include "control/documents.h"

namespace thalweg::control {
namespace {

constexpr int kLevel = 1;

std::string pack(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), kLevel);
  // Only a buffer that is too small or no memory could make it fail.
  if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
  packed.resize(size);
  packed.shrink_to_fit();
  return packed;
}

void unpack(const std::string& packed, size_t bytes, std::string& to) {
  const size_t at = to.size();
  to.resize(at + bytes);
  const size_t size = ZSTD_decompress(to.data() + at, bytes, packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
}

}  // namespace

StatsHistory::StatsHistory(const ManagedStreams& streams, StatsHistoryOptions options)
    : streams_(streams), options_(options), thread_([this](const std::stop_token& stop) { run(stop); }) {}

StatsHistory::~StatsHistory() = default;  // jthread asks its thread to stop, which ends the wait

void StatsHistory::run(const std::stop_token& stop) {
  auto due = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    take();
    // A sample that took long, or a machine that slept, is not made up for.
    due = std::max(due + options_.interval, std::chrono::steady_clock::now());
    std::unique_lock lock(wake_mutex_);
    wake_.wait_until(lock, stop, due, [] { return false; });
  }
}

void StatsHistory::take() {
  const EngineStats stats = streams_.stats();
  const std::vector<StreamStatus> status = streams_.status();
  std::string text = to_text(history_sample_document(stats, status));
  text.pop_back();  // its end of line
  Taken taken{.at = stats.sampled_at, .packed = pack(text), .bytes = text.size()};
  const auto count_max = static_cast<size_t>(options_.span / options_.interval);
  const std::lock_guard lock(mutex_);
  packed_bytes_ += taken.packed.size();
  taken_.push_back(std::move(taken));
  while (taken_.size() > 1 && (taken_.size() > count_max || packed_bytes_ > options_.bytes_max)) {
    packed_bytes_ -= taken_.front().packed.size();
    taken_.pop_front();
  }
}

std::string StatsHistory::answer(base::UnixMicros since) const {
  std::string text = fmt::format(R"({{"engine":{{"started_at":"{}"}},"interval_ms":{},"samples":[)",
                                 rfc3339(streams_.engine().started_at), options_.interval.count());
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(taken_.rbegin(), taken_.rend(), [&](const Taken& taken) { return taken.at <= since; });
  bool more = false;
  bool first = true;
  for (auto taken = known.base(); taken != taken_.end(); ++taken) {
    more = !first && text.size() + taken->bytes > options_.answer_bytes_max;
    if (more) break;
    if (!first) text += ',';
    unpack(taken->packed, taken->bytes, text);
    first = false;
  }
  text += fmt::format("],\"more\":{}}}\n", more);
  return text;
}

}  // namespace thalweg::control
