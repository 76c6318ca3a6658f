#include "spill/durable_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "lcr/frame.h"
#include "spill/log_mark.h"
#include "spill/segment_format.h"

namespace thalweg::spill {

using base::ErrorCode;
using base::Result;

namespace {

std::unexpected<base::Error> file_failure(std::string_view action, const std::filesystem::path& path) {
  return std::unexpected(base::file_error(errno, fmt::format("{} {}", action, path.string())));
}

Result<void> write_at(base::File& file, uint64_t at, std::span<const std::byte> bytes,
                      const std::filesystem::path& path) {
  if (::lseek(file.descriptor(), static_cast<off_t>(at), SEEK_SET) < 0) return file_failure("seek in", path);
  auto written = file.write_all(bytes);
  if (!written) written.error().message += fmt::format(" ({})", path.string());
  return written;
}

// When the file was made; where its file system does not keep that, when it was last written to.
base::UnixMicros born(const struct statx& file) {
  const statx_timestamp& at = (file.stx_mask & STATX_BTIME) != 0 ? file.stx_btime : file.stx_mtime;
  return {at.tv_sec * 1'000'000 + at.tv_nsec / 1000};
}

Result<bool> has_segments(const std::filesystem::path& folder) {
  std::error_code error;
  bool found = false;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    found = found || entry->path().filename() != "mark";
  }
  if (error) return std::unexpected(base::file_error(error.value(), "list " + folder.string()));
  return found;
}

// None: the log was being begun, or removed, when the engine died; nothing was synced, or nobody needs it.
Result<std::optional<LogMark>> read_mark(const std::filesystem::path& folder) {
  const auto path = folder / "mark";
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return file_failure("find", path);
  }
  THALWEG_ASSIGN(base::File file, base::File::open(path, O_RDWR | O_NOFOLLOW));
  std::array<std::byte, 2 * kMarkStride> bytes{};
  THALWEG_ASSIGN(const size_t got, file.read_some(bytes));
  // The mark's writer may not have synced it, or its sync may have failed: a loss of power must not bring back an older
  // one. An fsync does not write pages that the kernel has given up, so the bytes are written once more.
  THALWEG_TRY(write_at(file, 0, std::span(bytes).first(got), path));
  THALWEG_TRY(file.sync());
  const auto mark = newest_mark(std::span(bytes).first(got));
  if (mark) return mark;
  // The first segment comes once the first mark was synced.
  THALWEG_ASSIGN(const bool begun, has_segments(folder));
  if (begun) return base::fail(ErrorCode::backlog_damaged, fmt::format("{} holds no mark.", path.string()));
  return std::nullopt;
}

Result<void> sync_folder(const std::filesystem::path& folder) {
  THALWEG_ASSIGN(base::File directory, base::File::open(folder, O_RDONLY | O_DIRECTORY));
  return directory.sync();
}

}  // namespace

void DurableLog::Count::add(const Count& other) {
  frames += other.frames;
  changes += other.changes;
}

void DurableLog::Count::subtract(const Count& other) {
  frames -= std::min(frames, other.frames);
  changes -= std::min(changes, other.changes);
}

void DurableLog::publish() {
  frames_left_.set(kept_.frames - std::min(kept_.frames, read_.frames));
  changes_left_.set(kept_.changes - std::min(kept_.changes, read_.changes));
}

DurableLog::Count DurableLog::count(std::span<const std::byte> run) {
  Count count;
  while (!run.empty()) {
    const lcr::FrameHeader& header = lcr::FrameView::trusted(run.data()).header();
    ++count.frames;
    if (lcr::is_change(header.kind)) ++count.changes;
    run = run.subspan(header.length);
  }
  return count;
}

DurableLog::DurableLog(SpillSpace& space, std::filesystem::path folder, uint64_t id, base::Lsn from)
    : space_(space), folder_(std::move(folder)), id_(id), from_(from), synced_(from) {}

DurableLog::~DurableLog() {
  for (const Segment& segment : segments_) {
    space_.give(segment.bytes);
    space_.segment_gone(segment.begun);
  }
}

Result<std::unique_ptr<DurableLog>> DurableLog::create(SpillSpace& space, std::filesystem::path folder, uint64_t id,
                                                       base::Lsn from) {
  if (::mkdir(folder.c_str(), 0700) != 0) return file_failure("create", folder);
  std::unique_ptr<DurableLog> log(new DurableLog(space, std::move(folder), id, from));
  if (auto begun = log->begin(); !begun) {
    std::error_code ignored;  // on top of a failure that is the answer: the next try finds the folder and says so
    std::filesystem::remove_all(log->folder_, ignored);
    return std::unexpected(begun.error());
  }
  return log;
}

