#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "lcr/frame.h"

// Frames that follow from their number, so that a test recognises each of them wherever it arrives.

namespace thalweg::propagation {

// Frame `i`: every tenth frame is a COMMIT; the others are INSERTs of 50 to 350 bytes, now and then much more. Rows
// look like rows: they compress to about a third.
inline std::vector<std::byte> make_numbered_frame(uint64_t i, size_t large_bytes = 5'000) {
  const base::Lsn lsn{0x1000000 + i};
  const base::Xid xid{static_cast<uint32_t>(i / 10 + 3)};
  if (i % 10 == 9) {
    return lcr::make_commit_frame(
        xid, false, {.commit_lsn = lsn, .end_lsn = {lsn.value + 1}, .commit_time = {1'700'000'000'000'000}});
  }
  const uint64_t mixed = i * 0x9E3779B97F4A7C15ULL;
  const size_t text_bytes = mixed >> 40 == 0 || i % 4999 == 4998 ? large_bytes : 8 + (mixed >> 32) % 300;
  std::vector<std::byte> tuple;
  const auto put = [&tuple](uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) tuple.push_back(static_cast<std::byte>(value >> shift));
  };
  put(2, 2);
  put('b', 1);
  put(8, 4);
  put(i, 8);
  put('t', 1);
  put(text_bytes, 4);
  for (size_t at = 0; at < text_bytes; ++at) put('a' + (mixed >> (at % 24)) % 8, 1);
  const lcr::RowFrame row{.kind = lcr::FrameKind::insert,
                          .flags = 0,
                          .xid = xid,
                          .subxid = {},
                          .relation = {16'384},
                          .table_version = 1,
                          .lsn = lsn,
                          .old_tuple = {},
                          .new_tuple = tuple};
  std::vector<std::byte> frame(lcr::row_frame_bytes(row));
  lcr::write_row_frame(row, frame);
  return frame;
}

}  // namespace thalweg::propagation
