#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "mining/conversions.h"
#include "wal/little_endian.h"

// jsonb_send of src/backend/utils/adt/jsonb.c: a version, then the text. A container (src/include/utils/jsonb.h) has a
// header, an entry for each child, and the children's data; an object's children are its keys, then its values. An
// entry has its data's length or, each so many of them, where it ends.

namespace thalweg::mining {

namespace {

constexpr size_t kWordBytes = sizeof(uint32_t);
constexpr uint32_t kCountMask = 0x0FFFFFFF;
constexpr uint32_t kIsScalar = 0x10000000;
constexpr uint32_t kIsObject = 0x20000000;
constexpr uint32_t kIsArray = 0x40000000;
constexpr uint32_t kTextMask = 0x70000000;
constexpr uint32_t kEndsAt = 0x80000000;
enum class Entry : uint32_t { string, numeric, is_false, is_true, null, container };

// The children of a container, one after the other.
class Children {
 public:
  // `data`: behind the entries.
  Children(std::span<const std::byte> entries, std::span<const std::byte> data) : entries_(entries), data_(data) {}

  struct Child {
    Entry kind = Entry::null;
    std::span<const std::byte> data = {};
  };
  // Null: its data do not follow those of the one before, or are behind the end.
  std::optional<Child> next() {
    const auto entry = wal::load<uint32_t>(entries_, 0);
    entries_ = entries_.subspan(kWordBytes);
    const size_t begin = at_;
    at_ = (entry & kCountMask) + ((entry & kEndsAt) != 0 ? 0 : begin);
    if (at_ < begin || at_ > data_.size()) return std::nullopt;
    const auto kind = static_cast<Entry>((entry & kTextMask) >> 28);
    // Numbers and containers are aligned.
    const bool is_aligned = kind == Entry::numeric || kind == Entry::container;
    const size_t padded = is_aligned ? (begin + kWordBytes - 1) / kWordBytes * kWordBytes : begin;
    if (padded > at_ || kind > Entry::container) return std::nullopt;
    return Child{.kind = kind, .data = data_.subspan(padded, at_ - padded)};
  }
  bool is_empty() const { return entries_.empty(); }

 private:
  std::span<const std::byte> entries_;
  std::span<const std::byte> data_;
  size_t at_ = 0;
};

// A container that is being printed.
struct Open {
  Children keys;  // of an object
  Children values;
  char closing = '\0';  // none: of a scalar
  bool is_first = true;
};

bool append_scalar(const Children::Child& child, std::string& out) {
  switch (child.kind) {
    case Entry::string:
      return append_json_string(text_of(child.data), out);
    case Entry::numeric:
      return append_numeric_text(child.data, out) && out.size() <= kSentBytesMax;
    case Entry::is_false:
      out += "false";
      return true;
    case Entry::is_true:
      out += "true";
      return true;
    case Entry::null:
      out += "null";
      return true;
    case Entry::container:
      return false;
  }
  return false;
}

std::optional<Open> open(std::span<const std::byte> container, std::string& out) {
  if (container.size() < kWordBytes) return std::nullopt;
  const auto header = wal::load<uint32_t>(container, 0);
  const bool is_object = (header & kIsObject) != 0;
  if (is_object == ((header & kIsArray) != 0)) return std::nullopt;
  const size_t count = header & kCountMask;
  const size_t entries = count * kWordBytes * (is_object ? 2 : 1);
  const auto children = container.subspan(kWordBytes);
  if (entries > children.size()) return std::nullopt;
  const auto data = children.subspan(entries);
  Open opened{.keys = {{}, {}}, .values = {children.first(entries), data}};
  if (!is_object) {
    const bool is_scalar = (header & kIsScalar) != 0;
    if (!is_scalar) out += '[';
    opened.closing = is_scalar ? '\0' : ']';
    return opened;
  }
  out += '{';
  opened.closing = '}';
  opened.keys = opened.values;
  for (size_t i = 0; i < count; ++i) {
    if (!opened.values.next()) return std::nullopt;
  }
  return opened;
}

}  // namespace

bool append_json_string(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    // A run without special characters, at once.
    size_t plain = 0;
    while (plain < text.size() && static_cast<unsigned char>(text[plain]) >= ' ' && text[plain] != '"' &&
           text[plain] != '\\') {
      ++plain;
    }
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    switch (const char special = text.front()) {
      case '\0':
        return false;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
      case '\\':
        out += '\\';
        out += special;
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(special));
    }
    text.remove_prefix(1);
  }
  out += '"';
  return true;
}

// Without recursion: how deep it goes is the value's affair.
bool append_jsonb(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr char kVersion = 1;
  out += kVersion;
  std::vector<Open> opened;
  auto root = open(content, out);
  if (!root) return false;
  opened.push_back(*root);
  while (!opened.empty()) {
    Open& here = opened.back();
    if (here.values.is_empty()) {
      if (here.closing != '\0') out += here.closing;
      opened.pop_back();
      continue;
    }
    if (!here.is_first) out += ", ";
    here.is_first = false;
    if (here.closing == '}') {
      const auto key = here.keys.next();
      if (!key || key->kind != Entry::string || !append_scalar(*key, out)) return false;
      out += ": ";
    }
    const auto value = here.values.next();
    if (!value) return false;
    if (value->kind != Entry::container) {
      if (!append_scalar(*value, out)) return false;
      continue;
    }
    const auto inner = open(value->data, out);
    if (!inner) return false;
    opened.push_back(*inner);
  }
  return true;
}

}  // namespace thalweg::mining