Result<void> DurableLog::begin() {
  THALWEG_ASSIGN(mark_, base::File::open(folder_ / "mark", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW));
  if (::ftruncate(mark_.descriptor(), 2 * kMarkStride) != 0) return file_failure("make room in", folder_);
  THALWEG_TRY(write_mark(from_));
  THALWEG_TRY(sync_folder(folder_));
  return sync_folder(folder_.parent_path());
}

Result<std::unique_ptr<DurableLog>> DurableLog::open(SpillSpace& space, std::filesystem::path folder) {
  THALWEG_ASSIGN(const std::optional<LogMark> read, read_mark(folder));
  if (!read) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) return std::unexpected(base::file_error(error.value(), "remove " + folder.string()));
    return nullptr;
  }
  const LogMark& mark = *read;
  std::unique_ptr<DurableLog> log(new DurableLog(space, std::move(folder), mark.log, {mark.from}));
  log->synced_ = {mark.synced};
  log->kept_ = {.frames = mark.frames, .changes = mark.changes};
  log->publish();
  log->read_number_ = mark.first_segment;
  log->next_number_ = mark.end_segment;
  if (mark.end_segment > mark.first_segment) log->marked_last_ = mark.end_segment - 1;
  for (uint32_t number = mark.first_segment; number < mark.end_segment; ++number) {
    const bool is_last = number + 1 == mark.end_segment;
    const auto path = log->path_of(number);
    // Segments that had been passed went after the last mark.
    if (log->segments_.empty() && !is_last && !std::filesystem::exists(path)) {
      log->read_number_ = number + 1;
      continue;
    }
    struct statx found{};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
      if (errno != ENOENT) return file_failure("find", path);
      return base::fail(ErrorCode::backlog_damaged, fmt::format("{} is missing.", path.string()));
    }
    const uint64_t bytes = found.stx_size;
    if (is_last && bytes < mark.last_bytes) {
      return base::fail(ErrorCode::backlog_damaged,
                        fmt::format("{} has {} bytes of {}.", path.string(), bytes, mark.last_bytes));
    }
    if (is_last && ::truncate(path.c_str(), static_cast<off_t>(mark.last_bytes)) != 0) {
      return file_failure("cut", path);
    }
    Segment& segment =
        log->segments_.emplace_back(Segment{.number = number, .begun = space.segment_found(born(found))});
    segment.bytes = is_last ? mark.last_bytes : bytes;
    segment.blocks = is_last ? mark.last_blocks : UINT32_MAX;
    segment.ended = !is_last || mark.last_ended != 0;
    space.adopt(segment.bytes);
  }
  return log;
}

std::filesystem::path DurableLog::path_of(uint32_t number) const { return folder_ / fmt::format("{:08}", number); }

const DurableLog::Segment* DurableLog::find(uint32_t number) const {
  if (segments_.empty() || number < segments_.front().number) return nullptr;
  const size_t at = number - segments_.front().number;
  return at < segments_.size() ? &segments_[at] : nullptr;
}

Result<void> DurableLog::append(std::span<const std::byte> frame) {
  assert(frame.size() >= lcr::kFrameHeaderBytes && frame.size() % lcr::kFrameAlignment == 0);
  if (buffer_.size() + frame.size() > kBlockRawBytesMax) THALWEG_TRY(flush());
  // The buffer goes out above the limit if the reader comes to it (next_run), so it never holds more than a block then.
  if (buffer_.empty()) THALWEG_TRY(space_.check_limit());
  if (frame.size() > kBlockRawBytesMax) {
    THALWEG_TRY(begin_segment());
    Segment& segment = segments_.back();
    // All of its blocks, or none: a reader never sees a part.
    packed_.clear();
    uint32_t blocks = segment.blocks;
    const SegmentId id{.log = id_, .number = segment.number};
    if (segment.bytes == 0) append_segment_header(id, packed_);
    for (auto raw = frame; !raw.empty(); raw = raw.subspan(std::min(raw.size(), kBlockRawBytesMax))) {
      append_block(id, blocks++, raw.first(std::min(raw.size(), kBlockRawBytesMax)), packed_);
    }
    const auto written = write(segment, packed_);
    packed_ = {};
    THALWEG_TRY(std::move(written));
    segment.blocks = blocks;
    segment.count.add(count(frame));
  } else {
    if (buffer_.capacity() == 0) buffer_.reserve(kBlockRawBytesMax);
    buffer_.insert(buffer_.end(), frame.begin(), frame.end());
    buffered_.add(count(frame));
  }
  kept_.add(count(frame));
  publish();
  return {};
}

