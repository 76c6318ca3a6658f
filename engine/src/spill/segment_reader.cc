#include "spill/segment_reader.h"

#include <array>
#include <utility>

#include "lcr/frame.h"

namespace thalweg::spill {

using base::ErrorCode;
using base::Result;

namespace {

std::unexpected<base::Error> corrupt(const char* what) { return base::fail(ErrorCode::corrupt_frame, what); }

}  // namespace

Result<SegmentReader> SegmentReader::open(base::File file, const SegmentId* expected) {
  SegmentReader reader(std::move(file));
  std::array<std::byte, kSegmentHeaderBytes> header{};
  THALWEG_ASSIGN(const size_t got, reader.file_.read_some(header));
  THALWEG_ASSIGN(reader.id_, decode_segment_header(std::span(header).first(got)));
  reader.offset_ = got;
  if (expected != nullptr && !(reader.id_ == *expected)) return corrupt("a spill segment took another's place");
  return reader;
}

Result<bool> SegmentReader::append_block() {
  std::array<std::byte, kBlockHeaderBytes> bytes{};
  THALWEG_ASSIGN(const size_t got_header, file_.read_some(bytes));
  THALWEG_ASSIGN(const BlockHeader header, decode_block_header(std::span(bytes).first(got_header), number_));
  stored_.resize(header.stored_bytes);
  THALWEG_ASSIGN(const size_t got, file_.read_some(stored_));
  run_.resize((run_bytes_ + header.raw_bytes) / sizeof(uint64_t));
  THALWEG_TRY(decode_block(id_, header, std::span(stored_).first(got),
                           std::as_writable_bytes(std::span(run_)).subspan(run_bytes_)));
  offset_ += got_header + got;
  if (header.kind == BlockKind::end) {
    std::byte more{};
    THALWEG_ASSIGN(const size_t trailing, file_.read_some(std::span(&more, 1)));
    if (trailing != 0) return corrupt("bytes after a spill segment's end");
    ended_ = true;
    return false;
  }
  run_bytes_ += header.raw_bytes;
  ++number_;
  return true;
}

Result<void> SegmentReader::check_frames() const {
  auto left = std::as_bytes(std::span(run_)).first(run_bytes_);
  while (!left.empty()) {
    THALWEG_ASSIGN(const lcr::FrameView frame, lcr::FrameView::decode(left));
    left = left.subspan(frame.header().length);
  }
  return {};
}

Result<std::span<const std::byte>> SegmentReader::next_run() {
  const uint64_t begin = offset_;
  const uint32_t number = number_;
  auto run = read_run();
  if (!run && run.error().code == ErrorCode::file_error) {
    // A header that was read is behind the file's place now, and what would be read for it next is something else.
    THALWEG_TRY(file_.seek(begin));
    offset_ = begin;
    number_ = number;
  }
  return run;
}

Result<std::span<const std::byte>> SegmentReader::read_run() {
  run_bytes_ = 0;
  if (run_.size() > kBlockRawBytesMax / sizeof(uint64_t)) run_ = {};  // what a large frame took goes back
  if (ended_) return std::span<const std::byte>();
  THALWEG_ASSIGN(const bool more, append_block());
  if (!more) return std::span<const std::byte>();
  // A frame that is larger than a block begins one and goes on in the next ones. Memory is taken as they come.
  THALWEG_ASSIGN(const size_t length, lcr::frame_length(std::as_bytes(std::span(run_))));
  while (run_bytes_ < length) {
    if (length <= kBlockRawBytesMax) return corrupt("a frame goes over the end of its spill block");
    THALWEG_ASSIGN(const bool rest, append_block());
    if (!rest) return corrupt("a spill segment ends within a frame");
  }
  if (length > kBlockRawBytesMax && run_bytes_ != length) return corrupt("bytes after a large frame's last block");
  THALWEG_TRY(check_frames());
  return std::as_bytes(std::span(run_)).first(run_bytes_);
}

}  // namespace thalweg::spill
