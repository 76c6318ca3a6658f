#pragma once

#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mining/send_form.h"

// The conversions, by families of types: one file each. All of them are told bytes that may be damaged.

namespace thalweg::mining {

// plain_values.cc
bool append_copied(const SendForm&, std::span<const std::byte> content, std::string& out);   // the bytes are the same
bool append_swapped(const SendForm&, std::span<const std::byte> content, std::string& out);  // integers, by `parts`
bool append_name(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_bits(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_label(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_tuple_id(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_snapshot(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_inet(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_cidr(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_path(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_polygon(const SendForm&, std::span<const std::byte> content, std::string& out);

// numeric.cc
bool append_numeric(const SendForm&, std::span<const std::byte> content, std::string& out);

// text_search.cc
bool append_tsvector(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_tsquery(const SendForm&, std::span<const std::byte> content, std::string& out);

// xml_text.cc, jsonb_text.cc, jsonpath_text.cc
bool append_xml(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_jsonb(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_jsonpath(const SendForm&, std::span<const std::byte> content, std::string& out);

// array.cc, range.cc, composite.cc
bool append_array(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_range(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_multirange(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_composite(const SendForm&, std::span<const std::byte> content, std::string& out);

// extension_values.cc
bool append_hstore(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_ltree(const SendForm&, std::span<const std::byte> content, std::string& out);
bool append_cube(const SendForm&, std::span<const std::byte> content, std::string& out);

// For the conversions themselves.

// The length that stands for NULL.
inline constexpr uint32_t kNullLength = 0xFFFFFFFF;
// No server makes more of one value (MaxAllocSize of src/include/utils/memutils.h): what is longer is damaged.
inline constexpr size_t kSentBytesMax = (size_t{1} << 30) - 1;

template <typename Integer>
void append_network(std::string& out, Integer value) {
  const Integer swapped = std::byteswap(value);
  out.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
}

// Writes how much was appended since then into the four bytes at `length_at`. False: no value is as long.
bool set_length(std::string& out, size_t length_at);

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A value at the begin of `rest` within another one, with its length (append_sized). Null: it is none of the type. Else
// how many bytes it took.
std::optional<size_t> append_member(const SendForm& form, std::span<const std::byte> rest, std::string& out);

// A numeric, at the begin of `stored` with its length, as numeric_out prints it; false also for infinities and NaN,
// which have no digits.
bool append_numeric_text(std::span<const std::byte> stored, std::string& out);
// As escape_json of src/backend/utils/adt/json.c prints it, with quotes. False: it has a zero byte.
bool append_json_string(std::string_view text, std::string& out);

}  // namespace thalweg::mining
