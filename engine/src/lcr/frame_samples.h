#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lcr/frame.h"

// One frame of every kind with known contents, for tests: the golden files and the fuzzer's seeds hold these.

namespace thalweg::lcr {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A tuple's columns as (mark, value); the value counts for 'b' and 't' only.
using SampleColumns = std::vector<std::pair<char, std::string>>;

inline std::vector<std::byte> make_tuple_bytes(const SampleColumns& columns) {
  std::string out{static_cast<char>(columns.size() >> 8), static_cast<char>(columns.size() & 0xFF)};
  for (const auto& [mark, value] : columns) {
    out += mark;
    if (mark != 'b' && mark != 't') continue;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value.size() >> shift & 0xFF);
    out += value;
  }
  return bytes_of(out);
}

inline const SampleColumns kSampleNewRow{
    {'b', std::string("\x00\x00\x00\x2a", 4)}, {'t', "Größe"}, {'n', ""}, {'u', ""}, {'b', ""}};
inline const SampleColumns kSampleOldKey{
    {'b', std::string("\x00\x00\x00\x29", 4)}, {'n', ""}, {'n', ""}, {'n', ""}, {'n', ""}};

inline TableDescription sample_table() {
  return {.relation = {16'385},
          .version = 3,
          .schema_name = "public",
          .table_name = "Straße \"x\"",
          .replica_identity = 'd',
          .columns = {{.name = "id", .type = {23}, .type_modifier = -1, .is_key = true},
                      {.name = "label", .type = {1043}, .type_modifier = 84, .is_key = false}}};
}

inline TransactionMark sample_mark() {
  return {.commit_lsn = {0x16B374D848}, .end_lsn = {0x16B374D888}, .commit_time = {1'700'000'000'123'456}};
}

inline std::vector<std::byte> make_sample_row(FrameKind kind, uint16_t flags, uint32_t subxid,
                                              const SampleColumns* old_row, const SampleColumns* new_row) {
  const auto old_tuple = old_row != nullptr ? make_tuple_bytes(*old_row) : std::vector<std::byte>{};
  const auto new_tuple = new_row != nullptr ? make_tuple_bytes(*new_row) : std::vector<std::byte>{};
  const RowFrame row{.kind = kind,
                     .flags = flags,
                     .xid = {0xF0000001},
                     .subxid = {subxid},
                     .relation = {16'385},
                     .table_version = 3,
                     .lsn = {0x16B374D000},
                     .old_tuple = old_tuple,
                     .new_tuple = new_tuple};
  std::vector<std::byte> frame(row_frame_bytes(row));
  write_row_frame(row, frame);
  return frame;
}

// An insert of one binary value into relation 1, version 1.
inline std::vector<std::byte> make_insert_frame(base::Xid xid, base::Lsn lsn, const std::string& value) {
  const auto tuple = make_tuple_bytes({{'b', value}});
  const RowFrame row{.kind = FrameKind::insert,
                     .flags = 0,
                     .xid = xid,
                     .subxid = {},
                     .relation = {1},
                     .table_version = 1,
                     .lsn = lsn,
                     .old_tuple = {},
                     .new_tuple = tuple};
  std::vector<std::byte> frame(row_frame_bytes(row));
  write_row_frame(row, frame);
  return frame;
}

inline std::vector<std::pair<std::string, std::vector<std::byte>>> sample_frames() {
  const base::Xid xid{0xF0000001};
  const std::vector<base::RelationId> truncated{{16'385}, {16'400}};
  return {
      {"table", make_table_frame(sample_table())},
      {"begin", make_begin_frame(xid, sample_mark())},
      {"insert", make_sample_row(FrameKind::insert, 0, 0, nullptr, &kSampleNewRow)},
      {"insert_streamed", make_sample_row(FrameKind::insert, kStreamed, 0xF0000002, nullptr, &kSampleNewRow)},
      {"update", make_sample_row(FrameKind::update, 0, 0, nullptr, &kSampleNewRow)},
      {"update_old_key", make_sample_row(FrameKind::update, kOldKey, 0, &kSampleOldKey, &kSampleNewRow)},
      {"remove_old_row", make_sample_row(FrameKind::remove, kOldRow, 0, &kSampleNewRow, nullptr)},
      {"truncate", make_truncate_frame(xid, {}, {0x16B374D000}, kCascade | kRestartIdentity, truncated)},
      {"commit", make_commit_frame(xid, false, sample_mark())},
      {"commit_streamed", make_commit_frame(xid, true, sample_mark())},
      {"abort", make_abort_frame(xid, {0xF0000002}, {0x16B374D100})},
      {"progress", make_progress_frame({0x16B374D900}, {1'700'000'000'999'999})},
      {"origin", make_origin_frame(xid, sample_mark().commit_lsn, "größer")},
      {"partition", make_partition_frame(xid, {0xF0000002}, kStreamed, {0x16B374D000}, {16'385},
                                         {.partition = {16'401}, .schema_name = "public", .partition_name = "jän"})},
      {"partition_truncated",
       make_partition_frame(xid, {}, kPartitionTruncated, {0x16B374D000}, {16'385},
                            {.partition = {16'401}, .schema_name = "public", .partition_name = "jän"})},
  };
}

}  // namespace thalweg::lcr
