#include <cassert>

#include "lcr/bytes.h"
#include "lcr/frame.h"

// Tuples: pgoutput's TupleData layout, see docs/formats/lcr-frame.md.

namespace thalweg::lcr {

base::Result<size_t> check_tuple(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto columns = reader.integer<uint16_t>();
  for (uint16_t column = 0; column < columns && !reader.failed(); ++column) {
    const auto mark = static_cast<ValueMark>(reader.integer<uint8_t>());
    if (reader.failed()) break;
    switch (mark) {
      case ValueMark::null:
      case ValueMark::unchanged:
        break;
      case ValueMark::binary:
      case ValueMark::text:
        reader.take(reader.integer<uint32_t>());
        break;
      default:
        return base::fail(base::ErrorCode::corrupt_frame, "column " + std::to_string(column) +
                                                              " has the unknown mark " +
                                                              std::to_string(static_cast<unsigned>(mark)));
    }
  }
  if (reader.failed()) return base::fail(base::ErrorCode::corrupt_frame, "a tuple ends too early");
  return bytes.size() - reader.remaining();
}

std::vector<std::byte> make_tuple(std::span<const Value> values) {
  std::vector<std::byte> tuple;
  write_tuple(values, tuple);
  return tuple;
}

void write_tuple(std::span<const Value> values, std::vector<std::byte>& tuple) {
  const auto has_bytes = [](const Value& value) {
    return value.mark == ValueMark::binary || value.mark == ValueMark::text;
  };
  size_t length = sizeof(uint16_t);
  for (const Value& value : values) length += 1 + (has_bytes(value) ? sizeof(uint32_t) + value.bytes.size() : 0);
  tuple.resize(length);
  ByteWriter out(tuple);
  out.integer(static_cast<uint16_t>(values.size()));
  for (const Value& value : values) {
    out.integer(static_cast<uint8_t>(value.mark));
    if (!has_bytes(value)) continue;
    out.integer(static_cast<uint32_t>(value.bytes.size()));
    out.bytes(value.bytes);
  }
}

uint16_t TupleView::column_count() const {
  assert(exists());
  return load_network<uint16_t>(bytes_.data());
}

void TupleView::read(std::vector<Value>& out) const {
  out.clear();
  if (!exists()) return;
  ByteReader reader(bytes_);
  const auto columns = reader.integer<uint16_t>();
  out.reserve(columns);
  for (uint16_t column = 0; column < columns; ++column) {
    const auto mark = static_cast<ValueMark>(reader.integer<uint8_t>());
    std::span<const std::byte> value;
    if (mark == ValueMark::binary || mark == ValueMark::text) value = reader.take(reader.integer<uint32_t>());
    out.push_back({.mark = mark, .bytes = value});
  }
  assert(!reader.failed() && reader.remaining() == 0);
}

}  // namespace thalweg::lcr
