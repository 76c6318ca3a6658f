#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

// The LCR frame, version 1: the one encoding of changes in queues, sockets, spill files and the error queue.
// The format document is docs/formats/lcr-frame.md; golden files lie in engine/test/golden/frames/.
//
//   offset size  field            (header integers are little-endian)
//        0    4  length           whole frame, header included, a multiple of 8
//        4    4  checksum         low 32 bits of XXH3-64 over bytes [8, length)
//        8    1  version          1
//        9    1  kind             FrameKind
//       10    2  flags            FrameFlag bits
//       12    4  xid              top-level transaction, 0 in TABLE and PROGRESS outside a transaction
//       16    4  subxid           subtransaction of a streamed change, 0 where it is the top-level one
//       20    4  relation         pg_class.oid at the source, 0 where none; PARTITION: of the partitioned table
//       24    4  table_version    version of the TABLE frame that describes the row
//       28    4  body_length      bytes of body before padding
//       32    8  lsn              WAL position of the change; BEGIN, COMMIT: commit LSN; PROGRESS: WAL end; TABLE: 0
//       40    -  body, then zero bytes up to length
//
// Row bodies hold tuples in pgoutput's TupleData layout (network byte order), copied once from the socket:
//   u16 column count, then per column a mark byte: 'n' NULL, 'u' UNCHANGED (TOAST value that did not come),
//   'b' + u32 length + binary value, 't' + u32 length + text value.

namespace thalweg::lcr {

inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 40;
inline constexpr size_t kFrameAlignment = 8;
inline constexpr size_t kFrameLengthMax = size_t{1} << 31;  // a row of 1 GB fields is refused above this

enum class FrameKind : uint8_t {
  table = 1,  // describes a table version; precedes the first row that uses it
  begin = 2,  // a transaction that comes whole, at its commit
  insert = 3,
  update = 4,
  remove = 5,  // DELETE
  truncate = 6,
  commit = 7,    // ends begin, or (flag streamed) a transaction that came in pieces
  abort = 8,     // a streamed transaction (xid == subxid or subxid 0) or subtransaction was rolled back; has kStreamed
  progress = 9,  // no change: everything that commits before lsn has been enqueued
  // No change: rows of this partition come as its table's from here on, in the transaction that has it; or (flag
  // partition_truncated) it was truncated, which does not come
  partition = 10,
  origin = 11,  // no change: by which replication origin, or none, the transaction that has begun came to the source
};

// Counters of lcrs, in every component, count changes of rows and TRUNCATEs, but neither transaction marks nor TABLE or
// PROGRESS.
constexpr bool is_change(FrameKind kind) { return kind >= FrameKind::insert && kind <= FrameKind::truncate; }

enum FrameFlag : uint16_t {
  kStreamed = 1 << 0,         // the transaction came in pieces before its commit
  kOldKey = 1 << 1,           // the old tuple holds the replica identity's columns only
  kOldRow = 1 << 2,           // the old tuple is whole (REPLICA IDENTITY FULL)
  kCascade = 1 << 3,          // TRUNCATE ... CASCADE
  kRestartIdentity = 1 << 4,  // TRUNCATE ... RESTART IDENTITY
  kPartitionTruncated = 1 << 5,
};

struct FrameHeader {
  uint32_t length;
  uint32_t checksum;
  uint8_t version;
  FrameKind kind;
  uint16_t flags;
  uint32_t xid;
  uint32_t subxid;
  uint32_t relation;
  uint32_t table_version;
  uint32_t body_length;
  uint64_t lsn;
};
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

// Of a frame that is trusted, without a look at anything else of it.
inline FrameKind kind_of(const std::byte* frame) { return static_cast<FrameKind>(frame[offsetof(FrameHeader, kind)]); }

enum class ValueMark : uint8_t { null = 'n', unchanged = 'u', binary = 'b', text = 't' };

// A column value; bytes point into the frame.
struct Value {
  ValueMark mark = ValueMark::null;
  std::span<const std::byte> bytes;
};

// Walks one tuple. Immutable view over bytes that outlive it; the tuple was checked when the frame was.
class TupleView {
 public:
  TupleView() = default;
  explicit TupleView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool exists() const { return !bytes_.empty(); }
  uint16_t column_count() const;
  // Fills `out` (cleared first) with all columns in order.
  void read(std::vector<Value>& out) const;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

struct ColumnDescription {
  std::string name;
  base::TypeId type;      // at the source
  int32_t type_modifier;  // atttypmod
  bool is_key;            // part of the replica identity
};

struct TableDescription {
  base::RelationId relation;
  uint32_t version;
  std::string schema_name;
  std::string table_name;
  char replica_identity;  // pg_class.relreplident: d, n, f, i
  std::vector<ColumnDescription> columns;
};

// A partition whose rows come as those of the table above it.
struct PartitionMark {
  base::RelationId partition;  // pg_class.oid
  std::string schema_name;     // of the partition, in the transaction that wrote to it
  std::string partition_name;
};

struct TransactionMark {
  base::Lsn commit_lsn;
  base::Lsn end_lsn;  // first byte after the commit record; zero in BEGIN
  base::UnixMicros commit_time;
};

// A checked frame. Immutable view over bytes that outlive it.
class FrameView {
 public:
  // Fails with corrupt_frame unless `bytes` starts with one whole, valid frame. Bytes after it are ignored. `bytes`
  // must be aligned to kFrameAlignment, else corrupt_frame as well: header() hands out a reference.
  static base::Result<FrameView> decode(std::span<const std::byte> bytes);
  // For bytes that this process wrote and kept in memory: no checksum, structure asserted in debug builds.
  static FrameView trusted(const std::byte* bytes);

