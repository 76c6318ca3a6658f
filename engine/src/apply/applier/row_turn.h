#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "apply/transaction.h"
#include "lcr/frame.h"
#include "metadata/table_metadata.h"

// Decides which rows of a group may be written while groups that it depends on are still being executed (Wong et al.
// 2009, section V: dependent transactions wait; here it is their rows that wait). docs/decisions/groups-beside.md says
// why that is safe.

namespace thalweg::apply {

enum class Turn : uint8_t {
  now,    // nobody else has to do with the row
  later,  // an uncommitted group writes it: the row waits until that group has committed
  after,  // unknown: this row, and every later one, waits until the groups before have committed
};

// Owner: one applier. One group at a time: begin(), then its frames in their order.
class RowTurns {
 public:
  // `contested`: Group::contested.
  void begin(std::span<const uint64_t> contested);
  // A row of the table, in the destination's current shape.
  Turn of(const Transaction& transaction, const metadata::TableMetadata& table, const lcr::FrameView& frame);

 private:
  void go_on_to(const Transaction& transaction);
  // The row was hashed when it came: what the table is now may not be what it was then.
  bool was_hashed(const Transaction& transaction, uint64_t hash);

  std::unordered_set<uint64_t> contested_;
  const Transaction* transaction_ = nullptr;
  bool shares_ = false;  // it writes contested keys
  size_t next_ = 0;      // in its writes, which stand in the order of its rows
  std::vector<lcr::Value> old_, new_;
};

}  // namespace thalweg::apply
