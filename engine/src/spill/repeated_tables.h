#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace thalweg::spill {

// Each segment of a backlog begins with the descriptions of the tables that came before it (docs/formats/spill.md), for
// a reader that begins there. A reader that comes from the segment before has had them. This leaves them out, since a
// description that comes again means that something about the table may have changed (docs/decisions/rules.md).
// Owner: the reader.
class RepeatedTables {
 public:
  // The reader begins anew.
  void rewind();
  // The next run is the first of a segment, and the reader has had the segment before.
  void begin_segment();
  // The rest of a run of whole frames.
  std::span<const std::byte> leave_out(std::span<const std::byte> run);

 private:
  std::map<uint32_t, std::vector<std::byte>> latest_;  // by relation, as the reader has got it
  bool at_head_ = false;                               // only repeated descriptions have come in this segment
  std::set<uint32_t> repeated_;                        // relations of those
};

}  // namespace thalweg::spill
