#include "rules/casting.h"

#include <algorithm>
#include <cstdio>

#include "rules/numeric.h"
#include "rules/text_input.h"

namespace thalweg::rules {

namespace {

template <Type Target>
Failure read_text(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return input(scratch, Target, a.text(), out);
}

Failure integer_text(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  constexpr size_t kDigitsMax = 24;
  char* const text = scratch.take(kDigitsMax);
  if (text == nullptr) return Failure::too_large;
  const int size = std::snprintf(text, kDigitsMax, "%lld", static_cast<long long>(a.integer));
  return give_text(out, {text, static_cast<size_t>(size)});
}

Failure numeric_text(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return numeric_to_text(scratch, a, out);
}

Failure uuid_text(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  char* const text = scratch.take(40);
  if (text == nullptr) return Failure::too_large;
  size_t size = 0;
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[size++] = '-';
    for (const int digit : {static_cast<unsigned char>(a.data[i]) >> 4, a.data[i] & 15})
      text[size++] = "0123456789abcdef"[digit];
  }
  return give_text(out, {text, size});
}

Failure document_text(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return give_text(out, a.text());
}

constexpr TextCast kFromText[] = {
    {Type::boolean, {"boolin", read_text<Type::boolean>}},     {Type::int2, {"int2in", read_text<Type::int2>}},
    {Type::int4, {"int4in", read_text<Type::int4>}},           {Type::int8, {"int8in", read_text<Type::int8>}},
    {Type::float4, {"float4in", read_text<Type::float4>}},     {Type::float8, {"float8in", read_text<Type::float8>}},
    {Type::numeric, {"numeric_in", read_text<Type::numeric>}}, {Type::uuid, {"uuid_in", read_text<Type::uuid>}}};
constexpr TextCast kToText[] = {{Type::int2, {"int2out", integer_text}}, {Type::int4, {"int4out", integer_text}},
                                {Type::int8, {"int8out", integer_text}}, {Type::numeric, {"numeric_out", numeric_text}},
                                {Type::uuid, {"uuid_out", uuid_text}},   {Type::jsonb, {"jsonb_out", document_text}}};

const Evaluator* find(std::span<const TextCast> casts, Type type) {
  const auto found = std::ranges::find(casts, type, &TextCast::type);
  return found == casts.end() ? nullptr : &found->evaluator;
}

std::string no_cast(Type source, Type target) {
  return "the rule language cannot cast " + std::string(name_of(source)) + " to " + std::string(name_of(target)) +
         ": PostgreSQL has no such cast, or its result depends on settings";
}

}  // namespace

std::span<const TextCast> casts_from_text() { return kFromText; }
std::span<const TextCast> casts_to_text() { return kToText; }

Typed Casting::call(const Evaluator* evaluator, Type result, Typed node) const {
  Typed made;
  made.meaning = Meaning::call;
  made.type = result;
  made.offset = node.offset;
  made.evaluator = evaluator;
  if (is_text(result)) {
    made.strength = node.strength == Strength::none ? Strength::by_default : node.strength;
    made.collation = node.strength == Strength::none ? table_.database_collation : node.collation;
  }
  made.arguments.push_back(std::move(node));
  return made;
}

Ruled<Typed> Casting::literal(Typed node, Type target, const RuleColumn* enumeration) {
  node.type = target;
  if (!is_text(target)) {
    node.strength = Strength::none;
  } else if (node.strength != Strength::explicitly) {
    node.strength = Strength::by_default;
    node.collation = table_.database_collation;
  }
  if (node.constant.state != State::value) return node;
  if (target == Type::any_enum) {
    node.enumeration = enumeration;
    if (enumeration == nullptr ||
        std::ranges::find(enumeration->enum_labels, node.constant.text()) == enumeration->enum_labels.end()) {
      return refuse("the enum has no label '" + std::string(node.constant.text()) + "'", node.offset);
    }
    return node;
  }
  if (target == Type::jsonb) return refuse("the rule language has no constants of type jsonb", node.offset);
  if (!is_supported(target))
    return refuse("the rule language cannot use the type " + std::string(name_of(target)), node.offset);
  Datum value;
  scratch_.clear();
  if (const Failure failure = input(scratch_, target, node.constant.text(), value); failure != Failure::none) {
    return refuse("'" + std::string(node.constant.text().substr(0, 100)) + "' is no value of type " +
                      std::string(name_of(target)) + ": " + std::string(message_of(failure)),
                  node.offset);
  }
  if (is_text(target) || target == Type::numeric || target == Type::bytea || target == Type::uuid) {
    strings_.emplace_back(value.text());
    give_text(value, strings_.back());
  }
  node.constant = value;
  return node;
}

