#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

// Sets of commit LSNs: what has been committed above the low watermark (docs/decisions/apply-progress.md).

namespace thalweg::apply {

// Half open: first <= commit LSN < end.
struct LsnRange {
  base::Lsn first;
  base::Lsn end;
  bool operator==(const LsnRange&) const = default;
};

// Sorted, disjoint. Owner: one thread.
class LsnRanges {
 public:
  // Adds a range; touching and overlapping ones merge.
  void add(LsnRange range);
  bool contains(base::Lsn lsn) const;
  // Forgets what lies wholly below `lsn`.
  void prune(base::Lsn lsn);
  std::span<const LsnRange> list() const { return ranges_; }

  // 16 bytes a range, network byte order.
  std::vector<std::byte> encode() const;
  // From bytea's hex text form ("\x0102"). Fails with database_error on anything but encode()'s bytes.
  static base::Result<LsnRanges> decode_hex(std::string_view text);

 private:
  std::vector<LsnRange> ranges_;
};

// bytea's hex text form to bytes; empty when it is not one.
std::vector<std::byte> bytes_from_hex(std::string_view text);

}  // namespace thalweg::apply
