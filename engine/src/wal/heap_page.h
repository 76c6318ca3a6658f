#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/ids.h"
#include "wal/record_parts.h"

// Pages of a table's file as they lie in images: their tuples (PageHeaderData, ItemIdData:
// src/include/storage/{bufpage,itemid}.h; HeapTupleHeaderData: src/include/access/htup_details.h).

namespace thalweg::wal {

// Of a tuple's infomask.
inline constexpr uint16_t kHasNull = 0x0001;
inline constexpr uint16_t kXmaxLockOnly = 0x0080;
inline constexpr uint16_t kXminCommitted = 0x0100;
inline constexpr uint16_t kXminInvalid = 0x0200;
inline constexpr uint16_t kXminFrozen = kXminCommitted | kXminInvalid;
inline constexpr uint16_t kXmaxCommitted = 0x0400;
inline constexpr uint16_t kXmaxInvalid = 0x0800;
inline constexpr uint16_t kXmaxIsMulti = 0x1000;
// Of its infomask2: how many columns it has.
inline constexpr uint16_t kColumnsMask = 0x07FF;

inline constexpr size_t kTupleHeaderBytes = 23;  // SizeofHeapTupleHeader: what the WAL leaves out of a tuple

// A tuple of a table, with the part of its header that the WAL has. Points into a page or a record.
struct HeapTuple {
  uint16_t infomask2 = 0;
  uint16_t infomask = 0;
  uint8_t header_bytes = 0;         // up to the columns' values: header, bitmap of NULLs, padding
  std::span<const std::byte> data;  // from behind the fixed header on: bitmap, padding, values

  uint16_t columns() const { return infomask2 & kColumnsMask; }
  std::span<const std::byte> bitmap() const { return data.first(header_bytes - kTupleHeaderBytes); }
  std::span<const std::byte> values() const { return data.subspan(header_bytes - kTupleHeaderBytes); }
};

// A tuple of a page, with what its page has of those that inserted and deleted it.
struct PageTuple {
  HeapTuple tuple;
  base::Xid xmin;
  base::Xid xmax;  // may be of a lock, or a multixact
};

// Owner: whoever restores into it; made once and used for one image after another. 8 KiB.
class HeapPage {
 public:
  // Restores the image's page. A protocol_violation, for the record at `record`: it cannot be decompressed, or is no
  // page of a table.
  base::Result<void> restore(const BlockImage& image, base::Lsn record);

  // Offsets are from 1 to this; 0: the page is new and empty.
  uint16_t offsets() const { return offsets_; }
  // Null: the offset is unused, dead, or leads to another one. A protocol_violation: the tuple does not fit on the
  // page.
  base::Result<std::optional<PageTuple>> tuple(uint16_t offset) const;

 private:
  std::array<std::byte, kPageBytes> bytes_;
  uint16_t offsets_ = 0;
  base::Lsn record_;
};

// Whether the header and the data of a tuple fit together; to be asked before bitmap() and values().
bool is_whole(const HeapTuple& tuple);

// The first place from `at` on that is a multiple of what a type wants (attalign: c, s, i or d).
size_t aligned(size_t at, char align);

// The place at which the next value begins: aligned as its type wants it, but for a value that
// begins with a short length (att_align_pointer of src/include/access/tupmacs.h). `length`: attlen. `at`: the place
// behind the value before; the first `before` places are not in `bytes`.
size_t begin_of_value(std::span<const std::byte> bytes, size_t at, int16_t length, char align, size_t before = 0);

}  // namespace thalweg::wal
