#pragma once

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "rules/condition.h"

// Rows for tests and benchmarks.

namespace thalweg::rules {

// A column's value: none is NULL; `unchanged` is a TOAST value that did not come.
struct SampleValue {
  lcr::ValueMark mark = lcr::ValueMark::null;
  std::string bytes;

  static SampleValue null() { return {}; }
  static SampleValue unchanged() { return {.mark = lcr::ValueMark::unchanged, .bytes = {}}; }
  static SampleValue of(std::string sent) { return {.mark = lcr::ValueMark::binary, .bytes = std::move(sent)}; }
  static SampleValue int4(int32_t value) {
    const auto raw = std::bit_cast<uint32_t>(value);
    std::string sent;
    for (int shift = 24; shift >= 0; shift -= 8) sent += static_cast<char>(raw >> shift & 0xFF);
    return of(std::move(sent));
  }
};
using SampleRow = std::vector<SampleValue>;

inline std::vector<std::byte> tuple_of(const SampleRow& row) {
  std::vector<lcr::Value> values;
  for (const SampleValue& value : row)
    values.push_back({.mark = value.mark, .bytes = std::as_bytes(std::span(value.bytes))});
  return lcr::make_tuple(values);
}

// Owns a frame's bytes, aligned.
class SampleFrame {
 public:
  SampleFrame(lcr::FrameKind kind, uint16_t flags, const std::optional<SampleRow>& old_row,
              const std::optional<SampleRow>& new_row) {
    const auto old_tuple = old_row ? tuple_of(*old_row) : std::vector<std::byte>{};
    const auto new_tuple = new_row ? tuple_of(*new_row) : std::vector<std::byte>{};
    const lcr::RowFrame row{.kind = kind,
                            .flags = flags,
                            .xid = {1},
                            .subxid = {},
                            .relation = {16'385},
                            .table_version = 1,
                            .lsn = {1},
                            .old_tuple = old_tuple,
                            .new_tuple = new_tuple};
    bytes_.resize(lcr::row_frame_bytes(row));
    lcr::write_row_frame(row, bytes_);
  }
  static SampleFrame insert(const SampleRow& row) { return {lcr::FrameKind::insert, 0, std::nullopt, row}; }
  lcr::FrameView view() const { return lcr::FrameView::trusted(bytes_.data()); }

 private:
  std::vector<std::byte> bytes_;
};

// id int4 (the key), n int4, label text
inline RuleTable sample_rule_table() {
  return {.schema = "public",
          .name = "orders",
          .columns = {{.name = "id", .type = {23}, .is_key = true, .enum_labels = {}},
                      {.name = "n", .type = {23}, .enum_labels = {}},
                      {.name = "label", .type = {25}, .enum_labels = {}}}};
}

}  // namespace thalweg::rules
