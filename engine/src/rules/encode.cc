#include "rules/encode.h"

#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

namespace thalweg::rules {

namespace {

template <std::unsigned_integral Integer>
void put(Integer value, std::string& out) {
  const Integer sent = std::endian::native == std::endian::little ? std::byteswap(value) : value;
  out.resize(sizeof(sent));
  std::memcpy(out.data(), &sent, sizeof(sent));
}

}  // namespace

bool is_encoded(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::int2:
    case Type::int4:
    case Type::int8:
    case Type::float8:
    case Type::numeric:
    case Type::text:
    case Type::varchar:
    case Type::uuid:
    case Type::date:
    case Type::timestamp:
    case Type::timestamptz:
      return true;
    default:
      return false;
  }
}

void encode(Type type, const Datum& value, std::string& out) {
  switch (type) {
    case Type::boolean:
      out.assign(1, value.integer != 0 ? '\1' : '\0');
      return;
    case Type::int2:
      return put(static_cast<uint16_t>(value.integer), out);
    case Type::int4:
    case Type::date:
      return put(static_cast<uint32_t>(value.integer), out);
    case Type::int8:
    case Type::timestamp:
    case Type::timestamptz:
      return put(static_cast<uint64_t>(value.integer), out);
    case Type::float8:
      return put(std::bit_cast<uint64_t>(value.real), out);
    case Type::numeric:
    case Type::text:
    case Type::varchar:
    case Type::uuid:
      out.assign(value.data, value.size);
      return;
    default:
      std::unreachable();
  }
}

}  // namespace thalweg::rules
