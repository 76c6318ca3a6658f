#include "dictionary/catalogs.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace thalweg::dictionary {

namespace {

using enum ColumnKind;

// The first ones in the order of class_column.
constexpr std::array kClass = std::to_array<CatalogColumn>({{"oid", oid},
                                                            {"relfilenode", oid},
                                                            {"relrewrite", oid},
                                                            {"reltablespace", oid},
                                                            {"relname", name},
                                                            {"relnamespace", oid},
                                                            {"reltype", oid},
                                                            {"relam", oid},
                                                            {"reltoastrelid", oid},
                                                            {"relisshared", boolean},
                                                            {"relpersistence", character},
                                                            {"relkind", character},
                                                            {"relnatts", int2},
                                                            {"relreplident", character},
                                                            {"relispartition", boolean}});
constexpr std::array kAttribute = std::to_array<CatalogColumn>({{"attrelid", oid},
                                                                {"attname", name},
                                                                {"atttypid", oid},
                                                                {"attlen", int2},
                                                                {"attnum", int2},
                                                                {"atttypmod", int4},
                                                                {"attbyval", boolean},
                                                                {"attalign", character},
                                                                {"attstorage", character},
                                                                {"attcompression", character},
                                                                {"attnotnull", boolean},
                                                                {"atthasmissing", boolean},
                                                                {"attidentity", character},
                                                                {"attgenerated", character},
                                                                {"attisdropped", boolean},
                                                                {"attcollation", oid},
                                                                {"attmissingval", element}});
constexpr std::array kType = std::to_array<CatalogColumn>({{"oid", oid},
                                                           {"typname", name},
                                                           {"typnamespace", oid},
                                                           {"typlen", int2},
                                                           {"typbyval", boolean},
                                                           {"typtype", character},
                                                           {"typcategory", character},
                                                           {"typrelid", oid},
                                                           {"typelem", oid},
                                                           {"typarray", oid},
                                                           {"typsend", oid},
                                                           {"typalign", character},
                                                           {"typstorage", character},
                                                           {"typbasetype", oid},
                                                           {"typtypmod", int4},
                                                           {"typcollation", oid}});
constexpr std::array kIndex = std::to_array<CatalogColumn>({{"indexrelid", oid},
                                                            {"indrelid", oid},
                                                            {"indnatts", int2},
                                                            {"indnkeyatts", int2},
                                                            {"indisunique", boolean},
                                                            {"indisprimary", boolean},
                                                            {"indimmediate", boolean},
                                                            {"indisvalid", boolean},
                                                            {"indisready", boolean},
                                                            {"indislive", boolean},
                                                            {"indisreplident", boolean},
                                                            {"indkey", int2vector}});
constexpr std::array kNamespace = std::to_array<CatalogColumn>({{"oid", oid}, {"nspname", name}});
constexpr std::array kEnum =
    std::to_array<CatalogColumn>({{"oid", oid}, {"enumtypid", oid}, {"enumsortorder", float4}, {"enumlabel", name}});
constexpr std::array kRange =
    std::to_array<CatalogColumn>({{"rngtypid", oid}, {"rngsubtype", oid}, {"rngmultitypid", oid}});
constexpr std::array kInherits = std::to_array<CatalogColumn>(
    {{"inhrelid", oid}, {"inhparent", oid}, {"inhseqno", int4}, {"inhdetachpending", boolean}});
constexpr std::array kExtension =
    std::to_array<CatalogColumn>({{"oid", oid}, {"extname", name}, {"extnamespace", oid}});

constexpr std::array<size_t, 1> kFirst = {0};
constexpr std::array<size_t, 2> kFirstTwo = {0, 1};
constexpr std::array<size_t, 2> kFirstAndThird = {0, 2};
constexpr std::array<size_t, 1> kThird = {2};

constexpr std::array<CatalogDescription, kCatalogs> kDescriptions = {{
    {Catalog::pg_class, "pg_class", 1259, true, kClass, kFirstTwo},
    {Catalog::pg_attribute, "pg_attribute", 1249, true, kAttribute, kFirst},
    {Catalog::pg_type, "pg_type", 1247, true, kType, kFirst},
    {Catalog::pg_index, "pg_index", 2610, false, kIndex, kFirstTwo},
    {Catalog::pg_namespace, "pg_namespace", 2615, false, kNamespace, kFirst},
    {Catalog::pg_enum, "pg_enum", 3501, false, kEnum, kFirstTwo},
    {Catalog::pg_range, "pg_range", 3541, false, kRange, kFirstAndThird},
    {Catalog::pg_inherits, "pg_inherits", 2611, false, kInherits, kFirstTwo},
    {Catalog::pg_extension, "pg_extension", 3079, false, kExtension, kThird},
}};

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The only element of an array, of which array_send of src/backend/utils/adt/arrayfuncs.c gave these digits.
std::optional<Value> parse_element(std::string_view digits) {
  constexpr size_t kHeaderBytes = 24;  // dimensions, flags, type, extent, lower bound; the element's length
  if (digits.size() % 2 != 0 || digits.size() < 2 * kHeaderBytes) return std::nullopt;
  std::string value(1, kSentElement);
  for (size_t at = 2 * kHeaderBytes; at < digits.size(); at += 2) {
    uint8_t byte = 0;
    const auto read = std::from_chars(digits.data() + at, digits.data() + at + 2, byte, 16);
    if (read.ec != std::errc{} || read.ptr != digits.data() + at + 2) return std::nullopt;
    value += static_cast<char>(byte);
  }
  return Value{std::move(value)};
}

// The kinds of a packed value.
enum : char { kNull = 'n', kInteger = 'i', kReal = 'r', kText = 't' };

template <typename Number>
void append(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Number>
std::optional<Number> take(std::string_view& bytes) {
  Number value{};
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::optional<Value> take_value(std::string_view& bytes) {
  const auto kind = take<char>(bytes);
  if (!kind) return std::nullopt;
  switch (*kind) {
    case kNull:
      return Value{};
    case kInteger: {
      const auto value = take<int64_t>(bytes);
      return value ? std::optional<Value>{*value} : std::nullopt;
    }
    case kReal: {
      const auto value = take<double>(bytes);
      return value ? std::optional<Value>{*value} : std::nullopt;
    }
    case kText: {
      const auto length = take<uint32_t>(bytes);
      if (!length || *length > bytes.size()) return std::nullopt;
      std::string text{bytes.substr(0, *length)};
      bytes.remove_prefix(*length);
      return Value{std::move(text)};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

const CatalogDescription& description_of(Catalog catalog) { return kDescriptions.at(static_cast<size_t>(catalog)); }

std::optional<Catalog> catalog_of(uint32_t oid) {
  for (const CatalogDescription& description : kDescriptions) {
    if (description.oid == oid) return description.catalog;
  }
  return std::nullopt;
}

std::optional<Value> parse_value(ColumnKind kind, std::string_view text) {
  switch (kind) {
    case boolean:
      return text == "t" || text == "f" ? std::optional<Value>{int64_t{text == "t"}} : std::nullopt;
    // No character at all is the one of number 0.
    case character:
      return text.size() > 1 ? std::nullopt : std::optional<Value>{int64_t{text.empty() ? 0 : text[0]}};
    case int2:
    case int4:
    case oid: {
      const auto value = number_of<int64_t>(text);
      return value ? std::optional<Value>{*value} : std::nullopt;
    }
    case float4: {
      const auto value = number_of<float>(text);
      return value ? std::optional<Value>{double{*value}} : std::nullopt;
    }
    case name:
    case int2vector:
      return Value{std::string{text}};
    case element:
      return parse_element(text);
  }
  return std::nullopt;
}

std::string packed(const Row& row) {
  std::string bytes;
  for (const Value& value : row) {
    if (const auto* const integer = std::get_if<int64_t>(&value)) {
      bytes += kInteger;
      append(bytes, *integer);
    } else if (const auto* const real = std::get_if<double>(&value)) {
      bytes += kReal;
      append(bytes, *real);
    } else if (const auto* const text = std::get_if<std::string>(&value)) {
      bytes += kText;
      append(bytes, static_cast<uint32_t>(text->size()));
      bytes += *text;
    } else {
      bytes += kNull;
    }
  }
  return bytes;
}

std::optional<Row> unpacked(std::string_view bytes) {
  Row row;
  while (!bytes.empty()) {
    auto value = take_value(bytes);
    if (!value) return std::nullopt;
    row.push_back(std::move(*value));
  }
  return row;
}

std::string comparable(const CatalogDescription& catalog, Row row) {
  for (size_t i = 0; i < std::min(row.size(), catalog.columns.size()); ++i) {
    if (catalog.columns[i].kind == element) row[i] = {};
  }
  return packed(row);
}

}  // namespace thalweg::dictionary
