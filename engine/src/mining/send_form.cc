#include "mining/send_form.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "mining/varlena.h"
#include "wal/heap_page.h"
#include "wal/little_endian.h"

namespace thalweg::mining {

namespace {

using Kind = SendForm::Kind;

struct BuiltIn {
  uint32_t type;
  Kind kind;
  std::array<uint8_t, 4> parts = {};
};

// By pg_type.dat. What is missing here is refused.
constexpr BuiltIn kBuiltIn[] = {
    {16, Kind::copied},                  // bool
    {17, Kind::copied},                  // bytea
    {18, Kind::copied},                  // "char"
    {19, Kind::name},                    // name
    {20, Kind::swapped, {8}},            // int8
    {21, Kind::swapped, {2}},            // int2
    {23, Kind::swapped, {4}},            // int4
    {24, Kind::swapped, {4}},            // regproc
    {25, Kind::copied},                  // text
    {26, Kind::swapped, {4}},            // oid
    {27, Kind::tuple_id},                // tid
    {28, Kind::swapped, {4}},            // xid
    {29, Kind::swapped, {4}},            // cid
    {114, Kind::copied},                 // json
    {600, Kind::swapped, {8, 8}},        // point
    {601, Kind::swapped, {8, 8, 8, 8}},  // lseg
    {603, Kind::swapped, {8, 8, 8, 8}},  // box
    {628, Kind::swapped, {8, 8, 8}},     // line
    {700, Kind::swapped, {4}},           // float4
    {701, Kind::swapped, {8}},           // float8
    {718, Kind::swapped, {8, 8, 8}},     // circle
    {774, Kind::copied},                 // macaddr8
    {790, Kind::swapped, {8}},           // money
    {829, Kind::copied},                 // macaddr
    {1042, Kind::copied},                // bpchar
    {1043, Kind::copied},                // varchar
    {1082, Kind::swapped, {4}},          // date
    {1083, Kind::swapped, {8}},          // time
    {1114, Kind::swapped, {8}},          // timestamp
    {1184, Kind::swapped, {8}},          // timestamptz
    {1186, Kind::swapped, {8, 4, 4}},    // interval
    {1266, Kind::swapped, {8, 4}},       // timetz
    {1560, Kind::bits},                  // bit
    {1562, Kind::bits},                  // varbit
    {1700, Kind::numeric},               // numeric
    {2950, Kind::copied},                // uuid
    {3220, Kind::swapped, {8}},          // pg_lsn
    {5069, Kind::swapped, {8}},          // xid8
};

template <typename Integer>
void append_network(std::string& out, Integer value) {
  const Integer swapped = std::byteswap(value);
  out.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
}

bool append_swapped(const uint8_t (&parts)[4], std::span<const std::byte> content, std::string& out) {
  size_t at = 0;
  for (const uint8_t bytes : parts) {
    if (bytes == 0) break;
    if (content.size() < at + bytes) return false;
    if (bytes == 2) append_network(out, wal::load<uint16_t>(content, at));
    if (bytes == 4) append_network(out, wal::load<uint32_t>(content, at));
    if (bytes == 8) append_network(out, wal::load<uint64_t>(content, at));
    at += bytes;
  }
  return at == content.size();
}

// numeric_send of src/backend/utils/adt/numeric.c. A short header has scale and weight in its two bytes; infinities and
// NaN have one, too, whose bits are sent as such.
bool append_numeric(std::span<const std::byte> content, std::string& out) {
  if (content.size() < sizeof(uint16_t)) return false;
  const auto header = wal::load<uint16_t>(content, 0);
  const bool is_short = (header & 0x8000) != 0;
  const bool is_special = (header & 0xC000) == 0xC000;
  const size_t header_bytes = is_short ? 2 : 4;
  if (content.size() < header_bytes || (content.size() - header_bytes) % 2 != 0) return false;
  uint16_t sign = 0;
  uint16_t scale = 0;
  uint16_t weight = 0;
  if (is_short) {
    sign = is_special ? (header & 0xF000) : (header & 0x2000) != 0 ? 0x4000 : 0;
    scale = (header & 0x1F80) >> 7;
    weight = static_cast<uint16_t>(((header & 0x0040) != 0 ? 0xFFC0 : 0) | (header & 0x003F));
  } else {
    sign = header & 0xC000;
    scale = header & 0x3FFF;
    weight = wal::load<uint16_t>(content, 2);
  }
  const size_t digits = (content.size() - header_bytes) / 2;
  append_network(out, static_cast<uint16_t>(digits));
  append_network(out, weight);
  append_network(out, sign);
  append_network(out, scale);
  for (size_t i = 0; i < digits; ++i) append_network(out, wal::load<uint16_t>(content, header_bytes + 2 * i));
  return true;
}

// array_send of src/backend/utils/adt/arrayfuncs.c; the layout is that of src/include/utils/array.h. Places in an array
// count from its length, which `content` does not have.
bool append_array(const SendForm& element, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kLengthBytes = 4;
  constexpr size_t kFixedBytes = 12;
  constexpr size_t kDimensionsMax = 6;
  if (content.size() < kFixedBytes) return false;
  const auto dimensions = wal::load<uint32_t>(content, 0);
  const auto data_offset = wal::load<uint32_t>(content, 4);
  const size_t header = kFixedBytes + size_t{dimensions} * 8;
  if (dimensions > kDimensionsMax || content.size() < header) return false;
  append_network(out, dimensions);
  append_network(out, uint32_t{data_offset != 0});
  append_network(out, wal::load<uint32_t>(content, 8));
  size_t count = dimensions == 0 ? 0 : 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const auto extent = wal::load<uint32_t>(content, kFixedBytes + 4 * i);
    if (extent > content.size() * 8) return false;  // each element has at least a bit, of NULLs
    count *= extent;
    if (count > content.size() * 8) return false;
    append_network(out, extent);
    append_network(out, wal::load<uint32_t>(content, kFixedBytes + 4 * (dimensions + i)));
  }
  const auto is_null = [&](size_t i) {
    return data_offset != 0 && (wal::load<uint8_t>(content, header + i / 8) & (1U << (i % 8))) == 0;
  };
  if (data_offset != 0 && (data_offset < kLengthBytes + header || content.size() < header + (count + 7) / 8))
    return false;
  size_t at = data_offset != 0 ? data_offset : (kLengthBytes + header + 7) / 8 * 8;
  for (size_t i = 0; i < count; ++i) {
    if (is_null(i)) {
      append_network(out, uint32_t{0xFFFFFFFF});
      continue;
    }
    at = wal::begin_of_value(content, at, element.length, element.align, kLengthBytes);
    if (at - kLengthBytes > content.size()) return false;
    const auto rest = content.subspan(at - kLengthBytes);
    std::span<const std::byte> value;
    std::string plain;
    if (element.length >= 0) {
      if (rest.size() < static_cast<size_t>(element.length)) return false;
      value = rest.first(static_cast<size_t>(element.length));
      at += value.size();
    } else {
      const auto parsed = parse_varlena(rest);
      if (!parsed || parsed->external) return false;
      value = parsed->content;
      if (parsed->is_compressed) {
        auto whole = decompressed(parsed->content, parsed->compression, parsed->raw_bytes);
        if (!whole) return false;
        plain = std::move(*whole);
        value = std::as_bytes(std::span{plain});
      }
      at += parsed->bytes;
    }
    const size_t length_at = out.size();
    append_network(out, uint32_t{0});
    if (!element.append(value, out)) return false;
    const uint32_t length = std::byteswap(static_cast<uint32_t>(out.size() - length_at - sizeof(uint32_t)));
    std::memcpy(out.data() + length_at, &length, sizeof length);
  }
  return true;
}

namespace type_column {
enum : size_t {
  oid,
  name,
  schema,
  length,
  by_value,
  kind,
  category,
  relation,
  element,
  array,
  send,
  align,
  storage,
  base
};
}

}  // namespace

