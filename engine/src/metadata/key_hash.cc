#include "metadata/key_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lcr/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thalweg::metadata {

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

KeyForm key_form(uint32_t type) {
  constexpr std::array<uint32_t, 22> kBytes{16,     // boolean
                                            17,     // bytea
                                            18,     // "char"
                                            19,     // name
                                            25,     // text
                                            26,     // oid
                                            650,    // cidr
                                            774,    // macaddr8
                                            790,    // money
                                            829,    // macaddr
                                            869,    // inet
                                            1043,   // character varying
                                            1082,   // date
                                            1083,   // time
                                            1114,   // timestamp
                                            1184,   // timestamptz
                                            1266,   // timetz
                                            1560,   // bit
                                            1562,   // bit varying
                                            2950,   // uuid
                                            3220,   // pg_lsn
                                            5069};  // xid8
  switch (type) {
    case 20:
    case 21:
    case 23:
      return KeyForm::integer;
    case 700:
    case 701:
      return KeyForm::floating;
    case 1042:
      return KeyForm::padded;
    case 1700:
      return KeyForm::numeric;
    default:
      return std::ranges::find(kBytes, type) != kBytes.end() ? KeyForm::bytes : KeyForm::unknown;
  }
}

namespace {

uint64_t hash_integer(std::span<const std::byte> binary) {
  switch (binary.size()) {
    case 2:
      return mix_hash(1, static_cast<uint64_t>(int64_t{lcr::load_network<int16_t>(binary.data())}));
    case 4:
      return mix_hash(1, static_cast<uint64_t>(int64_t{lcr::load_network<int32_t>(binary.data())}));
    case 8:
      return mix_hash(1, static_cast<uint64_t>(lcr::load_network<int64_t>(binary.data())));
    default:
      return hash_bytes(binary, 0);
  }
}

uint64_t hash_floating(std::span<const std::byte> binary) {
  double value = 0;
  if (binary.size() == 4) {
    value = std::bit_cast<float>(lcr::load_network<uint32_t>(binary.data()));
  } else if (binary.size() == 8) {
    value = std::bit_cast<double>(lcr::load_network<uint64_t>(binary.data()));
  } else {
    return hash_bytes(binary, 0);
  }
  if (std::isnan(value)) return mix_hash(2, 1);
  return mix_hash(3, std::bit_cast<uint64_t>(value == 0 ? 0.0 : value));
}

// Number of digits, weight, sign, display scale, digits; without zeros at either end.
uint64_t hash_numeric(std::span<const std::byte> binary) {
  constexpr size_t kScaleAt = 6;
  constexpr size_t kDigitsAt = 8;
  if (binary.size() < kDigitsAt) return hash_bytes(binary, 0);
  return mix_hash(hash_bytes(binary.first(kScaleAt), 0), hash_bytes(binary.subspan(kDigitsAt), 0));
}

}  // namespace

uint64_t hash_key_value(std::span<const std::byte> binary, KeyForm form) {
  switch (form) {
    case KeyForm::integer:
      return hash_integer(binary);
    case KeyForm::floating:
      return hash_floating(binary);
    case KeyForm::numeric:
      return hash_numeric(binary);
    case KeyForm::padded:
      while (!binary.empty() && binary.back() == std::byte{' '}) binary = binary.first(binary.size() - 1);
      return hash_bytes(binary, 0);
    case KeyForm::bytes:
      return hash_bytes(binary, 0);
    case KeyForm::unknown:
      return 0;
  }
  return 0;
}

}  // namespace thalweg::metadata
