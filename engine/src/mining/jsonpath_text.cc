#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "mining/conversions.h"
#include "wal/little_endian.h"

// jsonpath_send of src/backend/utils/adt/jsonpath.c: a version, then the text. A path (src/include/utils/jsonpath.h) is
// a sequence of items, each with its kind, the place of the next one, and what belongs to it, such as the places of its
// operands. Places count from the item that names them, and are behind it.

namespace thalweg::mining {

namespace {

// In the order of JsonPathItemType.
enum class Item : uint8_t {
  null,
  string,
  numeric,
  boolean,
  both,
  either,
  negated,
  is_unknown,
  equal,
  not_equal,
  less,
  greater,
  less_or_equal,
  greater_or_equal,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  plus,
  minus,
  any_array,
  any_key,
  index_array,
  any,
  key,
  current,
  root,
  variable,
  filter,
  exists,
  type,
  size,
  abs,
  floor,
  ceiling,
  to_double,
  datetime,
  key_value,
  subscript,
  last,
  starts_with,
  like_regex,
};

// Texts of items that have but one, and of operators.
struct Word {
  Item item;
  std::string_view text;
};
constexpr std::array kPlain = std::to_array<Word>({{Item::null, "null"},
                                                   {Item::any_array, "[*]"},
                                                   {Item::current, "@"},
                                                   {Item::root, "$"},
                                                   {Item::type, ".type()"},
                                                   {Item::size, ".size()"},
                                                   {Item::abs, ".abs()"},
                                                   {Item::floor, ".floor()"},
                                                   {Item::ceiling, ".ceiling()"},
                                                   {Item::to_double, ".double()"},
                                                   {Item::key_value, ".keyvalue()"},
                                                   {Item::last, "last"}});
constexpr std::array kOperators = std::to_array<Word>({{Item::both, " && "},
                                                       {Item::either, " || "},
                                                       {Item::equal, " == "},
                                                       {Item::not_equal, " != "},
                                                       {Item::less, " < "},
                                                       {Item::greater, " > "},
                                                       {Item::less_or_equal, " <= "},
                                                       {Item::greater_or_equal, " >= "},
                                                       {Item::add, " + "},
                                                       {Item::subtract, " - "},
                                                       {Item::multiply, " * "},
                                                       {Item::divide, " / "},
                                                       {Item::modulo, " % "},
                                                       {Item::starts_with, " starts with "}});

template <size_t kWords>
std::string_view word_of(const std::array<Word, kWords>& words, Item item) {
  for (const Word& word : words) {
    if (word.item == item) return word.text;
  }
  return {};
}

int priority(Item item) {
  switch (item) {
    case Item::either:
      return 0;
    case Item::both:
      return 1;
    case Item::equal:
    case Item::not_equal:
    case Item::less:
    case Item::greater:
    case Item::less_or_equal:
    case Item::greater_or_equal:
    case Item::starts_with:
      return 2;
    case Item::add:
    case Item::subtract:
      return 3;
    case Item::multiply:
    case Item::divide:
    case Item::modulo:
      return 4;
    case Item::plus:
    case Item::minus:
      return 5;
    default:
      return 6;
  }
}

// Prints without recursion: how deep it goes is the value's affair. Owner: the conversion of one value.
class PathPrinter {
 public:
  PathPrinter(std::span<const std::byte> items, std::string& out) : items_(items), out_(out) {}

  bool print() {
    steps_.push_back({.item = 0});
    // An item takes two words and belongs to one place.
    constexpr size_t kItemBytes = 8;
    size_t left = items_.size() / kItemBytes;
    while (!steps_.empty()) {
      const Step step = std::move(steps_.back());
      steps_.pop_back();
      out_ += step.text;
      if (!step.item) continue;
      if (left-- == 0 || !visit(*step.item, step.in_key, step.has_brackets)) return false;
      for (; !after_.empty(); after_.pop_back()) steps_.push_back(std::move(after_.back()));
    }
    return true;
  }

