#include "spill/spill_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "lcr/frame.h"
#include "spill/segment_format.h"

namespace thalweg::spill {

using base::ErrorCode;
using base::Result;

namespace {

std::string file_safe(std::string_view label) {
  std::string out(label.substr(0, 64));
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  }
  return out;
}

base::Error naming(base::Error error, const std::filesystem::path& path) {
  error.message += " (" + path.string() + ")";
  return error;
}

uint64_t count_frames(std::span<const std::byte> run) {
  uint64_t frames = 0;
  while (!run.empty()) {
    run = run.subspan(lcr::FrameView::trusted(run.data()).header().length);
    ++frames;
  }
  return frames;
}

}  // namespace

SpillLog::SpillLog(SpillSpace& space, std::string_view label, uint64_t segment_bytes)
    : space_(space),
      id_(space.log_begun()),
      name_(fmt::format("{}{}-{}", SpillSpace::file_prefix(), file_safe(label), id_)),
      segment_bytes_(segment_bytes) {}

SpillLog::~SpillLog() {
  for (const Segment& segment : segments_) remove(segment);
  space_.log_gone();
}

std::filesystem::path SpillLog::path_of(uint32_t number) const {
  return space_.directory() / fmt::format("{}.{:06}", name_, number);
}

const SpillLog::Segment* SpillLog::find(uint32_t number) const {
  if (segments_.empty() || number < segments_.front().number) return nullptr;
  const size_t at = number - segments_.front().number;
  return at < segments_.size() ? &segments_[at] : nullptr;
}

void SpillLog::remove(const Segment& segment) {
  const auto path = path_of(segment.number);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    base::log_error("spill_not_removed", base::file_error(errno, "remove " + path.string()));
  }
  space_.give(segment.bytes);
  space_.segment_gone(segment.begun);
  disk_bytes_ -= segment.bytes;
}

void SpillLog::drop_before(uint32_t number) {
  while (!segments_.empty() && segments_.front().number < number) {
    remove(segments_.front());
    segments_.pop_front();
  }
}

Result<void> SpillLog::append(std::span<const std::byte> frame) {
  assert(frame.size() >= lcr::kFrameHeaderBytes && frame.size() % lcr::kFrameAlignment == 0);
  if (buffer_.size() + frame.size() > kBlockRawBytesMax) THALWEG_TRY(write_blocks(buffer_, buffered_frames_));
  if (frame.size() > kBlockRawBytesMax) {
    THALWEG_TRY(write_blocks(frame, 1));
  } else {
    if (buffer_.capacity() == 0) buffer_.reserve(kBlockRawBytesMax);
    buffer_.insert(buffer_.end(), frame.begin(), frame.end());
    ++buffered_frames_;
  }
  bytes_ += frame.size();
  ++frames_;
  return {};
}

Result<void> SpillLog::flush() {
  THALWEG_TRY(write_blocks(buffer_, buffered_frames_));
  buffer_ = {};
  packed_ = {};
  return {};
}

std::vector<std::byte> SpillLog::take_buffered() {
  buffered_frames_ = 0;
  return std::exchange(buffer_, {});
}

Result<void> SpillLog::finish() {
  THALWEG_TRY(flush());
  if (!segments_.empty() && !segments_.back().ended) THALWEG_TRY(write_end(segments_.back()));
  return {};
}

// Leaves a segment at the end of the log that takes more blocks.
Result<void> SpillLog::make_room() {
  if (!segments_.empty() && !segments_.back().ended) {
    if (segments_.back().bytes > 0 && segments_.back().bytes < segment_bytes_) return {};
    if (segments_.back().bytes > 0) THALWEG_TRY(write_end(segments_.back()));
  }
  if (segments_.empty() || segments_.back().ended) {
    segments_.push_back({.number = next_number_++, .begun = space_.segment_begun()});
  }
  return {};
}

