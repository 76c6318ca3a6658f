#include "shipment/archive_reader.h"

#include <thread>
#include <vector>

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
    THALWEG_TRY(room_.make());
    if (room_.is_full()) {
      report();
      std::this_thread::sleep_for(kLook);
      continue;
    }
    THALWEG_ASSIGN(const bool came, take_next());
    if (!came) break;
  }
  return staging_.end() > before;
}

base::Result<bool> ArchiveReader::take_next() {
  const uint64_t offset = staging_.next().value % options_.identity.segment_bytes;
  THALWEG_ASSIGN(auto archived, options_.archive->fetch({staging_.next().value - offset}, options_.identity));
  if (!archived) return false;
  THALWEG_TRY(archived->seek(offset));
  std::vector<std::byte> bytes(kPortionBytes);
  while (true) {
    THALWEG_ASSIGN(const size_t count, archived->read_some(bytes));
    if (count == 0) break;
    THALWEG_TRY(staging_.append(std::span{bytes}.first(count)));
    report();
  }
  options_.on_durable(staging_.durable());  // a whole segment is synced
  return true;
}

void ArchiveReader::report() {
  options_.on_staged({.identity = options_.identity,
                      .begin = staging_.begin(),
                      .end = staging_.end(),
                      .durable = staging_.durable(),
                      .bytes = staging_.bytes(),
                      .is_full = room_.is_full(),
                      .is_archived = true});
}

}  // namespace thalweg::shipment