Result<void> DurableLog::flush(bool above_limit) {
  if (buffer_.empty()) return {};
  THALWEG_TRY(begin_segment());
  Segment& segment = segments_.back();
  const SegmentId id{.log = id_, .number = segment.number};
  packed_.clear();
  if (segment.bytes == 0) append_segment_header(id, packed_);
  append_block(id, segment.blocks, buffer_, packed_);
  THALWEG_TRY(write(segment, packed_, above_limit));
  ++segment.blocks;
  segment.count.add(std::exchange(buffered_, {}));
  buffer_.clear();
  return {};
}

// Leaves a segment at the end that takes more blocks.
Result<void> DurableLog::begin_segment() {
  if (is_open()) return {};
  THALWEG_ASSIGN(file_, base::File::open(path_of(next_number_), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  segments_.push_back({.number = next_number_++, .begun = space_.segment_begun()});
  folder_dirty_ = true;
  return {};
}

Result<void> DurableLog::end_segment() {
  THALWEG_TRY(flush());
  if (!is_open()) return {};
  Segment& segment = segments_.back();
  packed_.clear();
  append_end_block({.log = id_, .number = segment.number}, segment.blocks, packed_);
  THALWEG_TRY(write(segment, packed_));
  segment.ended = true;
  return keep(file_.sync());  // the next sync knows the next file only
}

Result<void> DurableLog::write(Segment& segment, std::span<const std::byte> bytes, bool above_limit) {
  THALWEG_TRY(space_.take(bytes.size(), above_limit));
  // Always at the same place: what an earlier failure left there is written over.
  if (auto written = write_at(file_, segment.bytes, bytes, path_of(segment.number)); !written) {
    space_.give(bytes.size());
    return written;
  }
  segment.bytes += bytes.size();
  dirty_ = true;
  return {};
}

Result<void> DurableLog::keep(Result<void> synced) {
  if (synced || sync_failure_) return synced;
  synced.error().message += fmt::format(" ({})", folder_.string());
  sync_failure_ = synced.error();
  return synced;
}

Result<void> DurableLog::sync(base::Lsn position) {
  if (sync_failure_) return std::unexpected(*sync_failure_);
  THALWEG_TRY(flush());
  if (!dirty_ && position == synced_) return {};
  if (file_.is_open()) THALWEG_TRY(keep(file_.sync()));
  if (folder_dirty_) THALWEG_TRY(keep(sync_folder(folder_)));
  folder_dirty_ = false;
  THALWEG_TRY(write_mark(position));
  dirty_ = false;
  synced_ = position;
  return {};
}

Result<void> DurableLog::write_mark(base::Lsn position) {
  LogMark mark{};
  mark.sequence = mark_sequence_ + 1;
  mark.log = id_;
  mark.from = from_.value;
  mark.synced = position.value;
  mark.frames = kept_.frames - buffered_.frames;
  mark.changes = kept_.changes - buffered_.changes;
  mark.first_segment = segments_.empty() ? next_number_ : segments_.front().number;
  mark.end_segment = next_number_;
  if (!segments_.empty()) {
    mark.last_bytes = segments_.back().bytes;
    mark.last_blocks = segments_.back().blocks;
    mark.last_ended = segments_.back().ended ? 1 : 0;
  }
  const std::optional<uint32_t> last =
      segments_.empty() ? std::nullopt : std::optional<uint32_t>(segments_.back().number);
  if (!marked_last_) marked_last_ = last;
  seal_mark(mark);
  // One that failed is written again to its own place: the other place has the mark that counts.
  THALWEG_TRY(write_at(mark_, (mark.sequence % 2) * kMarkStride, std::as_bytes(std::span(&mark, 1)), folder_ / "mark"));
  THALWEG_TRY(keep(mark_.sync()));
  mark_sequence_ = mark.sequence;
  marked_last_ = last;
  return {};
}

// Corrupt frames are lost changes, unless a sync had failed: then nothing was promised for them.
base::Error DurableLog::unreadable(base::Error error) const {
  if (error.code == ErrorCode::corrupt_frame) {
    error.code = sync_failure_ ? ErrorCode::file_error : ErrorCode::backlog_damaged;
  }
  error.message += fmt::format(" ({})", path_of(read_number_).string());
  return error;
}

Result<std::span<const std::byte>> DurableLog::next_run() {
  while (true) {
    const Segment* const segment = find(read_number_);
    if (segment == nullptr || (segment->blocks == 0 && !segment->ended)) {
      reader_.reset();
      if (buffer_.empty()) return std::span<const std::byte>();
      THALWEG_TRY(flush(true));
      continue;
    }
    if (!reader_) {
      const SegmentId id{.log = id_, .number = read_number_};
      THALWEG_ASSIGN(base::File file, base::File::open(path_of(read_number_), O_RDONLY | O_NOFOLLOW));
      auto reader = SegmentReader::open(std::move(file), &id);
      if (!reader) return std::unexpected(unreadable(std::move(reader).error()));
      reader_ = *std::move(reader);
    }
    if (!segment->ended && reader_->blocks() == segment->blocks) {
      if (buffer_.empty()) return std::span<const std::byte>();
      THALWEG_TRY(flush(true));
      continue;
    }
    const auto run = reader_->next_run();
    if (!run) return std::unexpected(unreadable(run.error()));
    if (!run->empty()) {
      read_.add(count(*run));
      publish();
      const auto left = repeated_tables_.leave_out(*run);
      if (left.empty()) continue;
      return left;
    }
    reader_.reset();
    ++read_number_;
    repeated_tables_.begin_segment();
  }
}

bool DurableLog::read_all() const { return buffer_.empty() && read_.frames >= kept_.frames; }

void DurableLog::rewind() {
  reader_.reset();
  repeated_tables_.rewind();
  read_number_ = segments_.empty() ? next_number_ : segments_.front().number;
  read_ = {};
  publish();
}

// On the disk before anything goes: whoever opens the log compares that with what its destination has, which may be an
// earlier state of it. Buffered data stays so, because a full disk must be able to get room by this.
Result<void> DurableLog::begin_later(base::Lsn from) {
  if (from <= from_) return {};
  if (sync_failure_) return std::unexpected(*sync_failure_);
  const base::Lsn before = std::exchange(from_, from);
  const auto marked = [&]() -> Result<void> {
    if (file_.is_open()) THALWEG_TRY(keep(file_.sync()));
    if (folder_dirty_) THALWEG_TRY(keep(sync_folder(folder_)));
    folder_dirty_ = false;
    return write_mark(synced_);
  };
  auto done = marked();
  if (!done) from_ = before;
  return done;
}

void DurableLog::drop_before(uint32_t number, base::Lsn needed_from) {
  number = std::min(number, read_number_);
  if (marked_last_) number = std::min(number, *marked_last_);
  std::vector<Segment> going;
  while (!segments_.empty() && segments_.front().number < number && segments_.front().ended) {
    going.push_back(std::move(segments_.front()));
    segments_.pop_front();
    kept_.subtract(going.back().count);
    read_.subtract(going.back().count);
  }
  if (going.empty()) return;
  if (auto begun = begin_later(needed_from); !begun) {
    base::log_error("spill_not_removed", begun.error(), {{"folder", folder_.string()}});
    for (; !going.empty(); going.pop_back()) {
      kept_.add(going.back().count);
      read_.add(going.back().count);
      segments_.push_front(std::move(going.back()));
    }
    return;
  }
  publish();
  for (const Segment& segment : going) remove(segment);
}

void DurableLog::remove(const Segment& segment) {
  const auto path = path_of(segment.number);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    base::log_error("spill_not_removed", base::file_error(errno, "remove " + path.string()));
  }
  space_.give(segment.bytes);
  space_.segment_gone(segment.begun);
}

void DurableLog::remove() {
  reader_.reset();
  // The mark first: a crash in between leaves a folder that counts as none.
  std::error_code error;
  std::filesystem::remove(folder_ / "mark", error);
  for (const Segment& segment : segments_) remove(segment);
  segments_.clear();
  std::filesystem::remove_all(folder_, error);
  if (error) base::log_error("spill_not_removed", base::file_error(error.value(), "remove " + folder_.string()));
}

}  // namespace thalweg::spill
