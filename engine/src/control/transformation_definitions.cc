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
constexpr size_t kColumnsMax = 1600;  // of a table, by PostgreSQL
constexpr size_t kConstantBytesMax = size_t{64} << 10;
constexpr uint64_t kKeptMax = 1000;  // characters at each end
constexpr size_t kKeyBytesMin = 32;  // fewer could be guessed
constexpr size_t kKeyBytesMax = 1024;
constexpr size_t kExpressionBytesMax = size_t{64} << 10;
constexpr std::array<std::string_view, 6> kTypeNames = {"drop_column",  "rename_column", "mask_column",
                                                        "keep_columns", "add_column",    "cast_column"};
constexpr std::array<std::string_view, 5> kMaskNames = {"null", "constant", "partial", "hash", "digits"};

template <typename Kind, size_t kCount>
Kind read_kind(ObjectReader& reader, std::string_view member, const std::array<std::string_view, kCount>& names) {
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

std::vector<std::string> read_columns(ObjectReader& reader) {
  const json* const value = reader.member("columns", true);
  if (!value) return {};
  const auto is_name = [](const json& name) {
    return name.is_string() && !name.get_ref<const std::string&>().empty() &&
           name.get_ref<const std::string&>().size() <= kIdentifierBytesMax;
  };
  if (value->is_array() && !value->empty() && value->size() <= kColumnsMax && std::ranges::all_of(*value, is_name)) {
    return value->get<std::vector<std::string>>();
  }
  reader.refuse("columns", fmt::format("must be an array of 1 to {} names", kColumnsMax));
  return {};
}

base::Result<TransformationDefinition> read_transformation(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  TransformationDefinition out;
  out.type = read_kind<TransformationType>(reader, "type", kTypeNames);
  if (out.type == TransformationType::keep_columns) {
    out.columns = read_columns(reader);
  } else {
    out.column = reader.string("column", 1, kIdentifierBytesMax);
  }
  if (out.type == TransformationType::add_column) {
    out.data_type = reader.string("data_type", 1, kIdentifierBytesMax);
    if (reader.member("expression", false)) {
      out.expression = reader.string("expression", 1, kExpressionBytesMax);
    } else {
      out.value = reader.string("value", 0, kConstantBytesMax);
    }
  }
  if (out.type == TransformationType::cast_column) out.data_type = reader.string("data_type", 1, kIdentifierBytesMax);
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
    THALWEG_ASSIGN(TransformationDefinition definition,
                   read_transformation((*value)[i], fmt::format("{}/{}", pointer, i)));
    out.push_back(std::move(definition));
  }
  return out;
}

json to_json(const Transformations& transformations) {
  json list = json::array();
  for (const TransformationDefinition& definition : transformations) {
    json document = {{"type", kTypeNames[static_cast<size_t>(definition.type)]}};
    if (definition.type == TransformationType::keep_columns) {
      document["columns"] = definition.columns;
    } else {
      document["column"] = definition.column;
    }
    if (definition.type == TransformationType::add_column) {
      document["data_type"] = definition.data_type;
      if (definition.expression.empty()) {
        document["value"] = definition.value;
      } else {
        document["expression"] = definition.expression;
      }
    }
    if (definition.type == TransformationType::cast_column) document["data_type"] = definition.data_type;
    if (definition.type == TransformationType::rename_column) document["to"] = definition.to;
    if (definition.type == TransformationType::mask_column) {
      document["with"] = kMaskNames[static_cast<size_t>(definition.with)];
      if (definition.with == MaskWith::constant) document["value"] = definition.value;
      if (definition.with == MaskWith::partial) {
        document["keep_first"] = definition.keep_first;
        document["keep_last"] = definition.keep_last;
      }
    }
    list.push_back(std::move(document));
  }
  return list;
}

bool needs_key(const Transformations& transformations) {
  return std::ranges::any_of(transformations, [](const TransformationDefinition& definition) {
    return definition.type == TransformationType::mask_column &&
           (definition.with == MaskWith::hash || definition.with == MaskWith::digits);
  });
}

std::string read_mask_key(ObjectReader& stream, bool is_needed) {
  if (!is_needed && !stream.member("mask_key", false)) return {};
  return stream.string("mask_key", kKeyBytesMin, kKeyBytesMax);
}

}  // namespace thalweg::control
