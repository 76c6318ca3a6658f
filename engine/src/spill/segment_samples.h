#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lcr/frame_samples.h"
#include "spill/segment_format.h"

// Whole segments with known contents, for tests: the golden files and the fuzzer's seeds hold these.

namespace thalweg::spill {

// A row whose one value has `bytes` bytes; `compressible` or not, always the same for the same `seed`.
inline std::vector<std::byte> sample_row(size_t bytes, unsigned seed, bool compressible = true) {
  std::string value(bytes, '\0');
  uint64_t state = seed + 1;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value[i] = static_cast<char>(compressible ? seed + i % 7 : state >> 56);
  }
  const lcr::SampleColumns columns{{'b', value}};
  return lcr::make_sample_row(lcr::FrameKind::insert, lcr::kStreamed, 0, nullptr, &columns);
}

inline std::vector<std::byte> joined(const std::vector<std::vector<std::byte>>& parts) {
  std::vector<std::byte> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

// A segment of one block for each of `blocks`, with its end.
inline std::vector<std::byte> sample_segment(SegmentId id, const std::vector<std::vector<std::byte>>& blocks) {
  std::vector<std::byte> out;
  append_segment_header(id, out);
  uint32_t number = 0;
  for (const auto& block : blocks) append_block(id, number++, block, out);
  append_end_block(id, number, out);
  return out;
}

// One frame of each kind that there was when the golden files were written: a segment's form does not depend on them.
inline std::vector<std::vector<std::byte>> sample_kinds() {
  std::vector<std::vector<std::byte>> kinds;
  for (const auto& [name, frame] : lcr::sample_frames()) {
    if (lcr::kind_of(frame.data()) < lcr::FrameKind::partition) kinds.push_back(frame);
  }
  return kinds;
}

inline std::vector<std::pair<std::string, std::vector<std::byte>>> sample_segments() {
  return {
      {"empty", sample_segment({.log = 7, .number = 0}, {})},
      {"plain", sample_segment({.log = 7, .number = 1}, {sample_row(100, 1, false), sample_row(24, 2, false)})},
      {"lz4", sample_segment({.log = 0x0123456789ABCDEF, .number = 2}, {joined(sample_kinds()), sample_row(600, 3)})},
  };
}

}  // namespace thalweg::spill
