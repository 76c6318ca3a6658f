#include "lcr/frame.h"

#include <cassert>
#include <cstring>

#include "lcr/bytes.h"
#include "lcr/frame_check.h"

namespace thalweg::lcr {

static_assert(std::endian::native == std::endian::little,
              "header integers are little-endian in memory and on the wire");
static_assert(alignof(FrameHeader) == kFrameAlignment);

namespace {

std::span<const std::byte> body_of(const FrameView& frame) {
  return frame.bytes().subspan(kFrameHeaderBytes, frame.header().body_length);
}

size_t tuple_length(std::span<const std::byte> checked) {
  const auto length = check_tuple(checked);
  assert(length);
  return length ? *length : 0;
}

bool has_old(const FrameView& frame) { return frame.has(kOldKey) || frame.has(kOldRow); }

}  // namespace

base::Result<size_t> frame_length(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(uint32_t)) return base::fail(base::ErrorCode::corrupt_frame, "less than a frame's length");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length < kFrameHeaderBytes || length % kFrameAlignment != 0 || length > kFrameLengthMax) {
    return base::fail(base::ErrorCode::corrupt_frame, "no frame is " + std::to_string(length) + " bytes long");
  }
  return length;
}

base::Result<FrameView> FrameView::decode(std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kFrameAlignment != 0) {
    return base::fail(base::ErrorCode::corrupt_frame, "a frame in memory that is not aligned to 8 bytes");
  }
  THALWEG_ASSIGN(const size_t length, frame_length(bytes));
  if (length > bytes.size()) {
    return base::fail(base::ErrorCode::corrupt_frame, "a frame of " + std::to_string(length) +
                                                          " bytes is cut off after " + std::to_string(bytes.size()));
  }
  const auto frame = bytes.first(length);
  FrameView view;
  view.bytes_ = frame.data();
  if (view.header().version != kFrameVersion) {
    return base::fail(base::ErrorCode::corrupt_frame,
                      "frame version " + std::to_string(view.header().version) + " is not known here");
  }
  if (view.header().checksum != frame_checksum(frame)) {
    return base::fail(base::ErrorCode::corrupt_frame, "the checksum does not match the bytes");
  }
  THALWEG_TRY(check_content(frame));
  return view;
}

FrameView FrameView::trusted(const std::byte* bytes) {
  FrameView view;
  view.bytes_ = bytes;
  assert(reinterpret_cast<uintptr_t>(bytes) % kFrameAlignment == 0);
  assert(view.header().version == kFrameVersion);
  assert(check_content(view.bytes()));
  return view;
}

const FrameHeader& FrameView::header() const { return *reinterpret_cast<const FrameHeader*>(bytes_); }

TupleView FrameView::old_tuple() const {
  if (!has_old(*this)) return {};
  const auto body = body_of(*this);
  // A delete's body is its old tuple; an update's has the new one behind it.
  return TupleView(kind() == FrameKind::remove ? body : body.first(tuple_length(body)));
}

TupleView FrameView::new_tuple() const {
  if (kind() != FrameKind::insert && kind() != FrameKind::update) return {};
  const auto body = body_of(*this);
  return TupleView(has_old(*this) ? body.subspan(tuple_length(body)) : body);
}

TransactionMark FrameView::transaction_mark() const {
  assert(kind() == FrameKind::begin || kind() == FrameKind::commit);
  ByteReader reader(body_of(*this));
  TransactionMark mark{};
  mark.commit_lsn = {reader.integer<uint64_t>()};
  mark.end_lsn = {reader.integer<uint64_t>()};
  mark.commit_time = {reader.integer<int64_t>()};
  return mark;
}

std::vector<base::RelationId> FrameView::truncated_relations() const {
  assert(kind() == FrameKind::truncate);
  ByteReader reader(body_of(*this));
  std::vector<base::RelationId> relations(reader.integer<uint32_t>());
  for (auto& relation : relations) relation = {reader.integer<uint32_t>()};
  return relations;
}

base::Result<TableDescription> FrameView::table() const {
  assert(kind() == FrameKind::table);
  return parse_table(header(), body_of(*this));
}

base::UnixMicros FrameView::server_time() const {
  assert(kind() == FrameKind::progress);
  return {load_network<int64_t>(body_of(*this).data())};
}

std::string_view FrameView::origin() const {
  assert(kind() == FrameKind::origin);
  const auto body = body_of(*this);
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

base::Result<PartitionMark> FrameView::partition() const {
  assert(kind() == FrameKind::partition);
  return parse_partition(body_of(*this));
}

}  // namespace thalweg::lcr
