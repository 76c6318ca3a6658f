#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/ids.h"

namespace thalweg::shipment {

// A segment's file, named as PostgreSQL names it: timeline and number, in 24 hexadecimal digits (XLogFileName of
// src/include/access/xlog_internal.h).
struct SegmentName {
  uint32_t timeline = 0;
  base::Lsn begin;

  std::string text(uint32_t segment_bytes) const {
    const uint64_t per_id = (uint64_t{1} << 32) / segment_bytes;
    const uint64_t number = begin.value / segment_bytes;
    return fmt::format("{:08X}{:08X}{:08X}", timeline, number / per_id, number % per_id);
  }
  // None: no segment's name.
  static std::optional<SegmentName> parse(std::string_view text, uint32_t segment_bytes) {
    if (text.size() != 24) return std::nullopt;
    const auto part = [&](size_t at) -> std::optional<uint32_t> {
      uint32_t value = 0;
      const char* const end = text.data() + at + 8;
      const auto [stopped, error] = std::from_chars(text.data() + at, end, value, 16);
      return error == std::errc{} && stopped == end ? std::optional{value} : std::nullopt;
    };
    const auto timeline = part(0), high = part(8), low = part(16);
    const uint64_t per_id = (uint64_t{1} << 32) / segment_bytes;
    if (!timeline || !high || !low || *low >= per_id) return std::nullopt;
    return SegmentName{.timeline = *timeline, .begin = {(*high * per_id + *low) * segment_bytes}};
  }
};

}  // namespace thalweg::shipment
