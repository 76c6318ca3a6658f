#include "rules/type_names.h"

#include <array>

namespace thalweg::rules {

namespace {

struct TypeName {
  std::array<std::string_view, 4> words;  // empty: no more
  std::string_view type;
};

// Longer spellings before their beginnings.
constexpr std::array kTypeNames{
    TypeName{{"timestamp", "with", "time", "zone"}, "timestamptz"},
    TypeName{{"timestamp", "without", "time", "zone"}, "timestamp"},
    TypeName{{"time", "without", "time", "zone"}, "time"},
    TypeName{{"double", "precision"}, "float8"},
    TypeName{{"character", "varying"}, "varchar"},
    TypeName{{"char", "varying"}, "varchar"},
    TypeName{{"bool"}, "bool"},
    TypeName{{"boolean"}, "bool"},
    TypeName{{"smallint"}, "int2"},
    TypeName{{"int2"}, "int2"},
    TypeName{{"integer"}, "int4"},
    TypeName{{"int"}, "int4"},
    TypeName{{"int4"}, "int4"},
    TypeName{{"bigint"}, "int8"},
    TypeName{{"int8"}, "int8"},
    TypeName{{"real"}, "float4"},
    TypeName{{"float4"}, "float4"},
    TypeName{{"float8"}, "float8"},
    TypeName{{"numeric"}, "numeric"},
    TypeName{{"decimal"}, "numeric"},
    TypeName{{"dec"}, "numeric"},
    TypeName{{"text"}, "text"},
    TypeName{{"varchar"}, "varchar"},
    TypeName{{"character"}, "char"},
    TypeName{{"char"}, "char"},
    TypeName{{"bpchar"}, "bpchar"},
    TypeName{{"bytea"}, "bytea"},
    TypeName{{"uuid"}, "uuid"},
    TypeName{{"date"}, "date"},
    TypeName{{"time"}, "time"},
    TypeName{{"timestamp"}, "timestamp"},
    TypeName{{"timestamptz"}, "timestamptz"},
    TypeName{{"interval"}, "interval"},
};

}  // namespace

std::optional<std::string_view> find_type_name(const std::function<std::string_view(size_t)>& word, size_t& words) {
  for (const TypeName& name : kTypeNames) {
    size_t matched = 0;
    while (matched < name.words.size() && !name.words[matched].empty() && word(matched) == name.words[matched]) {
      ++matched;
    }
    if (matched < name.words.size() && !name.words[matched].empty()) continue;
    words = matched;
    return name.type;
  }
  return std::nullopt;
}

}  // namespace thalweg::rules
