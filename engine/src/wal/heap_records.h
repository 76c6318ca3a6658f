#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "wal/heap_page.h"
#include "wal/record_parts.h"
#include "wal/wal_record.h"

// Records of the two heap resource managers that change rows (src/include/access/heapam_xlog.h; the redo functions of
// src/backend/access/heap/heapam.c, from 18 on heapam_xlog.c).

namespace thalweg::wal {

enum class HeapOperation : uint8_t {
  none,  // changes no row: locks, pruning, freezing
  insert,
  multi_insert,
  update,
  remove,
  confirm,   // a speculative insert of the transaction holds
  truncate,  // of whole tables
  in_place,  // a catalog's row is overwritten, in no transaction
};

// A row's new version. Without data the record has the page's image instead, and the version is on it.
struct NewTuple {
  uint16_t offset = 0;
  bool has_data = false;
  HeapTuple tuple;
  // Of an update: how many of the values' bytes, from the begin and up to the end, are the old version's.
  uint16_t prefix_bytes = 0;
  uint16_t suffix_bytes = 0;
};

// A record's effect on rows. Points into the record's body.
struct HeapChange {
  HeapOperation operation = HeapOperation::none;
  const BlockReference* new_page = nullptr;  // of the new versions; of an in-place change
  const BlockReference* old_page = nullptr;  // of the version that is removed or superseded
  uint16_t old_offset = 0;
  std::span<const NewTuple> tuples = {};  // of an in-place change: the values only
  // Additions of the source for logical decoding (wal_level = logical); catalogs and copies of tables have none.
  bool has_new_rows = false;                // each of the tuples is a row that somebody wrote
  std::optional<HeapTuple> old_tuple = {};  // the values that identify the old version, or all of it
  bool old_is_whole = false;
  // Of an insert: it may be taken back, by a removal that says so, until it is confirmed (ON CONFLICT).
  bool is_speculative = false;
  // Of a multi-insert: it is the last one of its command, so all chunks of values have been used.
  bool is_last = false;
  uint32_t database = 0;                      // of a truncate
  std::span<const std::byte> relations = {};  // of a truncate: oids of four bytes each
  bool truncates_cascading = false;
  bool truncates_sequences = false;
};

// Owner: whoever parses; made once and used for one record after another.
class HeapRecords {
 public:
  // A protocol_violation: the parts do not fit together. `parts` are the record's, and outlive the change.
  base::Result<HeapChange> parse(const WalRecord& record, const RecordParts& parts);

 private:
  base::Result<HeapChange> parse_insert(const WalRecord& record, const RecordParts& parts);
  base::Result<HeapChange> parse_multi_insert(const WalRecord& record, const RecordParts& parts);
  base::Result<HeapChange> parse_update(const WalRecord& record, const RecordParts& parts);
  static base::Result<HeapChange> parse_truncate(const WalRecord& record, const RecordParts& parts);
  static base::Result<void> take_old(const WalRecord& record, std::span<const std::byte> bytes, HeapChange& change);
  std::vector<NewTuple> tuples_;
};

}  // namespace thalweg::wal
