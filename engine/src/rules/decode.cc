#include "rules/decode.h"

#include <bit>

#include "rules/numeric.h"

namespace thalweg::rules {

Failure decode_other(Type type, std::string_view bytes, Datum& out) {
  const auto* const start = reinterpret_cast<const std::byte*>(bytes.data());
  switch (type) {
    case Type::date:
      return decode_integer<int32_t>(bytes, out);
    case Type::time:
    case Type::timestamp:
    case Type::timestamptz:
      return decode_integer<int64_t>(bytes, out);
    case Type::int2:
      return decode_integer<int16_t>(bytes, out);
    case Type::boolean:
      if (bytes.size() != 1) return Failure::corrupt;
      out.integer = bytes[0] != 0 ? 1 : 0;
      return Failure::none;
    case Type::float4:
      if (bytes.size() != sizeof(float)) return Failure::corrupt;
      out.real = std::bit_cast<float>(network_integer<uint32_t>(start));
      return Failure::none;
    case Type::float8:
      if (bytes.size() != sizeof(double)) return Failure::corrupt;
      out.real = std::bit_cast<double>(network_integer<uint64_t>(start));
      return Failure::none;
    case Type::interval:
      if (bytes.size() != 16) return Failure::corrupt;
      out.integer = network_integer<int64_t>(start);
      out.calendar = {.days = network_integer<int32_t>(start + 8), .months = network_integer<int32_t>(start + 12)};
      return Failure::none;
    case Type::numeric:
      return is_numeric(bytes) ? give_text(out, bytes) : Failure::corrupt;
    case Type::uuid:
      return bytes.size() == 16 ? give_text(out, bytes) : Failure::corrupt;
    case Type::jsonb: {  // a version, then the text
      constexpr char kVersion = 1;
      return bytes.starts_with(kVersion) ? give_text(out, bytes.substr(1)) : Failure::corrupt;
    }
    default:
      return give_text(out, bytes);
  }
}

}  // namespace thalweg::rules
