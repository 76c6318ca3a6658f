#include "search/kept_wal.h"

#include <algorithm>

#include "shipment/staging.h"

namespace thalweg::search {

namespace {

std::unexpected<base::Error> nothing_kept() {
  return base::fail(base::ErrorCode::search_refused, "Nothing of the source's WAL is kept yet.");
}

}  // namespace

base::Result<KeptWal> find_kept(const capture::WalFolder& folder) {
  THALWEG_ASSIGN(auto state, folder.read_state());
  if (!state) return nothing_kept();
  KeptWal kept{.from = {}, .from_time = {}, .until = {}, .segment_bytes = state->segment_bytes};
  THALWEG_ASSIGN(const auto segments, shipment::staged_segments(folder.staging(), kept.segment_bytes));
  THALWEG_ASSIGN(kept.dictionaries, folder.saved());
  if (segments.empty()) return nothing_kept();
  // Segments come and go meanwhile: those that have gone count for nothing.
  for (const shipment::SegmentName& segment : segments) {
    std::error_code gone;
    const uint64_t bytes = std::filesystem::file_size(folder.staging() / segment.text(kept.segment_bytes), gone);
    if (gone) continue;
    kept.bytes += bytes;
    kept.until = {segment.begin.value + bytes};
    kept.timeline = segment.timeline;
  }
  std::erase_if(kept.dictionaries,
                [&](base::Lsn position) { return position < segments.front().begin || position > kept.until; });
  if (kept.dictionaries.empty()) return nothing_kept();
  kept.positions = std::move(state->earlier);
  kept.positions.push_back(state->at);
  std::erase_if(kept.positions, [&](const capture::MiningPosition& position) {
    return position.restart < kept.dictionaries.front() || position.confirmed > kept.until;
  });
  if (kept.positions.empty()) return nothing_kept();
  std::ranges::sort(kept.positions, {}, &capture::MiningPosition::confirmed);
  kept.from = kept.positions.front().confirmed;
  kept.from_time = kept.positions.front().time;
  return kept;
}

Begin begin_of(const KeptWal& kept, base::Lsn from, std::optional<base::UnixMicros> from_time) {
  constexpr int64_t kMargin = std::chrono::microseconds(kClockMargin).count();
  const capture::MiningPosition* begin = &kept.positions.front();
  for (const capture::MiningPosition& position : kept.positions) {
    const bool is_before = position.confirmed <= from;
    const bool is_long_before =
        from_time && position.time.value != 0 && position.time.value + kMargin < from_time->value;
    if (is_before || is_long_before) begin = &position;
  }
  const auto behind = std::ranges::upper_bound(kept.dictionaries, begin->restart);
  return {.dictionary = *std::prev(behind), .from = std::max(from, begin->confirmed)};
}

}  // namespace thalweg::search
