#include "metadata/key_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>

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
    case 1186:
      return KeyForm::interval;
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

uint64_t hash_double(double value) {
  if (std::isnan(value)) return mix_hash(2, 1);
  return mix_hash(3, std::bit_cast<uint64_t>(value == 0 ? 0.0 : value));
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
  return hash_double(value);
}

// Microseconds, days, months.
uint64_t hash_interval(std::span<const std::byte> binary) {
  if (binary.size() != 16) return hash_bytes(binary, 0);
  constexpr int64_t kMicrosOfDay = int64_t{24} * 60 * 60 * 1'000'000;
  constexpr int64_t kDaysOfMonth = 30;
  const auto micros = lcr::load_network<int64_t>(binary.data());
  const int64_t days = lcr::load_network<int32_t>(&binary[8]) + kDaysOfMonth * lcr::load_network<int32_t>(&binary[12]);
  // One form of each span: less than a day of microseconds, none negative.
  int64_t rest = micros % kMicrosOfDay;
  int64_t whole = days + micros / kMicrosOfDay;
  if (rest < 0) {
    rest += kMicrosOfDay;
    --whole;
  }
  return mix_hash(mix_hash(4, static_cast<uint64_t>(whole)), static_cast<uint64_t>(rest));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t hash_floating_text(std::span<const std::byte> text) {
  const std::string_view digits = as_text(text);
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return read.ec == std::errc{} ? hash_double(value) : hash_bytes(text, 0);
}

// Hashes a numeric without the zeros at the end of its fraction.
uint64_t hash_numeric_text(std::span<const std::byte> text) {
  std::string_view digits = as_text(text);
  if (digits.contains('.')) {
    digits = digits.substr(0, digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.remove_suffix(1);
  }
  return hash_bytes(std::as_bytes(std::span{digits}), 0);
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
    case KeyForm::interval:
      return hash_interval(binary);
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

uint64_t hash_key_text(std::span<const std::byte> text, KeyForm form) {
  switch (form) {
    case KeyForm::floating:
      return hash_floating_text(text);
    case KeyForm::numeric:
      return hash_numeric_text(text);
    case KeyForm::integer:
      return hash_bytes(text, 0);
    case KeyForm::interval:
      return 0;
    case KeyForm::padded:
    case KeyForm::bytes:
    case KeyForm::unknown:
      return hash_key_value(text, form);
  }
  return 0;
}

}  // namespace thalweg::metadata
