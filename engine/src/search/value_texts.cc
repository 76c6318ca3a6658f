#include "search/value_texts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/plain_text.h"

namespace thalweg::search {

namespace {

using telemetry::FoundValue;
using telemetry::kFoundTextBytesMax;

// pg_type.oid of built-in types (src/include/catalog/pg_type.dat).
enum : uint32_t {
  kBool = 16,
  kBytea = 17,
  kName = 19,
  kInt8 = 20,
  kInt2 = 21,
  kInt4 = 23,
  kText = 25,
  kOid = 26,
  kJson = 114,
  kXml = 142,
  kBpchar = 1042,
  kVarchar = 1043,
  kJsonb = 3802,
};

// In one statement.
constexpr size_t kAskedMax = 500;
constexpr size_t kAskedTogetherMax = size_t{4} << 20;

void set_text(std::string_view text, FoundValue& out) {
  out.text = base::cut_at_character(text, kFoundTextBytesMax);
  out.is_cut = out.text->size() < text.size();
}

void set_hex(std::span<const std::byte> bytes, FoundValue& out) {
  constexpr size_t kShownMax = (kFoundTextBytesMax - 2) / 2;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\\x";
  for (const std::byte byte : bytes.first(std::min(bytes.size(), kShownMax))) {
    const auto value = std::to_integer<unsigned>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 0xF];
  }
  out.text = std::move(text);
  out.is_cut = bytes.size() > kShownMax;
}

template <typename T>
std::optional<T> integer_in(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint64_t>(byte);
  return static_cast<T>(value);
}

template <typename T>
bool set_integer(std::span<const std::byte> bytes, FoundValue& out) {
  const auto value = integer_in<T>(bytes);
  if (value) out.text = std::to_string(*value);
  return value.has_value();
}

// False: the server has to read it.
bool is_read_here(std::span<const std::byte> bytes, base::TypeId type, FoundValue& out) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  switch (type.value) {
    case kText:
    case kVarchar:
    case kBpchar:
    case kName:
    case kJson:
    case kXml:
      set_text(text, out);
      return true;
    case kJsonb:
      if (text.empty() || text.front() != 1) return false;
      set_text(text.substr(1), out);
      return true;
    case kBytea:
      set_hex(bytes, out);
      return true;
    case kBool:
      if (bytes.size() != 1) return false;
      out.text = bytes.front() != std::byte{0} ? "t" : "f";
      return true;
    case kInt2:
      return set_integer<int16_t>(bytes, out);
    case kInt4:
      return set_integer<int32_t>(bytes, out);
    case kInt8:
      return set_integer<int64_t>(bytes, out);
    case kOid:
      return set_integer<uint32_t>(bytes, out);
    default:
      return false;
  }
}

}  // namespace

void ValueTexts::add(const lcr::Value& value, base::TypeId type, FoundValue& out) {
  if (value.mark == lcr::ValueMark::null) return;
  const std::string_view content(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  bytes_ += std::min(content.size(), kAskedBytesMax);
  if (value.mark == lcr::ValueMark::text) return set_text(content, out);
  if (is_read_here(value.bytes, type, out)) return;
  if (content.size() > kAskedBytesMax) return set_hex(value.bytes, out);
  waiting_.push_back({.type = type, .bytes = std::string(content), .out = &out});
}

base::Result<void> ValueTexts::read() {
  std::span<Waiting> left = waiting_;
  while (!left.empty()) {
    size_t count = 0;
    size_t bytes = 0;
    while (count < std::min(left.size(), kAskedMax) && (count == 0 || bytes < kAskedTogetherMax)) {
      bytes += left[count++].bytes.size();
    }
    THALWEG_TRY(ask(left.first(count)));
    left = left.subspan(count);
  }
  waiting_.clear();
  bytes_ = 0;
  return {};
}

// A type may have changed since: what the server cannot read any more is found by halves.
base::Result<void> ValueTexts::ask(std::span<Waiting> values) {
  std::string list;
  std::vector<pg::Parameter> parameters;
  for (const Waiting& value : values) {
    parameters.push_back({.bytes = std::as_bytes(std::span(value.bytes)), .type = value.type, .is_binary = true});
    list += fmt::format("{}${}", list.empty() ? "" : ", ", parameters.size());
  }
  const auto rows = source_.query("SELECT " + list, parameters);
  if (rows) {
    for (size_t i = 0; i < values.size(); ++i) set_text(rows->text(0, i), *values[i].out);
    return {};
  }
  if (source_.broken()) return std::unexpected(rows.error());
  if (values.size() == 1) {
    set_hex(std::as_bytes(std::span(values.front().bytes)), *values.front().out);
    return {};
  }
  THALWEG_TRY(ask(values.first(values.size() / 2)));
  return ask(values.subspan(values.size() / 2));
}

}  // namespace thalweg::search
