#include <array>
#include <limits>

#include "rules/documents.h"
#include "rules/evaluators.h"
#include "rules/numeric.h"
#include "rules/text_input.h"

// jsonb, read only. To the server a scalar is an array of one element where it stands alone.

namespace thalweg::rules {

namespace {

bool is_scalar(DocumentKind kind) { return kind != DocumentKind::object && kind != DocumentKind::array; }

// The member's value; none: an empty text.
Failure member(const Datum& document, std::string_view key, std::string_view& value) {
  value = {};
  const DocumentKind kind = kind_of(document.text());
  if (kind == DocumentKind::corrupt) return Failure::corrupt;
  if (kind != DocumentKind::object) return Failure::none;
  DocumentParts parts(document.text());
  while (parts.next()) {
    if (!equals_unquoted(parts.key(), key)) continue;
    value = parts.value();
    return Failure::none;
  }
  return parts.is_corrupt() ? Failure::corrupt : Failure::none;
}

Failure count_of(const Datum& document, int64_t& count) {
  count = 0;
  DocumentParts parts(document.text());
  while (parts.next()) ++count;
  return parts.is_corrupt() ? Failure::corrupt : Failure::none;
}

// Elements count from 0, or from the last one as -1.
Failure element(const Datum& document, int64_t index, std::string_view& value) {
  value = {};
  const DocumentKind kind = kind_of(document.text());
  if (kind == DocumentKind::corrupt) return Failure::corrupt;
  if (kind == DocumentKind::object) return Failure::none;
  if (is_scalar(kind)) {
    if (index == 0 || index == -1) value = document.text();
    return Failure::none;
  }
  if (index < 0) {
    int64_t count = 0;
    if (const Failure failure = count_of(document, count); failure != Failure::none) return failure;
    index += count;
    if (index < 0) return Failure::none;
  }
  DocumentParts parts(document.text());
  while (parts.next()) {
    if (index-- > 0) continue;
    value = parts.value();
    return Failure::none;
  }
  return parts.is_corrupt() ? Failure::corrupt : Failure::none;
}

Failure as_document(std::string_view value, Datum& out) {
  if (value.empty()) out.state = State::null;
  return give_text(out, value);
}
Failure as_text(Scratch& scratch, std::string_view value, Datum& out) {
  if (value.empty() || value == "null") {
    out.state = State::null;
    return Failure::none;
  }
  return value.starts_with('"') ? unquoted(scratch, value, out) : give_text(out, value);
}

Failure object_field(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  std::string_view value;
  const Failure failure = member(a, b.text(), value);
  return failure != Failure::none ? failure : as_document(value, out);
}
Failure object_field_text(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  std::string_view value;
  const Failure failure = member(a, b.text(), value);
  return failure != Failure::none ? failure : as_text(scratch, value, out);
}
Failure array_element(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  std::string_view value;
  const Failure failure = element(a, b.integer, value);
  return failure != Failure::none ? failure : as_document(value, out);
}
Failure array_element_text(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  std::string_view value;
  const Failure failure = element(a, b.integer, value);
  return failure != Failure::none ? failure : as_text(scratch, value, out);
}

// A key of an object, or a string that is an element of an array.
Failure exists(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = 0;
  const DocumentKind kind = kind_of(a.text());
  if (kind == DocumentKind::corrupt) return Failure::corrupt;
  if (is_scalar(kind)) {
    out.integer = equals_unquoted(a.text(), b.text()) ? 1 : 0;
    return Failure::none;
  }
  DocumentParts parts(a.text());
  while (parts.next()) {
    if (!equals_unquoted(kind == DocumentKind::object ? parts.key() : parts.value(), b.text())) continue;
    out.integer = 1;
    return Failure::none;
  }
  return parts.is_corrupt() ? Failure::corrupt : Failure::none;
}

Failure type_of(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  switch (kind_of(a.text())) {
    case DocumentKind::object:
      return give_text(out, "object");
    case DocumentKind::array:
      return give_text(out, "array");
    case DocumentKind::string:
      return give_text(out, "string");
    case DocumentKind::number:
      return give_text(out, "number");
    case DocumentKind::boolean:
      return give_text(out, "boolean");
    case DocumentKind::null:
      return give_text(out, "null");
    case DocumentKind::corrupt:
      break;
  }
  return Failure::corrupt;
}

Failure array_length(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  const DocumentKind kind = kind_of(a.text());
  if (kind == DocumentKind::corrupt) return Failure::corrupt;
  return kind == DocumentKind::array ? count_of(a, out.integer) : Failure::invalid_parameter;
}

// Casts: of a document that is such a scalar.
Failure boolean_of(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  const DocumentKind kind = kind_of(a.text());
  if (kind == DocumentKind::corrupt) return Failure::corrupt;
  out.integer = a.text() == "true" ? 1 : 0;
  return kind == DocumentKind::boolean ? Failure::none : Failure::invalid_parameter;
}
Failure number_of(Scratch& scratch, const Datum& a, Datum& out) {
  const DocumentKind kind = kind_of(a.text());
  if (kind == DocumentKind::corrupt) return Failure::corrupt;
  if (kind != DocumentKind::number) return Failure::invalid_parameter;
  const Failure failure = numeric_from_text(scratch, a.text(), out);
  return failure == Failure::none || failure == Failure::too_large ? failure : Failure::corrupt;
}
Failure numeric_of(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return number_of(scratch, a, out);
}
template <typename Integer>
Failure integer_of(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  using Limits = std::numeric_limits<Integer>;
  Datum number;
  const Failure failure = number_of(scratch, a, number);
  return failure != Failure::none ? failure : numeric_to_integer(scratch, number, Limits::min(), Limits::max(), out);
}
template <Type Real>
Failure real_of(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  Datum number, text;
  if (const Failure failure = number_of(scratch, a, number); failure != Failure::none) return failure;
  if (const Failure failure = numeric_to_text(scratch, number, text); failure != Failure::none) return failure;
  return input(scratch, Real, text.text(), out);
}

constexpr std::array kEvaluators{Evaluator{"jsonb_object_field", object_field},
                                 Evaluator{"jsonb_object_field_text", object_field_text},
                                 Evaluator{"jsonb_array_element", array_element},
                                 Evaluator{"jsonb_array_element_text", array_element_text},
                                 Evaluator{"jsonb_exists", exists},
                                 Evaluator{"jsonb_typeof", type_of},
                                 Evaluator{"jsonb_array_length", array_length},
                                 Evaluator{"jsonb_bool", boolean_of},
                                 Evaluator{"jsonb_numeric", numeric_of},
                                 Evaluator{"jsonb_int2", integer_of<int16_t>},
                                 Evaluator{"jsonb_int4", integer_of<int32_t>},
                                 Evaluator{"jsonb_int8", integer_of<int64_t>},
                                 Evaluator{"jsonb_float4", real_of<Type::float4>},
                                 Evaluator{"jsonb_float8", real_of<Type::float8>}};

}  // namespace

std::span<const Evaluator> document_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
