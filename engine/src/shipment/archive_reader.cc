#include "shipment/archive_reader.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "shipment/archive_command.h"

namespace thalweg::shipment {

namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr size_t kPortionBytes = size_t{1} << 20;

}  // namespace

base::Result<bool> ArchiveReader::run() {
  const base::Lsn before = staging_.end();
  if (!before) return false;
  THALWEG_TRY(staging_.compare_page());
  while (!*options_.stop) {
    if (const auto made = room_.make(); !made) return what_came(made.error(), before);
    if (room_.is_full()) {
      report();
      std::this_thread::sleep_for(kLook);
      continue;
    }
    const auto came = take_next();
    if (!came) return what_came(came.error(), before);
    if (!*came) break;
  }
  return staging_.end() > before;
}

// A later run says what is in the way, if it still is.
base::Result<bool> ArchiveReader::what_came(const base::Error& error, base::Lsn before) const {
  if (error.code == base::ErrorCode::wal_archive_failed && staging_.end() > before) return true;
  return std::unexpected(error);
}

base::Result<bool> ArchiveReader::take_next() {
  const uint64_t offset = staging_.next().value % options_.identity.segment_bytes;
  const base::Lsn segment{staging_.next().value - offset};
  THALWEG_ASSIGN(auto archived, options_.archive->fetch(segment, options_.identity));
  if (!archived) return false;
  THALWEG_TRY(archived->seek(offset));
  std::vector<std::byte> bytes(kPortionBytes);
  while (true) {
    const auto count = archived->read_some(bytes);
    if (!count) return archive_failed(count.error().message);
    if (*count == 0) break;
    const auto appended = staging_.append(std::span{bytes}.first(*count));
    if (!appended) return refuse(segment, appended.error());
    report();
  }
  options_.on_durable(staging_.durable());  // a whole segment is synced
  return true;
}

// Its records are whole: what does not fit is its page that was staged before, or the record that began before it.
base::Result<bool> ArchiveReader::refuse(base::Lsn segment, const base::Error& error) {
  if (error.code != base::ErrorCode::protocol_violation && error.code != base::ErrorCode::source_diverged) {
    return std::unexpected(error);
  }
  THALWEG_ASSIGN(const bool is_mended, give_up_damaged(*options_.archive, staging_));
  // Of the segment itself, what is no whole record yet comes again with it.
  if (!is_mended) THALWEG_TRY(staging_.cut_back(std::max(staging_.whole(), segment)));
  report();
  if (is_mended) return true;
  return archive_failed(fmt::format("What the archive {} has in {} does not fit what is staged before it: {}",
                                    options_.archive->text(), options_.identity.name_of(segment), error.message));
}

void ArchiveReader::report() {
  options_.on_staged({.identity = options_.identity,
                      .begin = staging_.begin(),
                      .end = staging_.end(),
                      .whole = staging_.whole(),
                      .durable = staging_.durable(),
                      .bytes = staging_.bytes(),
                      .is_full = room_.is_full(),
                      .is_archived = true});
}

}  // namespace thalweg::shipment
