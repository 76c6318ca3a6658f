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
    // A value came as text because its type has no binary form: such a type's form is bytes or unknown.
    hash = metadata::mix_hash(hash, metadata::hash_key_value(value.bytes, table.columns[column].key_form));
  }
  return hash;
}

}  // namespace thalweg::apply
