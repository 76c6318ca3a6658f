#include "mining/conversions.h"
#include "wal/little_endian.h"

// src/include/tsearch/ts_type.h; tsvectorsend and tsquerysend of src/backend/utils/adt/{tsvector,tsquery}.c.

namespace thalweg::mining {

namespace {

constexpr size_t kCountBytes = sizeof(uint32_t);

}  // namespace

bool append_tsvector(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kEntryBytes = sizeof(uint32_t);
  if (content.size() < kCountBytes) return false;
  const auto count = wal::load<uint32_t>(content, 0);
  if (count > (content.size() - kCountBytes) / kEntryBytes) return false;
  const auto lexemes = content.subspan(kCountBytes + count * kEntryBytes);
  append_network(out, count);
  for (size_t i = 0; i < count; ++i) {
    const auto entry = wal::load<uint32_t>(content, kCountBytes + i * kEntryBytes);
    const bool has_positions = (entry & 1) != 0;
    const size_t length = (entry >> 1) & 0x7FF;
    const size_t begin = entry >> 12;
    if (begin + length > lexemes.size()) return false;
    out += text_of(lexemes.subspan(begin, length));
    out += '\0';
    if (!has_positions) {
      append_network(out, uint16_t{0});
      continue;
    }
    const size_t positions_at = (begin + length + 1) / 2 * 2;
    if (positions_at + sizeof(uint16_t) > lexemes.size()) return false;
    const auto positions = wal::load<uint16_t>(lexemes, positions_at);
    if (positions > (lexemes.size() - positions_at) / sizeof(uint16_t) - 1) return false;
    append_network(out, positions);
    for (size_t k = 1; k <= positions; ++k) {
      append_network(out, wal::load<uint16_t>(lexemes, positions_at + k * sizeof(uint16_t)));
    }
  }
  return true;
}

bool append_tsquery(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kItemBytes = 12;
  constexpr uint8_t kOperand = 1;
  constexpr uint8_t kOperator = 2;
  constexpr uint8_t kPhrase = 4;
  if (content.size() < kCountBytes) return false;
  const auto count = wal::load<uint32_t>(content, 0);
  if (count > (content.size() - kCountBytes) / kItemBytes) return false;
  const std::string_view operands = text_of(content.subspan(kCountBytes + count * kItemBytes));
  append_network(out, count);
  for (size_t i = 0; i < count; ++i) {
    const auto item = content.subspan(kCountBytes + i * kItemBytes, kItemBytes);
    const auto kind = wal::load<uint8_t>(item, 0);
    out += static_cast<char>(kind);
    if (kind == kOperand) {
      out += text_of(item.subspan(1, 2));  // weights, and whether it is a prefix
      const size_t begin = wal::load<uint32_t>(item, 8) >> 12;
      const size_t end = operands.find('\0', begin);
      if (end == std::string_view::npos) return false;
      out += operands.substr(begin, end + 1 - begin);
    } else if (kind == kOperator) {
      const auto operation = wal::load<uint8_t>(item, 1);
      out += static_cast<char>(operation);
      if (operation == kPhrase) append_network(out, wal::load<uint16_t>(item, 2));
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace thalweg::mining