// `raw`: what is buffered, or one frame that is larger than a block. All of it is written, or nothing of it.
Result<void> SpillLog::write_blocks(std::span<const std::byte> raw, uint64_t frames) {
  if (raw.empty()) return {};
  const bool is_buffer = raw.data() == buffer_.data();
  THALWEG_TRY(make_room());
  Segment& segment = segments_.back();
  const SegmentId id{.log = id_, .number = segment.number};
  const uint64_t bytes_before = segment.bytes;
  const uint32_t blocks_before = segment.blocks;
  while (!raw.empty()) {
    const size_t piece = std::min(raw.size(), kBlockRawBytesMax);
    packed_.clear();
    if (segment.bytes == 0) append_segment_header(id, packed_);
    append_block(id, segment.blocks, raw.first(piece), packed_);
    if (auto written = write(segment, packed_); !written) {
      take_back(segment, bytes_before, blocks_before);
      return written;
    }
    ++segment.blocks;
    raw = raw.subspan(piece);
  }
  segment.frames += frames;
  if (is_buffer) {
    buffer_.clear();
    buffered_frames_ = 0;
  }
  return {};
}

Result<void> SpillLog::write_end(Segment& segment) {
  packed_.clear();
  append_end_block({.log = id_, .number = segment.number}, segment.blocks, packed_);
  if (auto written = write(segment, packed_); !written) {
    take_back(segment, segment.bytes, segment.blocks);
    return written;
  }
  segment.ended = true;
  return {};
}

// Opens the file for each block: a log that waits for its transaction's next change holds no descriptor.
Result<void> SpillLog::write(Segment& segment, std::span<const std::byte> bytes) {
  const auto path = path_of(segment.number);
  THALWEG_TRY(space_.take(bytes.size()));
  const auto written = [&]() -> Result<void> {
    THALWEG_ASSIGN(base::File file, base::File::open(path, O_WRONLY | O_CREAT | O_NOFOLLOW));
    if (::lseek(file.descriptor(), static_cast<off_t>(segment.bytes), SEEK_SET) < 0) {
      return std::unexpected(base::file_error(errno, "seek"));
    }
    return file.write_all(bytes);
  }();
  if (!written) {
    space_.give(bytes.size());
    return std::unexpected(naming(written.error(), path));
  }
  segment.bytes += bytes.size();
  disk_bytes_ += bytes.size();
  return {};
}

// Takes back a failed write: what is behind `bytes` was never there.
void SpillLog::take_back(Segment& segment, uint64_t bytes, uint32_t blocks) {
  // Should the file not shrink, the next write begins at the same place all the same.
  static_cast<void>(::truncate(path_of(segment.number).c_str(), static_cast<off_t>(bytes)));
  space_.give(segment.bytes - bytes);
  disk_bytes_ -= segment.bytes - bytes;
  segment.bytes = bytes;
  segment.blocks = blocks;
}

LogReader SpillLog::read() const { return {*this, first_segment()}; }

Result<std::span<const std::byte>> LogReader::next_run() {
  while (true) {
    const SpillLog::Segment* const segment = log_->find(number_);
    if (segment == nullptr || segment->blocks == 0) {
      segment_.reset();
      return std::span<const std::byte>();
    }
    if (!segment_) {
      const SegmentId id{.log = log_->id_, .number = number_};
      THALWEG_ASSIGN(base::File file, base::File::open(log_->path_of(number_), O_RDONLY | O_NOFOLLOW));
      THALWEG_ASSIGN(segment_, SegmentReader::open(std::move(file), &id));
      segment_frames_ = 0;
    }
    if (segment_->blocks() == segment->blocks && !segment->ended) return std::span<const std::byte>();
    THALWEG_ASSIGN(const std::span<const std::byte> run, segment_->next_run());
    if (!run.empty()) {
      const uint64_t frames = count_frames(run);
      segment_frames_ += frames;
      frames_ += frames;
      return run;
    }
    if (segment_frames_ != segment->frames) {
      return base::fail(
          ErrorCode::corrupt_frame,
          fmt::format("{} has {} frames, not {}", log_->path_of(number_).string(), segment_frames_, segment->frames));
    }
    segment_.reset();
    ++number_;
  }
}

}  // namespace thalweg::spill