bool SendForm::append(std::span<const std::byte> content, std::string& out) const {
  const auto* const text = reinterpret_cast<const char*>(content.data());
  switch (kind) {
    case Kind::copied:
      out.append(text, content.size());
      return true;
    case Kind::swapped:
      return append_swapped(parts, content, out);
    case Kind::name:
      out.append(text, strnlen(text, content.size()));
      return true;
    case Kind::bits:
      if (content.size() < sizeof(uint32_t)) return false;
      append_network(out, wal::load<uint32_t>(content, 0));
      out.append(text + sizeof(uint32_t), content.size() - sizeof(uint32_t));
      return true;
    case Kind::numeric:
      return append_numeric(content, out);
    case Kind::array:
      return append_array(*element, content, out);
    case Kind::label: {
      if (content.size() != sizeof(uint32_t)) return false;
      const auto found = labels->find(wal::load<uint32_t>(content, 0));
      if (found == labels->end()) return false;
      out += found->second;
      return true;
    }
    case Kind::tuple_id: {
      constexpr size_t kBytes = 6;  // the block's halves, the high one first, and the offset
      if (content.size() != kBytes) return false;
      for (size_t at = 0; at < kBytes; at += 2) append_network(out, wal::load<uint16_t>(content, at));
      return true;
    }
  }
  return false;
}

std::shared_ptr<const SendForm> send_form_of(const dictionary::Dictionary& dictionary, uint32_t type,
                                             base::Xid viewer) {
  using dictionary::Catalog;
  std::optional<dictionary::Row> row;
  dictionary.rows_with_key(Catalog::pg_type, 0, type, viewer, [&](dictionary::Row found) { row = std::move(found); });
  if (!row) return nullptr;
  const auto integer = [&](size_t column) { return std::get<int64_t>((*row)[column]); };
  const char kind = static_cast<char>(integer(type_column::kind));
  if (kind == 'd') return send_form_of(dictionary, static_cast<uint32_t>(integer(type_column::base)), viewer);
  SendForm form{.type = type,
                .length = static_cast<int16_t>(integer(type_column::length)),
                .align = static_cast<char>(integer(type_column::align))};
  if (const auto* const found = std::ranges::find(kBuiltIn, type, &BuiltIn::type); found != std::end(kBuiltIn)) {
    form.kind = found->kind;
    std::ranges::copy(found->parts, form.parts);
    return std::make_shared<const SendForm>(std::move(form));
  }
  if (kind == 'e') {
    auto labels = std::make_shared<std::unordered_map<uint32_t, std::string>>();
    constexpr size_t kByType = 1;
    dictionary.rows_with_key(Catalog::pg_enum, kByType, type, viewer, [&](const dictionary::Row& label) {
      labels->emplace(static_cast<uint32_t>(std::get<int64_t>(label[0])), std::get<std::string>(label[3]));
    });
    form.kind = Kind::label;
    form.labels = std::move(labels);
    return std::make_shared<const SendForm>(std::move(form));
  }
  if (form.length == -1 && integer(type_column::element) != 0 &&
      static_cast<char>(integer(type_column::category)) == 'A') {
    form.kind = Kind::array;
    form.element = send_form_of(dictionary, static_cast<uint32_t>(integer(type_column::element)), viewer);
    return form.element ? std::make_shared<const SendForm>(std::move(form)) : nullptr;
  }
  return nullptr;
}

}  // namespace thalweg::mining