  const FrameHeader& header() const;
  FrameKind kind() const { return header().kind; }
  bool has(FrameFlag flag) const { return (header().flags & flag) != 0; }
  base::Xid xid() const { return {header().xid}; }
  base::Xid subxid() const { return {header().subxid}; }
  base::RelationId relation() const { return {header().relation}; }
  base::Lsn lsn() const { return {header().lsn}; }
  std::span<const std::byte> bytes() const { return {bytes_, header().length}; }

  TupleView old_tuple() const;                                // update, remove
  TupleView new_tuple() const;                                // insert, update
  TransactionMark transaction_mark() const;                   // begin, commit
  std::vector<base::RelationId> truncated_relations() const;  // truncate
  base::Result<TableDescription> table() const;               // table
  base::UnixMicros server_time() const;                       // progress
  base::Result<PartitionMark> partition() const;              // partition
  std::string_view origin() const;                            // origin; empty: by none

 private:
  const std::byte* bytes_ = nullptr;
};

// The bytes of a trusted frame, for who outlives it; none of none.
inline std::vector<std::byte> copy_of(const std::byte* frame) {
  if (frame == nullptr) return {};
  const auto bytes = FrameView::trusted(frame).bytes();
  return {bytes.begin(), bytes.end()};
}

// Writers. Each fills `out` (whose size is exactly the *_frame_bytes of the same arguments), checksum last.
struct RowFrame {
  FrameKind kind;  // insert, update, remove
  uint16_t flags;
  base::Xid xid;
  base::Xid subxid;
  base::RelationId relation;
  uint32_t table_version;
  base::Lsn lsn;
  std::span<const std::byte> old_tuple;  // TupleData bytes, validated by the caller with check_tuple
  std::span<const std::byte> new_tuple;
};
// Of the frame of a row; the tuples point into it.
RowFrame row_of(const FrameView& frame);
size_t row_frame_bytes(const RowFrame& row);
void write_row_frame(const RowFrame& row, std::span<std::byte> out);

std::vector<std::byte> make_table_frame(const TableDescription& table);
std::vector<std::byte> make_begin_frame(base::Xid xid, const TransactionMark& mark);
std::vector<std::byte> make_commit_frame(base::Xid xid, bool streamed, const TransactionMark& mark);
std::vector<std::byte> make_abort_frame(base::Xid xid, base::Xid subxid, base::Lsn lsn);
std::vector<std::byte> make_truncate_frame(base::Xid xid, base::Xid subxid, base::Lsn lsn, uint16_t flags,
                                           std::span<const base::RelationId> relations);
std::vector<std::byte> make_progress_frame(base::Lsn lsn, base::UnixMicros server_time);
std::vector<std::byte> make_origin_frame(base::Xid xid, base::Lsn commit_lsn, std::string_view origin);
// `subxid`: zero where the transaction is not streamed.
// `flags`: kStreamed, kPartitionTruncated.
std::vector<std::byte> make_partition_frame(base::Xid xid, base::Xid subxid, uint16_t flags, base::Lsn lsn,
                                            base::RelationId table, const PartitionMark& partition);

// The length of the frame that starts `bytes`, from its first four bytes alone, or corrupt_frame when no frame has that
// length. For readers that cut frames out of a file or a socket; needs 4 bytes, no alignment.
base::Result<size_t> frame_length(std::span<const std::byte> bytes);

// The length of the tuple that starts `bytes`, or corrupt_frame. Never reads past `bytes`.
base::Result<size_t> check_tuple(std::span<const std::byte> bytes);
// Makes the tuple from which TupleView reads `values`.
std::vector<std::byte> make_tuple(std::span<const Value> values);
// The same into memory that is used again.
void write_tuple(std::span<const Value> values, std::vector<std::byte>& out);

}  // namespace thalweg::lcr
