#include "control/transformation_definitions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace thalweg::control {
namespace {

using nlohmann::json;

constexpr size_t kTransformationsMax = 1000;  // of a table
constexpr size_t kIdentifierBytesMax = 63;
constexpr size_t kConstantBytesMax = size_t{64} << 10;
constexpr uint64_t kKeptMax = 1000;  // characters at each end
constexpr std::array<std::string_view, 3> kTypeNames = {"drop_column", "rename_column", "mask_column"};
constexpr std::array<std::string_view, 3> kMaskNames = {"null", "constant", "partial"};

template <typename Kind>
Kind read_kind(ObjectReader& reader, std::string_view member, const std::array<std::string_view, 3>& names) {
  const std::string name = reader.string(member, 1, kIdentifierBytesMax);
  const auto* const found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<Kind>(found - names.begin());
  if (!reader.failed()) reader.refuse(member, fmt::format("must be one of {}", fmt::join(names, ", ")));
  return {};
}

uint32_t read_kept(ObjectReader& reader, std::string_view member) {
  if (!reader.member(member, false)) return 0;
  const uint64_t characters = reader.unsigned_integer(member);
  if (characters > kKeptMax) reader.refuse(member, fmt::format("must be at most {}", kKeptMax));
  return static_cast<uint32_t>(std::min(characters, kKeptMax));
}

base::Result<TransformationDefinition> read_transformation(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  TransformationDefinition out;
  out.type = read_kind<TransformationType>(reader, "type", kTypeNames);
  out.column = reader.string("column", 1, kIdentifierBytesMax);
  if (out.type == TransformationType::rename_column) out.to = reader.string("to", 1, kIdentifierBytesMax);
  if (out.type == TransformationType::mask_column) {
    out.with = read_kind<MaskWith>(reader, "with", kMaskNames);
    if (out.with == MaskWith::constant) out.value = reader.string("value", 0, kConstantBytesMax);
    if (out.with == MaskWith::partial) {
      out.keep_first = read_kept(reader, "keep_first");
      out.keep_last = read_kept(reader, "keep_last");
    }
  }
  THALWEG_TRY(reader.finish());
  return out;
}

}  // namespace

base::Result<Transformations> read_transformations(ObjectReader& table) {
  Transformations out;
  const json* const value = table.member("transformations", false);
  if (!value) return out;
  const std::string pointer = table.pointer("transformations");
  if (!value->is_array() || value->size() > kTransformationsMax) {
    return std::unexpected(
        invalid_at(pointer, fmt::format("must be an array of at most {} transformations", kTransformationsMax)));
  }
  for (size_t i = 0; i < value->size(); ++i) {
    THALWEG_ASSIGN(TransformationDefinition one, read_transformation((*value)[i], fmt::format("{}/{}", pointer, i)));
    out.push_back(std::move(one));
  }
  return out;
}

json to_json(const Transformations& transformations) {
  json list = json::array();
  for (const TransformationDefinition& one : transformations) {
    json document = {{"type", kTypeNames[static_cast<size_t>(one.type)]}, {"column", one.column}};
    if (one.type == TransformationType::rename_column) document["to"] = one.to;
    if (one.type == TransformationType::mask_column) {
      document["with"] = kMaskNames[static_cast<size_t>(one.with)];
      if (one.with == MaskWith::constant) document["value"] = one.value;
      if (one.with == MaskWith::partial) {
        document["keep_first"] = one.keep_first;
        document["keep_last"] = one.keep_last;
      }
    }
    list.push_back(std::move(document));
  }
  return list;
}

}  // namespace thalweg::control
