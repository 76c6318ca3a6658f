#include "shipment/staging.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace thalweg::shipment {

namespace {

constexpr size_t kPortionBytes = size_t{1} << 20;

base::Result<void> sync_directory(const std::filesystem::path& directory) {
  THALWEG_ASSIGN(base::File opened, base::File::open(directory, O_RDONLY | O_DIRECTORY));
  return opened.sync();
}

base::Result<void> remove_file(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "remove " + path.string()));
  return {};
}

base::Result<void> too_short(base::Lsn lsn) {
  return base::fail(base::ErrorCode::file_error,
                    fmt::format("The staged WAL at {} is shorter than what was written.", to_string(lsn)),
                    base::ErrorSide::engine);
}

base::Lsn page_of(base::Lsn lsn) { return {lsn.value - lsn.value % wal::kPageBytes}; }

}  // namespace

base::Result<std::vector<SegmentName>> staged_segments(const std::filesystem::path& directory, uint32_t segment_bytes) {
  std::vector<SegmentName> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (const auto name = SegmentName::parse(entry->path().filename().string(), segment_bytes)) found.push_back(*name);
  }
  if (failed && failed != std::errc::no_such_file_or_directory) {
    return std::unexpected(base::file_error(failed.value(), "list " + directory.string()));
  }
  std::ranges::sort(found, {}, [](const SegmentName& name) { return std::pair(name.begin, name.timeline); });
  return found;
}

base::Result<Staging> Staging::open(const StagingOptions& options) {
  THALWEG_TRY(base::make_folders(options.directory));
  Staging staging(options);
  THALWEG_TRY(staging.find_segments());
  if (!staging.segments_.empty()) THALWEG_TRY(staging.find_end());
  return staging;
}

std::filesystem::path Staging::path_of(base::Lsn segment) const {
  return options_.directory / options_.identity.name_of(segment);
}

base::Lsn Staging::begin() const { return segments_.empty() ? base::Lsn{} : segments_.begin()->first; }

uint64_t Staging::bytes() const {
  uint64_t sum = 0;
  for (const auto& [segment, bytes] : segments_) sum += bytes;
  return sum;
}

base::Result<void> Staging::find_segments() {
  THALWEG_ASSIGN(const std::vector<SegmentName> found,
                 staged_segments(options_.directory, options_.identity.segment_bytes));
  // The newest first: a kill in between leaves no gap.
  for (const SegmentName& name : std::views::reverse(found)) {
    if (name.timeline != options_.identity.timeline_of(name.begin)) THALWEG_TRY(follow(name));
  }
  for (const SegmentName& name : found) {
    std::error_code missing;
    const uint64_t bytes = std::filesystem::file_size(path_of(name.begin), missing);
    if (!missing) segments_[name.begin] = bytes;
  }
  for (auto segment = segments_.begin(); segment != segments_.end() && std::next(segment) != segments_.end();
       ++segment) {
    const base::Lsn next{segment->first.value + options_.identity.segment_bytes};
    if (segment->second == options_.identity.segment_bytes && std::next(segment)->first == next) continue;
    return base::fail(
        base::ErrorCode::protocol_violation,
        fmt::format("The staged WAL has a gap: {} has {} bytes, and the next segment begins at {}.",
                    path_of(segment->first).string(), segment->second, to_string(std::next(segment)->first)));
  }
  return {};
}

// The source has left the segment's timeline: the part that it has had as well goes on under the next one's name, and
// what is beyond goes.
base::Result<void> Staging::follow(const SegmentName& name) {
  const WalIdentity& identity = options_.identity;
  const std::filesystem::path path = options_.directory / name.text(identity.segment_bytes);
  const auto end = identity.history.end_of(static_cast<int>(name.timeline));
  if (!end) {
    return base::fail(base::ErrorCode::source_diverged,
                      fmt::format("The source is on timeline {}, and has never been on timeline {}, of which WAL is "
                                  "staged.",
                                  identity.history.timeline(), name.timeline));
  }
  if (*end <= name.begin) {
    THALWEG_TRY(remove_file(path));
    return sync_directory(options_.directory);
  }
  std::error_code failed;
  const uint64_t shared = end->value - name.begin.value;
  if (std::filesystem::file_size(path, failed) > shared) std::filesystem::resize_file(path, shared, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "shorten " + path.string()));
  THALWEG_ASSIGN(base::File file, base::File::open(path, O_WRONLY));
  THALWEG_TRY(file.sync());
  std::filesystem::rename(path, path_of(name.begin), failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "rename " + path.string()));
  return sync_directory(options_.directory);
}

