#include "lcr/frame_check.h"

#include <algorithm>
#include <optional>

#include "lcr/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thalweg::lcr {

namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

Result<void> corrupt(const char* what) { return fail(ErrorCode::corrupt_frame, what); }

// The flags that a kind may carry, or nothing for an unknown kind.
std::optional<uint16_t> allowed_flags(FrameKind kind) {
  switch (kind) {
    case FrameKind::table:
    case FrameKind::begin:
    case FrameKind::progress:
    case FrameKind::origin:
      return 0;
    case FrameKind::insert:
    case FrameKind::commit:
    case FrameKind::abort:
      return kStreamed;
    case FrameKind::partition:
      return kStreamed | kPartitionTruncated;
    case FrameKind::update:
    case FrameKind::remove:
      return kStreamed | kOldKey | kOldRow;
    case FrameKind::truncate:
      return kStreamed | kCascade | kRestartIdentity;
  }
  return std::nullopt;
}

bool names_one_table(FrameKind kind) {
  return kind == FrameKind::table || kind == FrameKind::insert || kind == FrameKind::update ||
         kind == FrameKind::remove || kind == FrameKind::partition;
}

Result<void> check_identifiers(const FrameHeader& header) {
  const bool outside = header.kind == FrameKind::table || header.kind == FrameKind::progress;
  if (outside != (header.xid == 0)) return corrupt("the xid does not fit the frame's kind");
  if (header.subxid != 0 && (header.flags & kStreamed) == 0) return corrupt("a subxid without the streamed flag");
  if (header.subxid != 0 && header.kind == FrameKind::commit) return corrupt("a commit has no subxid");
  if (header.kind == FrameKind::table && header.lsn != 0) return corrupt("a table has no WAL position");
  if (names_one_table(header.kind) != (header.relation != 0))
    return corrupt("the relation does not fit the frame's kind");
  const bool has_version = names_one_table(header.kind) && header.kind != FrameKind::partition;
  if (!has_version && header.table_version != 0) return corrupt("a table version without a row or a description");
  return {};
}

Result<void> check_row(const FrameHeader& header, std::span<const std::byte> body) {
  const bool old_key = (header.flags & kOldKey) != 0;
  const bool old_row = (header.flags & kOldRow) != 0;
  if (old_key && old_row) return corrupt("an old tuple is a key or a row, not both");
  if (header.kind == FrameKind::remove && !old_key && !old_row) return corrupt("a delete without an old tuple");
  const size_t tuples = (old_key || old_row ? 1U : 0U) + (header.kind == FrameKind::remove ? 0U : 1U);
  for (size_t i = 0; i < tuples; ++i) {
    THALWEG_ASSIGN(const size_t length, check_tuple(body));
    body = body.subspan(length);
  }
  if (!body.empty()) return corrupt("bytes after the last tuple");
  return {};
}

Result<void> check_mark(const FrameHeader& header, std::span<const std::byte> body) {
  if (body.size() != kTransactionMarkBytes) return corrupt("a transaction mark has 24 bytes");
  if (load_network<uint64_t>(body.data()) != header.lsn) return corrupt("the mark's commit LSN is not the header's");
  const bool begins = header.kind == FrameKind::begin;
  if (begins && load_network<uint64_t>(body.data() + 8) != 0) return corrupt("a begin has no end LSN");
  return {};
}

Result<void> check_truncate(std::span<const std::byte> body) {
  ByteReader reader(body);
  const auto count = reader.integer<uint32_t>();
  if (reader.failed() || count == 0 || reader.remaining() != size_t{count} * sizeof(uint32_t)) {
    return corrupt("a truncate's list of tables does not fit its count");
  }
  return {};
}

Result<void> check_body(const FrameHeader& header, std::span<const std::byte> body) {
  switch (header.kind) {
    case FrameKind::table:
      THALWEG_TRY(parse_table(header, body));
      return {};
    case FrameKind::insert:
    case FrameKind::update:
    case FrameKind::remove:
      return check_row(header, body);
    case FrameKind::begin:
    case FrameKind::commit:
      return check_mark(header, body);
    case FrameKind::truncate:
      return check_truncate(body);
    case FrameKind::abort:
      return body.empty() ? Result<void>{} : corrupt("an abort has no body");
    case FrameKind::progress:
      return body.size() == kProgressBytes ? Result<void>{} : corrupt("a progress has 8 bytes");
    case FrameKind::partition:
      THALWEG_TRY(parse_partition(body));
      return {};
    case FrameKind::origin:
      return std::ranges::find(body, std::byte{0}) == body.end() ? Result<void>{} : corrupt("an origin is a name");
  }
  return corrupt("unknown kind");
}

}  // namespace

uint32_t frame_checksum(std::span<const std::byte> frame) {
  constexpr size_t kFrom = 8;
  return static_cast<uint32_t>(XXH3_64bits(frame.data() + kFrom, frame.size() - kFrom));
}

Result<void> check_content(std::span<const std::byte> frame) {
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  const auto flags = allowed_flags(header.kind);
  if (!flags) return corrupt("unknown kind");
  if ((header.flags & ~*flags) != 0) return corrupt("flags that the kind does not have");
  if (header.kind == FrameKind::abort && (header.flags & kStreamed) == 0) return corrupt("an abort without streamed");
  THALWEG_TRY(check_identifiers(header));
  if (round_up_to_alignment(kFrameHeaderBytes + size_t{header.body_length}) != frame.size()) {
    return corrupt("body length and frame length do not fit");
  }
  const auto padding = frame.subspan(kFrameHeaderBytes + header.body_length);
  if (std::ranges::any_of(padding, [](std::byte b) { return b != std::byte{0}; }))
    return corrupt("padding is not zero");
  return check_body(header, frame.subspan(kFrameHeaderBytes, header.body_length));
}

}  // namespace thalweg::lcr