 private:
  // A text, then an item.
  struct Step {
    std::string text = {};
    std::optional<size_t> item = {};
    bool in_key = false;  // it follows another one
    bool has_brackets = true;
  };

  std::optional<uint32_t> word(size_t at) const {
    if (at > items_.size() || items_.size() - at < sizeof(uint32_t)) return std::nullopt;
    return wal::load<uint32_t>(items_, at);
  }
  // The place of an item that another one names. Null: none is there.
  std::optional<size_t> place(size_t from, size_t named_at) const {
    const auto offset = word(named_at);
    if (!offset || *offset == 0 || *offset >= items_.size() - from) return std::nullopt;
    return from + *offset;
  }
  std::optional<std::string_view> text(size_t at) const {
    const auto length = word(at);
    if (!length || *length > items_.size() - at - sizeof(uint32_t)) return std::nullopt;
    return text_of(items_.subspan(at + sizeof(uint32_t), *length));
  }
  Item kind(size_t at) const { return static_cast<Item>(wal::load<uint8_t>(items_, at)); }

  void then(std::string text) { after_.push_back({.text = std::move(text)}); }
  void then_item(size_t item, bool has_brackets = false) {
    after_.push_back({.item = item, .has_brackets = has_brackets});
  }

  // Prints what an item begins with, and leaves the rest in after_.
  bool visit(size_t at, bool in_key, bool has_brackets) {
    const size_t next_at = (at + 1 + 3) / 4 * 4;
    const size_t payload = next_at + sizeof(uint32_t);
    const auto next = word(next_at);
    if (!next) return false;
    const Item item = kind(at);
    // Its point could be that of what follows.
    const bool is_number_before = item == Item::numeric && *next != 0;
    if (is_number_before) out_ += '(';
    if (const std::string_view plain = word_of(kPlain, item); !plain.empty()) {
      out_ += plain;
    } else if (!word_of(kOperators, item).empty()) {
      if (!visit_operator(at, payload, has_brackets)) return false;
    } else if (!visit_other(at, payload, in_key, has_brackets)) {
      return false;
    }
    if (is_number_before) out_ += ')';
    if (*next == 0) return true;
    const auto following = place(at, next_at);
    if (!following) return false;
    after_.push_back({.item = *following, .in_key = true});
    return true;
  }

  bool visit_operator(size_t at, size_t payload, bool has_brackets) {
    const Item item = kind(at);
    const auto left = place(at, payload);
    const auto right = place(at, payload + sizeof(uint32_t));
    if (!left || !right) return false;
    if (has_brackets) out_ += '(';
    then_item(*left, priority(kind(*left)) <= priority(item));
    then(std::string{word_of(kOperators, item)});
    then_item(*right, priority(kind(*right)) <= priority(item));
    if (has_brackets) then(")");
    return true;
  }

  // One operand between two texts.
  bool visit_unary(size_t at, size_t payload, std::string_view before, std::string after) {
    const auto operand = place(at, payload);
    if (!operand) return false;
    out_ += before;
    then_item(*operand);
    then(std::move(after));
    return true;
  }

  bool visit_other(size_t at, size_t payload, bool in_key, bool has_brackets) {
    switch (const Item item = kind(at)) {
      case Item::string: {
        const auto value = text(payload);
        return value && append_json_string(*value, out_);
      }
      case Item::key:
      case Item::variable: {
        const auto value = text(payload);
        if (item == Item::variable) out_ += '$';
        if (item == Item::key && in_key) out_ += '.';
        return value && append_json_string(*value, out_);
      }
      case Item::numeric:
        return payload <= items_.size() && append_numeric_text(items_.subspan(payload), out_) &&
               out_.size() <= kSentBytesMax;
      case Item::boolean:
        if (payload >= items_.size()) return false;
        out_ += items_[payload] != std::byte{0} ? "true" : "false";
        return true;
      case Item::negated:
        return visit_unary(at, payload, "!(", ")");
      case Item::is_unknown:
        return visit_unary(at, payload, "(", ") is unknown");
      case Item::filter:
        return visit_unary(at, payload, "?(", ")");
      case Item::exists:
        return visit_unary(at, payload, "exists (", ")");
      case Item::datetime:
        if (word(payload) != 0) return visit_unary(at, payload, ".datetime(", ")");
        out_ += ".datetime()";
        return true;
      case Item::plus:
      case Item::minus: {
        const auto operand = place(at, payload);
        if (!operand) return false;
        if (has_brackets) out_ += '(';
        out_ += item == Item::plus ? '+' : '-';
        then_item(*operand, priority(kind(*operand)) <= priority(item));
        if (has_brackets) then(")");
        return true;
      }
      case Item::any_key:
        out_ += in_key ? ".*" : "*";
        return true;
      case Item::any:
        return visit_any(payload, in_key);
      case Item::index_array:
        return visit_subscripts(at, payload);
      case Item::like_regex:
        return visit_like_regex(at, payload, has_brackets);
      default:
        return false;
    }
  }

