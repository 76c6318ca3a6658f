#pragma once

#include <span>
#include <string_view>

#include "rules/value.h"

// PostgreSQL's functions, under the names that pg_proc.prosrc gives them.

namespace thalweg::rules {

enum class Collates : uint8_t {
  nothing,   // the result depends on no collation
  equality,  // right in every deterministic collation
  order,     // right in the collation "C" only
};

struct Evaluator {
  std::string_view name;
  Function function;
  Collates collates = Collates::nothing;
  bool reads_bytes = false;  // of texts: the result differs between encodings
};

// nullptr where a condition cannot use the function.
const Evaluator* find_evaluator(std::string_view name);

std::span<const Evaluator> integer_evaluators();
std::span<const Evaluator> real_evaluators();
std::span<const Evaluator> numeric_evaluators();
std::span<const Evaluator> text_evaluators();
std::span<const Evaluator> text_part_evaluators();
std::span<const Evaluator> time_evaluators();
std::span<const Evaluator> calendar_evaluators();
std::span<const Evaluator> bit_evaluators();
std::span<const Evaluator> byte_evaluators();
std::span<const Evaluator> digest_evaluators();
std::span<const Evaluator> document_evaluators();
std::span<const Evaluator> divisor_evaluators();

// Relations for comparisons: relation(x, 0) with x below, at or above zero.
struct Equal {
  static bool holds(int order) { return order == 0; }
};
struct NotEqual {
  static bool holds(int order) { return order != 0; }
};
struct Less {
  static bool holds(int order) { return order < 0; }
};
struct LessEqual {
  static bool holds(int order) { return order <= 0; }
};
struct Greater {
  static bool holds(int order) { return order > 0; }
};
struct GreaterEqual {
  static bool holds(int order) { return order >= 0; }
};

template <typename T>
int three_way(T a, T b) {
  return (a > b) - (a < b);
}

// A comparison of two values by Order: int (const Datum&, const Datum&).
template <auto Order, typename Relation>
Failure compare(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = Relation::holds(Order(a, b)) ? 1 : 0;
  return Failure::none;
}

inline int integer_order(const Datum& a, const Datum& b) { return three_way(a.integer, b.integer); }

}  // namespace thalweg::rules
