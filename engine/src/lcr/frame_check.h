#pragma once

#include "lcr/frame.h"

// Rules of each kind of frame that decode() and the writers share. Internal to lcr/.

namespace thalweg::lcr {

inline constexpr size_t kTransactionMarkBytes = 24;
inline constexpr size_t kProgressBytes = 8;
inline constexpr size_t kTableColumnsMax = 1664;  // PostgreSQL's MaxTupleAttributeNumber

constexpr size_t round_up_to_alignment(size_t bytes) { return (bytes + kFrameAlignment - 1) & ~(kFrameAlignment - 1); }

// Low 32 bits of XXH3-64 over the frame from byte 8 to its end.
uint32_t frame_checksum(std::span<const std::byte> frame);

// Everything but length, checksum and version: kind, flags, identifiers, padding, body. `frame` is whole and aligned.
base::Result<void> check_content(std::span<const std::byte> frame);

base::Result<TableDescription> parse_table(const FrameHeader& header, std::span<const std::byte> body);
base::Result<PartitionMark> parse_partition(std::span<const std::byte> body);

}  // namespace thalweg::lcr
