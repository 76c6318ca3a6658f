#include "rules/catalogue.h"

#include <algorithm>
#include <vector>

namespace thalweg::rules {

namespace {

constexpr Type type(uint32_t oid) { return static_cast<Type>(oid); }

template <typename... Oids>
Candidate function_of(std::string_view name, uint32_t result, std::string_view evaluator, Oids... oids) {
  return {.name = name,
          .arguments = {type(static_cast<uint32_t>(oids))...},
          .count = sizeof...(oids),
          .result = type(result),
          .evaluator = evaluator};
}

Candidate operator_of(std::string_view name, uint32_t left, uint32_t right, uint32_t result,
                      std::string_view evaluator) {
  return {
      .name = name, .arguments = {type(left), type(right)}, .count = 2, .result = type(result), .evaluator = evaluator};
}

std::vector<Candidate> by_name(std::vector<Candidate> candidates) {
  std::ranges::stable_sort(candidates, {}, &Candidate::name);
  return candidates;
}

std::span<const Candidate> named(std::span<const Candidate> candidates, std::string_view name) {
  const auto found = std::ranges::equal_range(candidates, name, {}, &Candidate::name);
  return {found.begin(), found.end()};
}

struct TypeEntry {
  Type type;
  std::string_view name;
  char category;
  bool preferred;
};

constexpr TypeEntry kTypes[] = {
#define CATALOGUE_TYPE(oid, name, category, preferred) {type(oid), name, category, preferred},
#include "rules/catalogue_types.inc"
#undef CATALOGUE_TYPE
};

constexpr Cast kCasts[] = {
#define CATALOGUE_CAST(source, target, context, method, evaluator) \
  {type(source), type(target), context, method, evaluator},
#include "rules/catalogue_casts.inc"
#undef CATALOGUE_CAST
};

const TypeEntry* find_entry(Type wanted) {
  const auto* const found = std::ranges::find(kTypes, wanted, &TypeEntry::type);
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace

std::span<const Candidate> all_operators() {
  static const std::vector<Candidate> all = by_name({
#define CATALOGUE_OPERATOR(...) operator_of(__VA_ARGS__),
#include "rules/catalogue_operators.inc"
#undef CATALOGUE_OPERATOR
  });
  return all;
}

std::span<const Candidate> all_functions() {
  static const std::vector<Candidate> all = by_name({
#define CATALOGUE_FUNCTION(...) function_of(__VA_ARGS__),
#include "rules/catalogue_functions.inc"
#undef CATALOGUE_FUNCTION
  });
  return all;
}

std::span<const Cast> all_casts() { return kCasts; }

std::span<const Candidate> operators_named(std::string_view name) { return named(all_operators(), name); }
std::span<const Candidate> functions_named(std::string_view name) { return named(all_functions(), name); }

const Cast* find_cast(Type source, Type target) {
  const auto* const found =
      std::ranges::find_if(kCasts, [&](const Cast& cast) { return cast.source == source && cast.target == target; });
  return found == std::end(kCasts) ? nullptr : found;
}

char category_of(Type wanted) {
  if (wanted == Type::any_enum) return 'E';
  const TypeEntry* const entry = find_entry(wanted);
  return entry == nullptr ? 'X' : entry->category;
}
bool is_preferred(Type wanted) {
  const TypeEntry* const entry = find_entry(wanted);
  return entry != nullptr && entry->preferred;
}
bool is_polymorphic(Type wanted) { return category_of(wanted) == 'P'; }
std::string_view name_of(Type wanted) {
  if (wanted == Type::unknown) return "unknown";
  if (wanted == Type::any_enum) return "enum";
  const TypeEntry* const entry = find_entry(wanted);
  return entry == nullptr ? "another type" : entry->name;
}
std::optional<Type> find_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, &TypeEntry::name);
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->type);
}
bool is_supported(Type wanted) {
  switch (wanted) {
    case Type::boolean:
    case Type::bytea:
    case Type::int8:
    case Type::int2:
    case Type::int4:
    case Type::text:
    case Type::float4:
    case Type::float8:
    case Type::bpchar:
    case Type::varchar:
    case Type::date:
    case Type::time:
    case Type::timestamp:
    case Type::timestamptz:
    case Type::interval:
    case Type::numeric:
    case Type::uuid:
    case Type::jsonb:
    case Type::any_enum:
      return true;
    default:
      return false;
  }
}

}  // namespace thalweg::rules
