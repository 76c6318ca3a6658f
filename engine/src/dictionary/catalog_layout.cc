#include "dictionary/catalog_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wal/tuple_values.h"

namespace thalweg::dictionary {

namespace {

constexpr size_t kNotWanted = SIZE_MAX;

template <typename Number>
Number load(std::span<const std::byte> bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// An int2vector's values, as int2vectorout of src/backend/utils/adt/int.c prints them.
std::optional<Value> vector_of(std::span<const std::byte> bytes) {
  constexpr size_t kCountAt = 12;  // behind dimensions, offset of the values and element type
  constexpr size_t kValuesAt = 20;
  if (bytes.size() < kValuesAt) return std::nullopt;
  const auto count = load<uint32_t>(bytes.subspan(kCountAt));
  if (count > (bytes.size() - kValuesAt) / sizeof(int16_t)) return std::nullopt;
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", load<int16_t>(bytes.subspan(kValuesAt + i * sizeof(int16_t))));
  }
  return Value{std::move(text)};
}

// An array's only element, as it lies in the array (src/include/utils/array.h).
std::optional<Value> element_of(std::span<const std::byte> bytes) {
  constexpr size_t kExtentAt = 12;
  constexpr size_t kElementAt = 20;
  if (bytes.size() < kElementAt || load<uint32_t>(bytes) != 1 || load<uint32_t>(bytes.subspan(kExtentAt)) != 1) {
    return std::nullopt;
  }
  const auto element = bytes.subspan(kElementAt);
  return Value{kStoredElement + std::string{reinterpret_cast<const char*>(element.data()), element.size()}};
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
    case ColumnKind::element:
      return element_of(bytes);
  }
  return std::nullopt;
}

// None of those that matter is in the TOAST table but for an element, whose value is not known then.
std::optional<Value> value_of(ColumnKind kind, const wal::StoredValue& stored) {
  if (stored.external) return kind == ColumnKind::element ? std::optional{Value{}} : std::nullopt;
  std::string plain;
  const auto content = wal::plain_content(stored, plain);
  return content ? value_of(kind, *content) : std::nullopt;
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
  wal::TupleValues values(tuple);
  for (size_t i = 0; i < stored_.size(); ++i) {
    const wal::TupleValue read = values.next(stored_[i].length, stored_[i].align);
    if (read.state == wal::TupleValue::State::damaged) return std::nullopt;
    if (read.state != wal::TupleValue::State::present || wanted_[i] == kNotWanted) continue;
    auto value = value_of(catalog_->columns[wanted_[i]].kind, read.value);
    if (!value) return std::nullopt;
    row[wanted_[i]] = std::move(*value);
  }
  return row;
}

}  // namespace thalweg::dictionary