Ruled<Typed> Casting::to(Typed node, Type target, const RuleColumn* enumeration) {
  if (is_polymorphic(target) && node.type != Type::unknown && node.type != Type::any_enum) return node;
  if (name_of(target) == "anyenum") target = Type::any_enum;
  if (node.type == Type::unknown) return literal(std::move(node), target, enumeration);
  if (node.type == target) {
    if (target == Type::any_enum && enumeration != nullptr && node.enumeration->type != enumeration->type) {
      return refuse("two enum types do not compare", node.offset);
    }
    return node;
  }
  const Cast* const cast = find_cast(node.type, target);
  if (cast == nullptr || !is_supported(target)) return refuse(no_cast(node.type, target), node.offset);
  if (cast->method == 'b') {
    node.type = target;
    return node;
  }
  const Evaluator* const evaluator = find_evaluator(cast->evaluator);
  if (evaluator == nullptr) return refuse(no_cast(node.type, target), node.offset);
  return call(evaluator, target, std::move(node));
}

Ruled<Typed> Casting::through_text(Typed node, Type target) {
  const bool from_text = is_text(node.type);
  const Evaluator* const evaluator = from_text ? find(kFromText, target) : find(kToText, node.type);
  if (evaluator == nullptr || (!from_text && !is_text(target))) return refuse(no_cast(node.type, target), node.offset);
  return call(evaluator, target, std::move(node));
}

Ruled<Typed> Casting::explicitly(Typed node, const Expression& cast) {
  const bool is_char = cast.text == "char";
  const Type target = is_char ? Type::bpchar : find_type(cast.text).value_or(Type::none);
  if (!is_supported(target)) return refuse("the rule language cannot use the type " + cast.text, cast.offset);
  const bool known = node.type == Type::unknown || node.type == target || find_cast(node.type, target) != nullptr;
  auto converted = known ? to(std::move(node), target) : through_text(std::move(node), target);
  if (!converted) return converted;
  if (is_char && cast.modifiers.empty()) return to_size(std::move(*converted), {1});
  return cast.modifiers.empty() ? std::move(converted) : to_size(std::move(*converted), cast.modifiers);
}

Ruled<Typed> Casting::to_size(Typed node, const std::vector<int32_t>& modifiers) {
  constexpr int32_t kLengthMax = 10'485'760;
  constexpr int32_t kPrecisionMax = 1000;
  const int32_t first = modifiers[0];
  const int32_t second = modifiers.size() > 1 ? modifiers[1] : 0;
  int64_t modifier = first;
  std::string_view evaluator;
  if (node.type == Type::numeric && modifiers.size() <= 2 && first >= 1 && first <= kPrecisionMax &&
      second <= kPrecisionMax) {
    modifier = int64_t{first} << 16 | second;
    evaluator = "numeric";
  } else if ((node.type == Type::varchar || node.type == Type::bpchar) && modifiers.size() == 1 && first >= 1 &&
             first <= kLengthMax) {
    evaluator = node.type == Type::varchar ? "varchar" : "bpchar";
  } else {
    return refuse("the rule language cannot use this size of the type " + std::string(name_of(node.type)), node.offset);
  }
  const Type type = node.type;
  Typed sized = call(find_evaluator(evaluator), type, std::move(node));
  Typed size;
  size.type = Type::int8;
  size.constant.integer = modifier;
  size.constant.state = State::value;
  sized.arguments.push_back(std::move(size));
  return sized;
}

}  // namespace thalweg::rules
