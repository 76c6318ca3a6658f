#include "shipment/staging_room.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace thalweg::shipment {

namespace {

constexpr size_t kPortionBytes = size_t{1} << 20;

}  // namespace

base::Result<bool> StagingRoom::make() {
  if (!staging_.durable()) return false;
  bool went = false;
  if (options_.needed_from != nullptr) {
    const base::Lsn needed = std::min(base::Lsn{options_.needed_from->load(std::memory_order_acquire)}, last_kept());
    const uint32_t segment = options_.identity.segment_bytes;
    if (needed.value / segment != dropped_.value / segment) {
      dropped_ = needed;
      THALWEG_ASSIGN(went, drop_before(needed));
    }
  }
  if (!is_full() || options_.archive == nullptr || options_.read_to == nullptr) return went;
  const auto now = options_.clock->steady_now();
  if (now - asked_at_ < kArchiveInterval) return went;
  THALWEG_ASSIGN(const bool archived_went, drop_archived());
  if (!archived_went) asked_at_ = now;
  return went || archived_went;
}

base::Result<bool> StagingRoom::drop_before(base::Lsn position) {
  const base::Lsn before = staging_.begin();
  THALWEG_TRY(staging_.drop_before(position));
  return staging_.begin() != before;
}

// The oldest one at a time: the limit is kept, and no more is read twice than has to be.
base::Result<bool> StagingRoom::drop_archived() {
  const base::Lsn oldest = staging_.begin();
  const base::Lsn end{oldest.value + options_.identity.segment_bytes};
  const base::Lsn read{options_.read_to->load(std::memory_order_acquire)};
  if (end > std::min(read, last_kept())) return false;
  THALWEG_ASSIGN(const bool is_there, is_archived(oldest));
  if (!is_there) return false;
  return drop_before(end);
}

base::Result<bool> StagingRoom::is_archived(base::Lsn segment) const {
  THALWEG_ASSIGN(auto archived, options_.archive->fetch(segment, options_.identity));
  if (!archived) return false;
  THALWEG_ASSIGN(base::File staged, base::File::open(staging_.path_of(segment), O_RDONLY));
  std::vector<std::byte> ours(kPortionBytes);
  std::vector<std::byte> theirs(kPortionBytes);
  while (true) {
    THALWEG_ASSIGN(const size_t count, staged.read_some(ours));
    THALWEG_ASSIGN(const size_t archived_count, archived->read_some(theirs));
    if (count != archived_count ||
        !std::equal(ours.begin(), ours.begin() + static_cast<ptrdiff_t>(count), theirs.begin())) {
      return base::fail(
          base::ErrorCode::source_diverged,
          fmt::format("The archive's segment from {} on is not what the source sent.", to_string(segment)));
    }
    if (count == 0) return true;
  }
}

}  // namespace thalweg::shipment
