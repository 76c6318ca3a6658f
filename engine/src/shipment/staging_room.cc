#include "shipment/staging_room.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "shipment/archive_command.h"

namespace thalweg::shipment {

namespace {

constexpr size_t kPortionBytes = size_t{1} << 20;

}  // namespace

base::Result<Archived> compare_archived(const Archive& archive, const Staging& staging, base::Lsn segment) {
  THALWEG_ASSIGN(auto archived, archive.fetch(segment, staging.identity()));
  if (!archived) return Archived::no;
  THALWEG_ASSIGN(base::File staged, base::File::open(staging.path_of(segment), O_RDONLY));
  std::vector<std::byte> ours(kPortionBytes);
  std::vector<std::byte> theirs(kPortionBytes);
  while (true) {
    THALWEG_ASSIGN(const size_t count, staged.read_some(ours));
    const auto archived_count = archived->read_some(theirs);
    if (!archived_count) return archive_failed(archived_count.error().message);
    if (count != *archived_count ||
        !std::equal(ours.begin(), ours.begin() + static_cast<ptrdiff_t>(count), theirs.begin())) {
      return Archived::different;
    }
    if (count == 0) return Archived::same;
  }
}

base::Result<bool> give_up_damaged(const Archive& archive, Staging& staging) {
  const WalIdentity& identity = staging.identity();
  const base::Lsn whole = std::max(staging.whole(), staging.begin());
  for (base::Lsn segment = identity.segment_of(whole); segment.value + identity.segment_bytes <= staging.end().value;
       segment.value += identity.segment_bytes) {
    THALWEG_ASSIGN(const Archived found, compare_archived(archive, staging, segment));
    if (found != Archived::different) continue;
    base::log_event(base::LogLevel::warning, "staged_wal_given_up", {{"from", base::to_string(whole)}});
    THALWEG_TRY(staging.cut_back(whole));
    return true;
  }
  return false;
}

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
  asked_at_ = now;
  THALWEG_ASSIGN(const bool archived_went, drop_archived());
  if (archived_went) asked_at_ = {};
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
  THALWEG_ASSIGN(const Archived found, compare_archived(*options_.archive, staging_, oldest));
  if (found == Archived::different) {
    return archive_failed(fmt::format("The archive {} has other bytes in {} than were staged.",
                                      options_.archive->text(), options_.identity.name_of(oldest)));
  }
  return found == Archived::same ? drop_before(end) : false;
}

}  // namespace thalweg::shipment