// A kill may have left a page or record half written, and a loss of power more than that. Going back stays in the
// newest segment: the source still has it, but may have forgotten the one before it.
base::Result<void> Staging::find_end() {
  const base::Lsn segment = segments_.rbegin()->first;
  THALWEG_ASSIGN(const std::string content, base::read_file(path_of(segment), options_.identity.segment_bytes));
  const auto reader = reader_from(segment);
  const auto bytes = std::as_bytes(std::span{content});
  reader->feed(bytes);
  base::Lsn whole = segment;
  bool is_damaged = false;
  while (true) {
    const auto record = reader->next();
    is_damaged = !record;
    if (!record || *record == nullptr) break;
    const bool is_whole = (*record)->end.value <= segment.value + bytes.size();
    whole = is_whole ? (*record)->end : (*record)->begin;  // a switch lasts to the segment's end, which may be missing
  }
  whole_ = whole;
  if (whole == segment) THALWEG_TRY(find_whole());
  if (!is_damaged && bytes.size() == options_.identity.segment_bytes) whole.value = segment.value + bytes.size();
  end_ = whole;
  THALWEG_TRY(shorten(segment));
  return compare_page();
}

// No record ends in the newest segment: it is all of one that began in an earlier segment.
base::Result<void> Staging::find_whole() {
  for (const base::Lsn segment : std::views::reverse(std::views::keys(segments_))) {
    if (segment == segments_.rbegin()->first) continue;
    THALWEG_ASSIGN(const std::string content, base::read_file(path_of(segment), options_.identity.segment_bytes));
    reader_ = reader_from(segment);
    reader_->feed(std::as_bytes(std::span{content}));
    const auto whole = read_records();
    reader_.reset();
    if (whole && *whole) {
      whole_ = *whole;
      return {};
    }
  }
  return {};
}

// The rest is durable afterwards: the earlier staging may have ended between a write and its sync.
base::Result<void> Staging::shorten(base::Lsn segment) {
  std::error_code failed;
  std::filesystem::resize_file(path_of(segment), end_.value - segment.value, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "shorten " + path_of(segment).string()));
  segments_[segment] = end_.value - segment.value;
  durable_ = segment;
  THALWEG_ASSIGN(file_, base::File::open(path_of(segment), O_WRONLY | O_APPEND));
  THALWEG_TRY(sync_directory(options_.directory));
  THALWEG_TRY(sync());
  if (end_.value % options_.identity.segment_bytes == 0 && end_ != segment) file_ = {};
  return {};
}

base::Result<void> Staging::open_segment() {
  const base::Lsn segment = segment_of(end_);
  THALWEG_ASSIGN(file_, base::File::open(path_of(segment), O_WRONLY | O_CREAT | O_APPEND));
  if (segments_.try_emplace(segment, 0).second) return sync_directory(options_.directory);
  return {};
}

void Staging::begin_at(base::Lsn segment) { end_ = durable_ = whole_ = segment; }

std::unique_ptr<wal::WalReader> Staging::reader_from(base::Lsn start) const {
  return std::make_unique<wal::WalReader>(
      wal::WalReaderOptions{.start = start,
                            .segment_bytes = options_.identity.segment_bytes,
                            .system_identifier = options_.identity.system_identifier,
                            .timeline_at = options_.identity.timeline_at()});
}

// A record that is not whole yet is checked with what follows: the reader gets its begin once more.
base::Result<void> Staging::restart_reader() {
  const base::Lsn from = std::min(next(), std::max(page_of(whole()), begin()));
  reader_ = reader_from(from);
  return read_again(from);
}

base::Result<void> Staging::read_again(base::Lsn from) {
  std::vector<std::byte> bytes(kPortionBytes);
  while (from < next()) {
    const base::Lsn segment = segment_of(from);
    const uint64_t in_segment = segment.value + options_.identity.segment_bytes - from.value;
    THALWEG_ASSIGN(base::File file, base::File::open(path_of(segment), O_RDONLY));
    THALWEG_TRY(file.seek(from.value - segment.value));
    const size_t wanted = std::min({uint64_t{kPortionBytes}, in_segment, next().value - from.value});
    THALWEG_ASSIGN(const size_t count, file.read_some(std::span{bytes}.first(wanted)));
    if (count == 0) return too_short(from);
    reader_->feed(std::span{bytes}.first(count));
    THALWEG_ASSIGN(const base::Lsn whole, read_records());
    whole_ = std::max(whole_, whole);
    from.value += count;
  }
  return {};
}

