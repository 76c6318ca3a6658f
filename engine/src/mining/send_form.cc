#include "mining/send_form.h"

#include <bit>
#include <cstring>

#include "mining/conversions.h"
#include "wal/varlena.h"

namespace thalweg::mining {

bool set_length(std::string& out, size_t length_at) {
  const size_t bytes = out.size() - length_at - sizeof(uint32_t);
  const uint32_t length = std::byteswap(static_cast<uint32_t>(bytes));
  std::memcpy(out.data() + length_at, &length, sizeof length);
  return bytes <= kSentBytesMax;
}

bool append_sized(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  const size_t length_at = out.size();
  append_network(out, uint32_t{0});
  return form.append(content, out) && set_length(out, length_at);
}

std::optional<size_t> append_member(const SendForm& form, std::span<const std::byte> rest, std::string& out) {
  const auto value = wal::parse_value(rest, form.length);
  if (!value) return std::nullopt;
  std::string plain;
  const auto content = wal::plain_content(*value, plain);
  if (!content || !append_sized(form, *content, out)) return std::nullopt;
  return value->bytes;
}

}  // namespace thalweg::mining
