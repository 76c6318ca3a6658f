#pragma once

#include <cstddef>
#include <cstdint>

#include "wal/heap_page.h"
#include "wal/varlena.h"

// The values of a tuple, one column after the other (heap_deform_tuple of src/backend/access/common/heaptuple.c).

namespace thalweg::wal {

// A column's value in a tuple.
struct TupleValue {
  enum class State : uint8_t {
    absent,  // the tuple is older than the column
    null,
    present,
    damaged,  // the tuple ends within it, or it is of no known form; nothing follows
  };
  State state = State::absent;
  StoredValue value = {};
};

// Owner: whoever reads the tuple, which outlives it.
class TupleValues {
 public:
  explicit TupleValues(const HeapTuple& tuple)  // is_whole()
      : tuple_(tuple), has_null_((tuple.infomask & kHasNull) != 0) {}

  // The next column's. `length`, `align`: attlen and attalign.
  TupleValue next(int16_t length, char align) {
    const size_t column = column_++;
    if (column >= tuple_.columns()) return {};
    if (has_null_ && (std::to_integer<uint8_t>(tuple_.bitmap()[column / 8]) & (1U << (column % 8))) == 0) {
      return {.state = TupleValue::State::null};
    }
    const auto values = tuple_.values();
    at_ = begin_of_value(values, at_, length, align);
    const auto value = at_ > values.size() ? std::nullopt : parse_value(values.subspan(at_), length);
    if (!value) return {.state = TupleValue::State::damaged};
    at_ += value->bytes;
    return {.state = TupleValue::State::present, .value = *value};
  }

 private:
  const HeapTuple tuple_;
  const bool has_null_;
  size_t column_ = 0;
  size_t at_ = 0;
};

}  // namespace thalweg::wal