// The end of the last record in the bytes that were fed; none: no record ended there.
base::Result<base::Lsn> Staging::read_records() {
  base::Lsn end;
  while (true) {
    THALWEG_ASSIGN(const wal::WalRecord* const record, reader_->next());
    if (record == nullptr) return end;
    end = record->end;
  }
}

base::Result<void> Staging::compare_page() {
  again_.clear();
  const base::Lsn page = page_of(end_);
  if (page == end_) return {};
  THALWEG_ASSIGN(base::File file, base::File::open(path_of(segment_of(page)), O_RDONLY));
  THALWEG_TRY(file.seek(page.value - segment_of(page).value));
  again_.resize(end_.value - page.value);
  THALWEG_ASSIGN(const size_t count, file.read_some(again_));
  if (count == again_.size()) {
    // Behind a switch the rest of the segment is zero: no page begins there, and only the reader that has come so far
    // knows why.
    const bool has_page = std::ranges::any_of(again_, [](std::byte byte) { return byte != std::byte{0}; });
    if (has_page) {
      reader_.reset();
    } else {
      again_.clear();
    }
    return {};
  }
  return too_short(page);
}

base::Result<void> Staging::append(std::span<const std::byte> bytes) {
  if (!reader_) THALWEG_TRY(restart_reader());
  reader_->feed(bytes);
  const auto whole = read_records();
  base::Result<size_t> known = 0;
  if (whole) {
    known = compare(bytes);
  } else {
    known = std::unexpected(whole.error());
  }
  if (!known) {
    reader_.reset();  // the same bytes may come in another form
    return std::unexpected(known.error());
  }
  THALWEG_TRY(write(bytes.subspan(*known)));
  whole_ = std::max(whole_, *whole);
  return {};
}

// The newest first: a kill in between leaves no gap.
base::Result<void> Staging::cut_back(base::Lsn to) {
  const base::Lsn kept = segment_of(to);
  reader_.reset();
  if (!segments_.contains(kept)) return {};
  file_ = {};
  while (segments_.rbegin()->first > kept) {
    THALWEG_TRY(remove_file(path_of(segments_.rbegin()->first)));
    segments_.erase(std::prev(segments_.end()));
  }
  end_ = to;
  THALWEG_TRY(shorten(kept));
  return compare_page();
}

// How many of the bytes are there.
base::Result<size_t> Staging::compare(std::span<const std::byte> bytes) {
  const size_t known = std::min(again_.size(), bytes.size());
  const auto different = std::ranges::mismatch(bytes.first(known), std::span{again_}.first(known)).in1 - bytes.begin();
  if (static_cast<size_t>(different) != known) {
    const base::Lsn at{next().value + static_cast<uint64_t>(different)};
    return base::fail(base::ErrorCode::source_diverged,
                      fmt::format("The source's WAL at {} is not what it sent before.", to_string(at)));
  }
  again_.erase(again_.begin(), again_.begin() + static_cast<ptrdiff_t>(known));
  return known;
}

base::Result<void> Staging::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!file_.is_open()) THALWEG_TRY(open_segment());
    const base::Lsn segment = segment_of(end_);
    const auto part =
        bytes.first(std::min<uint64_t>(bytes.size(), segment.value + options_.identity.segment_bytes - end_.value));
    THALWEG_TRY(file_.write_all(part));
    end_.value += part.size();
    segments_[segment] += part.size();
    bytes = bytes.subspan(part.size());
    if (end_ == base::Lsn{segment.value + options_.identity.segment_bytes}) {
      THALWEG_TRY(sync());
      file_ = {};
    }
  }
  return {};
}

base::Result<void> Staging::sync() {
  if (!file_.is_open() || durable_ == end_) return {};
  const auto synced = file_.sync();
  if (!synced) {
    static_cast<void>(remove_file(path_of(segment_of(base::Lsn{end_.value - 1}))));  // the failure that counts is told
    return synced;
  }
  durable_ = end_;
  return {};
}

base::Result<void> Staging::drop_before(base::Lsn position) {
  const size_t before = segments_.size();
  while (!segments_.empty() && segments_.begin()->first.value + options_.identity.segment_bytes <= position.value) {
    THALWEG_TRY(remove_file(path_of(segments_.begin()->first)));
    segments_.erase(segments_.begin());
  }
  return segments_.size() == before ? base::Result<void>{} : sync_directory(options_.directory);
}

}  // namespace thalweg::shipment
