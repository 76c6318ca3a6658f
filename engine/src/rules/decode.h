#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string_view>

#include "rules/value.h"

namespace thalweg::rules {

// An integer in network byte order. One instruction, which lcr::load_network's loop is not under GCC 12.
template <std::integral Integer>
Integer network_integer(const void* from) {
  Integer value;
  std::memcpy(&value, from, sizeof(value));
  return std::endian::native == std::endian::little ? std::byteswap(value) : value;
}

// Decodes a value of any type but the integers.
Failure decode_other(Type type, std::string_view bytes, Datum& out);

template <typename Integer>
Failure decode_integer(std::string_view bytes, Datum& out) {
  if (bytes.size() != sizeof(Integer)) return Failure::corrupt;
  out.integer = network_integer<Integer>(bytes.data());
  return Failure::none;
}

// A value in its type's binary send form. Text and numbers of any length point into `bytes`. Here for the hot path.
inline Failure decode(Type type, std::string_view bytes, Datum& out) {
  out.state = State::value;
  if (type == Type::int4) return decode_integer<int32_t>(bytes, out);
  if (type == Type::int8) return decode_integer<int64_t>(bytes, out);
  return decode_other(type, bytes, out);
}

}  // namespace thalweg::rules
