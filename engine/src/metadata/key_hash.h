#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Hashes of key values: what the coordinator compares to find dependent transactions.

namespace thalweg::metadata {

// XXH3-64 of `bytes` with a seed.
uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed);

// Relation between a value's bytes and its equality with another of its type, by the operator of the type's index.
enum class KeyForm : uint8_t {
  bytes,     // equal values have equal bytes
  integer,   // of any width: a foreign key may be narrower than the key that it refers to
  numeric,   // but for the display scale: 1.0 = 1.00
  floating,  // -0 = 0, NaN = NaN; of any width
  padded,    // trailing blanks do not count
  interval,  // a month is 30 days, a day 24 hours; of its binary form only, a text says nothing
  unknown,   // nothing: equal values may have any bytes
};
// The form of a built-in type's values, by pg_type.oid.
KeyForm key_form(uint32_t type);
// Whether values of one form and another hash are other values, however they come.
constexpr bool tells_apart(KeyForm form) { return form != KeyForm::unknown && form != KeyForm::interval; }
// The same for equal values in their binary form,
uint64_t hash_key_value(std::span<const std::byte> binary, KeyForm form);
// and in their text form, which is how all values of a source come where one of its types has no binary form.
uint64_t hash_key_text(std::span<const std::byte> text, KeyForm form);
// Mixes the hash of one more column in; order matters.
constexpr uint64_t mix_hash(uint64_t hash, uint64_t more) {
  hash ^= more + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xD6E8FEB86659FD93ULL;
}

}  // namespace thalweg::metadata
