#include "dictionary/catalog_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace thalweg::dictionary {

namespace {

constexpr size_t kNotWanted = SIZE_MAX;

template <typename Number>
Number load(std::span<const std::byte> bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The bytes of a value that begins with its length (src/include/varatt.h). Null: it is cut, or of no known form.
std::optional<size_t> length_of(std::span<const std::byte> bytes) {
  constexpr size_t kPointerBytes = 18;  // to a value in the TOAST table: none of those that matter is
  if (bytes.empty()) return std::nullopt;
  const auto first = std::to_integer<uint8_t>(bytes[0]);
  if (first == 0x01) return kPointerBytes;
  if ((first & 0x01) != 0) return first >> 1;
  if (bytes.size() < sizeof(uint32_t)) return std::nullopt;
  return load<uint32_t>(bytes) >> 2;
}

// An int2vector's values, as int2vectorout of src/backend/utils/adt/int.c prints them.
std::optional<Value> vector_of(std::span<const std::byte> bytes) {
  constexpr size_t kCountAt = 16;  // behind length, dimensions, offset of the values and element type
  constexpr size_t kValuesAt = 24;
  if (bytes.size() < kValuesAt) return std::nullopt;
  const auto count = load<uint32_t>(bytes.subspan(kCountAt));
  if (count > (bytes.size() - kValuesAt) / sizeof(int16_t)) return std::nullopt;
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", load<int16_t>(bytes.subspan(kValuesAt + i * sizeof(int16_t))));
  }
  return Value{std::move(text)};
}

std::optional<Value> value_of(ColumnKind kind, std::span<const std::byte> bytes) {
  const auto has = [&](size_t wanted) { return bytes.size() == wanted; };
  switch (kind) {
    case ColumnKind::boolean:
      return has(1) ? std::optional<Value>{int64_t{load<int8_t>(bytes)}} : std::nullopt;
    case ColumnKind::character:
      return has(1) ? std::optional<Value>{int64_t{load<char>(bytes)}} : std::nullopt;
    case ColumnKind::int2:
      return has(2) ? std::optional<Value>{int64_t{load<int16_t>(bytes)}} : std::nullopt;
    case ColumnKind::int4:
      return has(4) ? std::optional<Value>{int64_t{load<int32_t>(bytes)}} : std::nullopt;
    case ColumnKind::oid:
      return has(4) ? std::optional<Value>{int64_t{load<uint32_t>(bytes)}} : std::nullopt;
    case ColumnKind::float4:
      return has(4) ? std::optional<Value>{double{load<float>(bytes)}} : std::nullopt;
    case ColumnKind::name: {
      const auto* const text = reinterpret_cast<const char*>(bytes.data());
      return Value{std::string{text, strnlen(text, bytes.size())}};
    }
    case ColumnKind::int2vector:
      return vector_of(bytes);
  }
  return std::nullopt;
}

}  // namespace

std::optional<CatalogLayout> CatalogLayout::of(const CatalogDescription& catalog, std::vector<StoredColumn> stored) {
  std::vector<size_t> wanted(stored.size(), kNotWanted);
  for (size_t i = 0; i < catalog.columns.size(); ++i) {
    const auto found = std::ranges::find(stored, catalog.columns[i].name, &StoredColumn::name);
    if (found == stored.end()) return std::nullopt;
    wanted[static_cast<size_t>(found - stored.begin())] = i;
  }
  return CatalogLayout{catalog, std::move(stored), std::move(wanted)};
}

std::optional<Row> CatalogLayout::row(const wal::HeapTuple& tuple) const {
  Row row(catalog_->columns.size());
  const auto values = tuple.values();
  const bool has_null = (tuple.infomask & wal::kHasNull) != 0;
  const auto bitmap = tuple.bitmap();
  const size_t columns = std::min<size_t>(tuple.columns(), stored_.size());
  size_t at = 0;
  for (size_t i = 0; i < columns; ++i) {
    if (has_null && (std::to_integer<uint8_t>(bitmap[i / 8]) & (1U << (i % 8))) == 0) continue;
    const StoredColumn& column = stored_[i];
    at = wal::begin_of_value(values, at, column.length, column.align);
    if (at > values.size()) return std::nullopt;
    const auto rest = values.subspan(at);
    const auto length = column.length >= 0    ? std::optional<size_t>{static_cast<size_t>(column.length)}
                        : column.length == -1 ? length_of(rest)
                                              : std::nullopt;
    if (!length || *length > rest.size()) return std::nullopt;
    if (wanted_[i] != kNotWanted) {
      auto value = value_of(catalog_->columns[wanted_[i]].kind, rest.first(*length));
      if (!value) return std::nullopt;
      row[wanted_[i]] = std::move(*value);
    }
    at += *length;
  }
  return row;
}

}  // namespace thalweg::dictionary
