#include <cassert>
#include <cstring>

#include "lcr/bytes.h"
#include "lcr/frame.h"
#include "lcr/frame_check.h"

namespace thalweg::lcr {

namespace {

// Lays the header over `out`, zeroes the padding, and writes the checksum last, when the body is there.
void finish_frame(FrameHeader header, std::span<std::byte> out) {
  header.length = static_cast<uint32_t>(out.size());
  header.checksum = 0;
  header.version = kFrameVersion;
  const size_t used = kFrameHeaderBytes + header.body_length;
  assert(round_up_to_alignment(used) == out.size() && out.size() <= kFrameLengthMax);
  if (used < out.size()) std::memset(out.data() + used, 0, out.size() - used);
  std::memcpy(out.data(), &header, sizeof(header));
  const uint32_t checksum = frame_checksum(out);
  std::memcpy(out.data() + offsetof(FrameHeader, checksum), &checksum, sizeof(checksum));
  assert(check_content(out));
}

std::vector<std::byte> frame_for(FrameHeader& header, size_t body_bytes) {
  header.body_length = static_cast<uint32_t>(body_bytes);
  return std::vector<std::byte>(round_up_to_alignment(kFrameHeaderBytes + body_bytes));
}

ByteWriter body_writer(std::vector<std::byte>& frame) {
  return ByteWriter(std::span(frame).subspan(kFrameHeaderBytes));
}

std::vector<std::byte> make_mark_frame(FrameHeader header, const TransactionMark& mark) {
  header.lsn = mark.commit_lsn.value;
  auto frame = frame_for(header, kTransactionMarkBytes);
  auto body = body_writer(frame);
  body.integer(mark.commit_lsn.value);
  body.integer(header.kind == FrameKind::begin ? uint64_t{0} : mark.end_lsn.value);
  body.integer(mark.commit_time.value);
  finish_frame(header, frame);
  return frame;
}

void write_name(ByteWriter& body, const std::string& name) {
  assert(!name.empty() && name.size() <= UINT16_MAX);
  body.integer(static_cast<uint16_t>(name.size()));
  body.text(name);
}

size_t table_body_bytes(const TableDescription& table) {
  size_t bytes = 1 + 2 + table.schema_name.size() + 2 + table.table_name.size() + 2;
  for (const auto& column : table.columns) bytes += 2 + column.name.size() + 4 + 4 + 1;
  return bytes;
}

}  // namespace

void ByteWriter::bytes(std::span<const std::byte> from) {
  assert(from.size() <= rest_.size());
  if (!from.empty()) std::memcpy(rest_.data(), from.data(), from.size());
  rest_ = rest_.subspan(from.size());
}

RowFrame row_of(const FrameView& frame) {
  const FrameHeader& header = frame.header();
  return {.kind = frame.kind(),
          .flags = header.flags,
          .xid = frame.xid(),
          .subxid = frame.subxid(),
          .relation = frame.relation(),
          .table_version = header.table_version,
          .lsn = frame.lsn(),
          .old_tuple = frame.old_tuple().bytes(),
          .new_tuple = frame.new_tuple().bytes()};
}

size_t row_frame_bytes(const RowFrame& row) {
  return round_up_to_alignment(kFrameHeaderBytes + row.old_tuple.size() + row.new_tuple.size());
}

void write_row_frame(const RowFrame& row, std::span<std::byte> out) {
  assert(out.size() == row_frame_bytes(row));
  ByteWriter body(out.subspan(kFrameHeaderBytes));
  body.bytes(row.old_tuple);
  body.bytes(row.new_tuple);
  FrameHeader header{};
  header.kind = row.kind;
  header.flags = row.flags;
  header.xid = row.xid.value;
  header.subxid = row.subxid.value;
  header.relation = row.relation.value;
  header.table_version = row.table_version;
  header.body_length = static_cast<uint32_t>(row.old_tuple.size() + row.new_tuple.size());
  header.lsn = row.lsn.value;
  finish_frame(header, out);
}

std::vector<std::byte> make_table_frame(const TableDescription& table) {
  FrameHeader header{};
  header.kind = FrameKind::table;
  header.relation = table.relation.value;
  header.table_version = table.version;
  auto frame = frame_for(header, table_body_bytes(table));
  auto body = body_writer(frame);
  body.integer(static_cast<uint8_t>(table.replica_identity));
  write_name(body, table.schema_name);
  write_name(body, table.table_name);
  assert(table.columns.size() <= kTableColumnsMax);
  body.integer(static_cast<uint16_t>(table.columns.size()));
  for (const auto& column : table.columns) {
    write_name(body, column.name);
    body.integer(column.type.value);
    body.integer(column.type_modifier);
    body.integer(static_cast<uint8_t>(column.is_key ? 1 : 0));
  }
  finish_frame(header, frame);
  return frame;
}

std::vector<std::byte> make_begin_frame(base::Xid xid, const TransactionMark& mark) {
  FrameHeader header{};
  header.kind = FrameKind::begin;
  header.xid = xid.value;
  return make_mark_frame(header, mark);
}

std::vector<std::byte> make_commit_frame(base::Xid xid, bool streamed, const TransactionMark& mark) {
  FrameHeader header{};
  header.kind = FrameKind::commit;
  header.flags = streamed ? kStreamed : 0;
  header.xid = xid.value;
  return make_mark_frame(header, mark);
}

std::vector<std::byte> make_abort_frame(base::Xid xid, base::Xid subxid, base::Lsn lsn) {
  FrameHeader header{};
  header.kind = FrameKind::abort;
  header.flags = kStreamed;
  header.xid = xid.value;
  header.subxid = subxid.value;
  header.lsn = lsn.value;
  auto frame = frame_for(header, 0);
  finish_frame(header, frame);
  return frame;
}

std::vector<std::byte> make_truncate_frame(base::Xid xid, base::Xid subxid, base::Lsn lsn, uint16_t flags,
                                           std::span<const base::RelationId> relations) {
  FrameHeader header{};
  header.kind = FrameKind::truncate;
  header.flags = flags;
  header.xid = xid.value;
  header.subxid = subxid.value;
  header.lsn = lsn.value;
  auto frame = frame_for(header, sizeof(uint32_t) * (1 + relations.size()));
  auto body = body_writer(frame);
  body.integer(static_cast<uint32_t>(relations.size()));
  for (const auto relation : relations) body.integer(relation.value);
  finish_frame(header, frame);
  return frame;
}

std::vector<std::byte> make_progress_frame(base::Lsn lsn, base::UnixMicros server_time) {
  FrameHeader header{};
  header.kind = FrameKind::progress;
  header.lsn = lsn.value;
  auto frame = frame_for(header, kProgressBytes);
  body_writer(frame).integer(server_time.value);
  finish_frame(header, frame);
  return frame;
}

std::vector<std::byte> make_origin_frame(base::Xid xid, base::Lsn commit_lsn, std::string_view origin) {
  FrameHeader header{};
  header.kind = FrameKind::origin;
  header.xid = xid.value;
  header.lsn = commit_lsn.value;
  auto frame = frame_for(header, origin.size());
  body_writer(frame).text(origin);
  finish_frame(header, frame);
  return frame;
}

std::vector<std::byte> make_partition_frame(base::Xid xid, base::Xid subxid, uint16_t flags, base::Lsn lsn,
                                            base::RelationId table, const PartitionMark& partition) {
  FrameHeader header{};
  header.kind = FrameKind::partition;
  header.flags = flags;
  header.xid = xid.value;
  header.subxid = subxid.value;
  header.relation = table.value;
  header.lsn = lsn.value;
  auto frame = frame_for(header, 4 + 2 + partition.schema_name.size() + 2 + partition.partition_name.size());
  auto body = body_writer(frame);
  body.integer(partition.partition.value);
  write_name(body, partition.schema_name);
  write_name(body, partition.partition_name);
  finish_frame(header, frame);
  return frame;
}

}  // namespace thalweg::lcr