  // Levels, of which the greatest number stands for the last.
  bool visit_any(size_t payload, bool in_key) {
    constexpr uint32_t kLast = UINT32_MAX;
    const auto first = word(payload);
    const auto last = word(payload + sizeof(uint32_t));
    if (!first || !last) return false;
    const auto level = [](uint32_t number) { return number == kLast ? "last" : std::to_string(number); };
    if (in_key) out_ += '.';
    out_ += "**";
    if (*first == 0 && *last == kLast) return true;
    out_ += '{' + level(*first);
    if (*first != *last) out_ += " to " + level(*last);
    out_ += '}';
    return true;
  }

  bool visit_subscripts(size_t at, size_t payload) {
    constexpr size_t kPairBytes = 2 * sizeof(uint32_t);
    const auto count = word(payload);
    if (!count || *count > items_.size() / kPairBytes) return false;
    out_ += '[';
    for (size_t i = 0; i < *count; ++i) {
      const size_t pair_at = payload + sizeof(uint32_t) + i * kPairBytes;
      const auto from = place(at, pair_at);
      const auto to = word(pair_at + sizeof(uint32_t));
      if (!from || !to) return false;
      if (i != 0) then(",");
      then_item(*from);
      if (*to == 0) continue;
      const auto until = place(at, pair_at + sizeof(uint32_t));
      if (!until) return false;
      then(" to ");
      then_item(*until);
    }
    then("]");
    return true;
  }

  bool visit_like_regex(size_t at, size_t payload, bool has_brackets) {
    constexpr std::string_view kFlags = "ismxq";  // by their bits, from the lowest on
    const auto flags = word(payload);
    const auto operand = place(at, payload + sizeof(uint32_t));
    const auto pattern = text(payload + 2 * sizeof(uint32_t));
    if (!flags || !operand || !pattern) return false;
    if (has_brackets) out_ += '(';
    then_item(*operand, priority(kind(*operand)) <= priority(Item::like_regex));
    std::string rest = " like_regex ";
    if (!append_json_string(*pattern, rest)) return false;
    if (*flags != 0) {
      rest += " flag \"";
      for (size_t i = 0; i < kFlags.size(); ++i) {
        if ((*flags & (1U << i)) != 0) rest += kFlags[i];
      }
      rest += '"';
    }
    if (has_brackets) rest += ')';
    then(std::move(rest));
    return true;
  }

  const std::span<const std::byte> items_;
  std::string& out_;
  std::vector<Step> steps_;  // the next one last
  std::vector<Step> after_;  // of the item that is visited, in their order
};

}  // namespace

bool append_jsonpath(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr char kVersion = 1;
  constexpr uint32_t kLax = 0x80000000;
  if (content.size() < sizeof(uint32_t)) return false;
  const auto header = wal::load<uint32_t>(content, 0);
  if ((header & ~kLax) != kVersion) return false;
  out += kVersion;
  if ((header & kLax) == 0) out += "strict ";
  return PathPrinter{content.subspan(sizeof(uint32_t)), out}.print();
}

}  // namespace thalweg::mining
