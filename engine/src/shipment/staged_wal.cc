#include "shipment/staged_wal.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "shipment/archive_command.h"

namespace thalweg::shipment {

base::Result<base::File> StagedWal::find(base::Lsn segment) const {
  const WalIdentity& identity = options_.identity;
  const auto path = options_.directory / identity.name_of(segment);
  auto opened = base::File::open(path, O_RDONLY);
  std::error_code failed;
  if (opened || std::filesystem::exists(path, failed)) return opened;
  if (options_.archive != nullptr) {
    THALWEG_ASSIGN(auto archived, options_.archive->fetch(segment, identity));
    if (archived) return std::move(*archived);
    auto lacks = archive_failed(fmt::format("The WAL from {} on is read again, and the archive {} does not have {}.",
                                            to_string(position_), options_.archive->text(), identity.name_of(segment)));
    lacks.error().lsn = position_;
    return lacks;
  }
  base::Error gap =
      base::fail(base::ErrorCode::position_gap,
                 fmt::format("The staged WAL from {} on is gone: there is no {}.", to_string(position_), path.string()),
                 base::ErrorSide::engine)
          .error();
  gap.lsn = position_;
  return std::unexpected(std::move(gap));
}

base::Result<void> StagedWal::open() {
  const base::Lsn begin{position_.value - position_.value % options_.identity.segment_bytes};
  THALWEG_ASSIGN(file_, find(begin));
  return file_.seek(position_.value - begin.value);
}

base::Result<std::span<const std::byte>> StagedWal::read(base::Lsn end) {
  if (position_ >= end) return std::span<const std::byte>{};
  if (!file_.is_open()) THALWEG_TRY(open());
  const uint64_t left_in_segment = options_.identity.segment_bytes - position_.value % options_.identity.segment_bytes;
  const uint64_t wanted = std::min({uint64_t{kPortionBytes}, left_in_segment, end.value - position_.value});
  bytes_.resize(kPortionBytes);
  THALWEG_ASSIGN(const size_t count, file_.read_some(std::span{bytes_}.first(wanted)));
  if (count < wanted) {
    return base::fail(base::ErrorCode::file_error,
                      fmt::format("The staged WAL at {} is shorter than what was written.", to_string(position_)),
                      base::ErrorSide::engine);
  }
  position_.value += count;
  if (position_.value % options_.identity.segment_bytes == 0) file_ = {};
  return std::span<const std::byte>{bytes_}.first(count);
}

}  // namespace thalweg::shipment
