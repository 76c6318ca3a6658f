#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "rules/value.h"

// PostgreSQL's operators, functions and casts as far as its resolution of types looks at them, with those that a
// condition cannot use: they take part in the choice.

namespace thalweg::rules {

inline constexpr size_t kArgumentsMax = 6;

// An operator (of one argument: left is none) or a function.
struct Candidate {
  std::string_view name;
  std::array<Type, kArgumentsMax> arguments;
  uint8_t count;
  Type result;
  std::string_view evaluator;  // pg_proc.prosrc; empty: not immutable
};

struct Cast {
  Type source;
  Type target;
  char context;  // i implicit, a assignment, e explicit
  char method;   // f function, b the bytes stay
  std::string_view evaluator;
};

std::span<const Candidate> operators_named(std::string_view name);  // arguments: left, right
std::span<const Candidate> functions_named(std::string_view name);
std::span<const Candidate> all_operators();
std::span<const Candidate> all_functions();
std::span<const Cast> all_casts();
const Cast* find_cast(Type source, Type target);

char category_of(Type type);
bool is_preferred(Type type);
bool is_polymorphic(Type type);
std::string_view name_of(Type type);
std::optional<Type> find_type(std::string_view name);  // "int4"
// Whether a condition can compute with values of the type.
bool is_supported(Type type);

}  // namespace thalweg::rules
