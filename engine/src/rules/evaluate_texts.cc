#include <algorithm>
#include <array>

#include "rules/evaluators.h"
#include "rules/like.h"
#include "rules/utf8.h"

// text, varchar, bpchar, bytea, uuid and labels of enums. Text is UTF-8.

namespace thalweg::rules {

namespace {

std::string_view without_blanks(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

int sign_of(int order) { return (order > 0) - (order < 0); }
int byte_order(const Datum& a, const Datum& b) { return sign_of(a.text().compare(b.text())); }
int padded_order(const Datum& a, const Datum& b) {
  return sign_of(without_blanks(a.text()).compare(without_blanks(b.text())));
}

Failure concatenate(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  char* const bytes = scratch.take(size_t{a.size} + b.size);
  if (bytes == nullptr) return Failure::too_large;
  a.text().copy(bytes, a.size);
  b.text().copy(bytes + a.size, b.size);
  return give_text(out, {bytes, size_t{a.size} + b.size});
}

template <bool Wanted>
Failure like(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  bool matches = false;
  const Failure failure = match_like(scratch, a.text(), b.text(), matches);
  out.integer = matches == Wanted ? 1 : 0;
  return failure;
}

template <char First, char Last, int Shift>
Failure fold(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  char* const bytes = scratch.take(a.size);
  if (bytes == nullptr) return Failure::too_large;
  for (size_t i = 0; i < a.size; ++i) {
    const char c = a.data[i];
    bytes[i] = c >= First && c <= Last ? static_cast<char>(c + Shift) : c;
  }
  return give_text(out, {bytes, a.size});
}
constexpr Function lower = fold<'A', 'Z', 'a' - 'A'>;
constexpr Function upper = fold<'a', 'z', 'A' - 'a'>;

template <bool Wanted>
Failure like_in_any_case(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  Datum text, pattern;
  if (const Failure failure = lower(scratch, a, a, a, text); failure != Failure::none) return failure;
  if (const Failure failure = lower(scratch, b, b, b, pattern); failure != Failure::none) return failure;
  return like<Wanted>(scratch, text, pattern, b, out);
}

Failure escape(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return with_backslashes(scratch, a.text(), b.text(), out);
}

Failure length(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = characters(a.text());
  return Failure::none;
}
Failure padded_length(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = characters(without_blanks(a.text()));
  return Failure::none;
}
Failure byte_length(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = a.size;
  return Failure::none;
}

Failure cut(std::string_view text, int64_t start, int64_t end, Datum& out) {  // characters from 1, `end` excluded
  start = std::max<int64_t>(start, 1);
  if (end <= start) return give_text(out, {});
  const size_t first = bytes_of(text, start - 1);
  return give_text(out, text.substr(first, bytes_of(text.substr(first), end - start)));
}
Failure substring(Scratch&, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  if (c.integer < 0) return Failure::invalid_substring;
  return cut(a.text(), b.integer, b.integer + c.integer, out);
}
Failure substring_from(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return cut(a.text(), b.integer, INT64_MAX, out);
}
Failure left(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const int64_t count = b.integer < 0 ? std::max<int64_t>(characters(a.text()) + b.integer, 0) : b.integer;
  return cut(a.text(), 1, 1 + count, out);
}
Failure right(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const int64_t skipped = b.integer < 0 ? -b.integer : std::max<int64_t>(characters(a.text()) - b.integer, 0);
  return cut(a.text(), 1 + skipped, INT64_MAX, out);
}

Failure position(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const size_t found = find_text(a.text(), b.text());
  out.integer = found == std::string_view::npos ? 0 : characters(a.text().substr(0, found)) + 1;
  return Failure::none;
}

Failure replace(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  if (a.size == 0 || b.size == 0) return give_text(out, a.text());
  size_t found = 0;
  for (size_t at = 0; (at = find_text(a.text(), b.text(), at)) != std::string_view::npos; at += b.size) ++found;
  const size_t size = a.size - found * b.size + found * c.size;
  char* const bytes = scratch.take(size);
  if (bytes == nullptr) return Failure::too_large;
  size_t written = 0;
  size_t from = 0;
  for (size_t at = 0; (at = find_text(a.text(), b.text(), from)) != std::string_view::npos; from = at + b.size) {
    written += a.text().substr(from, at - from).copy(bytes + written, at - from);
    written += c.text().copy(bytes + written, c.size);
  }
  written += a.text().substr(from).copy(bytes + written, a.size - from);
  return give_text(out, {bytes, written});
}

Failure reverse(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  char* const bytes = scratch.take(a.size);
  if (bytes == nullptr) return Failure::too_large;
  for (size_t at = 0; at < a.size;) {
    const std::string_view character = a.text().substr(at, character_bytes(a.text().substr(at)));
    character.copy(bytes + (a.size - at - character.size()), character.size());
    at += character.size();
  }
  return give_text(out, {bytes, a.size});
}

Failure starts_with(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = a.text().starts_with(b.text()) ? 1 : 0;
  return Failure::none;
}

bool holds(std::string_view set, std::string_view character) {
  for (; !set.empty(); set.remove_prefix(character_bytes(set))) {
    if (set.substr(0, character_bytes(set)) == character) return true;
  }
  return false;
}
Failure trim_left(Scratch& scratch, std::string_view& text, std::string_view set) {
  while (!text.empty()) {
    if (!scratch.spend(set.size())) return Failure::too_costly;
    const size_t bytes = character_bytes(text);
    if (!holds(set, text.substr(0, bytes))) break;
    text.remove_prefix(bytes);
  }
  return Failure::none;
}
Failure trim_right(Scratch& scratch, std::string_view& text, std::string_view set) {
  while (!text.empty()) {
    if (!scratch.spend(set.size())) return Failure::too_costly;
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!holds(set, text.substr(start))) break;
    text.remove_suffix(text.size() - start);
  }
  return Failure::none;
}
template <bool Left, bool Right>
Failure trim(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  std::string_view text = a.text();
  Failure failure = Failure::none;
  if (Left) failure = trim_left(scratch, text, b.text());
  if (Right && failure == Failure::none) failure = trim_right(scratch, text, b.text());
  return failure == Failure::none ? give_text(out, text) : failure;
}
template <bool Left, bool Right>
Failure trim_blanks(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  std::string_view text = a.text();
  while (Left && text.starts_with(' ')) text.remove_prefix(1);
  if (Right) text = without_blanks(text);
  return give_text(out, text);
}

// A cast to varchar(b): cut.
Failure to_length(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return cut(a.text(), 1, 1 + b.integer, out);
}
// A cast to char(b): cut or filled with blanks.
Failure to_padded(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const int64_t missing = b.integer - characters(a.text());
  if (missing <= 0) return cut(a.text(), 1, 1 + b.integer, out);
  const size_t size = a.size + static_cast<size_t>(missing);
  char* const bytes = scratch.take(size);
  if (bytes == nullptr) return Failure::too_large;
  a.text().copy(bytes, a.size);
  std::fill(bytes + a.size, bytes + size, ' ');
  return give_text(out, {bytes, size});
}

constexpr Collates kEquality = Collates::equality;
constexpr Collates kOrder = Collates::order;

constexpr std::array kEvaluators{Evaluator{"texteq", compare<byte_order, Equal>, kEquality},
                                 Evaluator{"textne", compare<byte_order, NotEqual>, kEquality},
                                 Evaluator{"text_lt", compare<byte_order, Less>, kOrder},
                                 Evaluator{"text_le", compare<byte_order, LessEqual>, kOrder},
                                 Evaluator{"text_gt", compare<byte_order, Greater>, kOrder},
                                 Evaluator{"text_ge", compare<byte_order, GreaterEqual>, kOrder},
                                 Evaluator{"bpchareq", compare<padded_order, Equal>, kEquality},
                                 Evaluator{"bpcharne", compare<padded_order, NotEqual>, kEquality},
                                 Evaluator{"bpcharlt", compare<padded_order, Less>, kOrder},
                                 Evaluator{"bpcharle", compare<padded_order, LessEqual>, kOrder},
                                 Evaluator{"bpchargt", compare<padded_order, Greater>, kOrder},
                                 Evaluator{"bpcharge", compare<padded_order, GreaterEqual>, kOrder},
                                 Evaluator{"byteaeq", compare<byte_order, Equal>},
                                 Evaluator{"byteane", compare<byte_order, NotEqual>},
                                 Evaluator{"bytealt", compare<byte_order, Less>},
                                 Evaluator{"byteale", compare<byte_order, LessEqual>},
                                 Evaluator{"byteagt", compare<byte_order, Greater>},
                                 Evaluator{"byteage", compare<byte_order, GreaterEqual>},
                                 Evaluator{"uuid_eq", compare<byte_order, Equal>},
                                 Evaluator{"uuid_ne", compare<byte_order, NotEqual>},
                                 Evaluator{"uuid_lt", compare<byte_order, Less>},
                                 Evaluator{"uuid_le", compare<byte_order, LessEqual>},
                                 Evaluator{"uuid_gt", compare<byte_order, Greater>},
                                 Evaluator{"uuid_ge", compare<byte_order, GreaterEqual>},
                                 Evaluator{"enum_eq", compare<byte_order, Equal>},
                                 Evaluator{"enum_ne", compare<byte_order, NotEqual>},
                                 Evaluator{"textcat", concatenate},
                                 Evaluator{"byteacat", concatenate},
                                 Evaluator{"textlike", like<true>, kEquality},
                                 Evaluator{"textnlike", like<false>, kEquality},
                                 Evaluator{"bpcharlike", like<true>, kEquality},
                                 Evaluator{"bpcharnlike", like<false>, kEquality},
                                 Evaluator{"texticlike", like_in_any_case<true>, kOrder},
                                 Evaluator{"texticnlike", like_in_any_case<false>, kOrder},
                                 Evaluator{"bpchariclike", like_in_any_case<true>, kOrder},
                                 Evaluator{"bpcharicnlike", like_in_any_case<false>, kOrder},
                                 Evaluator{"like_escape", escape},
                                 Evaluator{"lower", lower, kOrder},
                                 Evaluator{"upper", upper, kOrder},
                                 Evaluator{"textlen", length},
                                 Evaluator{"bpcharlen", padded_length},
                                 Evaluator{"textoctetlen", byte_length, Collates::nothing, true},
                                 Evaluator{"bpcharoctetlen", byte_length, Collates::nothing, true},
                                 Evaluator{"byteaoctetlen", byte_length},
                                 Evaluator{"text_substr", substring},
                                 Evaluator{"text_substr_no_len", substring_from},
                                 Evaluator{"text_left", left},
                                 Evaluator{"text_right", right},
                                 Evaluator{"textpos", position, kEquality},
                                 Evaluator{"replace_text", replace, kEquality},
                                 Evaluator{"text_reverse", reverse},
                                 Evaluator{"text_starts_with", starts_with, kEquality},
                                 Evaluator{"btrim", trim<true, true>},
                                 Evaluator{"ltrim", trim<true, false>},
                                 Evaluator{"rtrim", trim<false, true>},
                                 Evaluator{"btrim1", trim_blanks<true, true>},
                                 Evaluator{"ltrim1", trim_blanks<true, false>},
                                 Evaluator{"rtrim1", trim_blanks<false, true>},
                                 Evaluator{"varchar", to_length},
                                 Evaluator{"bpchar", to_padded}};

}  // namespace

std::span<const Evaluator> text_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
