#include "apply/row_key.h"

#include "metadata/key_hash.h"

namespace thalweg::apply {

using lcr::ValueMark;

std::optional<uint64_t> hash_key(uint64_t seed, const metadata::TableMetadata& table, std::span<const uint16_t> columns,
                                 const std::vector<lcr::Value>& values, bool with_nulls) {
  uint64_t hash = metadata::mix_hash(0, seed);
  for (const uint16_t column : columns) {
    const lcr::Value& value = values[column];
    if (value.mark == ValueMark::unchanged) return std::nullopt;
    if (value.mark == ValueMark::null) {
      if (!with_nulls) return std::nullopt;
      hash = metadata::mix_hash(hash, 1);
      continue;
    }
    const metadata::KeyForm form = table.columns[column].key_form;
    hash = metadata::mix_hash(hash, value.mark == ValueMark::text ? metadata::hash_key_text(value.bytes, form)
                                                                  : metadata::hash_key_value(value.bytes, form));
  }
  return hash;
}

std::optional<uint64_t> hash_key_bytes(uint64_t seed, std::span<const uint16_t> columns,
                                       const std::vector<lcr::Value>& values) {
  uint64_t hash = metadata::mix_hash(1, seed);
  for (const uint16_t column : columns) {
    const lcr::Value& value = values[column];
    if (value.mark == ValueMark::unchanged || value.mark == ValueMark::null) return std::nullopt;
    hash = metadata::mix_hash(hash, metadata::hash_bytes(value.bytes, 0));
  }
  return hash;
}

}  // namespace thalweg::apply
