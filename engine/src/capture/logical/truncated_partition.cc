#include "capture/logical/truncated_partition.h"

#include <span>
#include <string>

#include "lcr/bytes.h"

namespace thalweg::capture {
namespace {

constexpr size_t kNumbersBytes = 3 * sizeof(uint32_t);

// Up to the zero byte that ends it, which goes too.
std::string take_name(std::string_view& rest) {
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return {};
  std::string name(rest.substr(0, end));
  rest.remove_prefix(end + 1);
  return name;
}

}  // namespace

base::Result<TruncatedPartition> read_truncated_partition(std::string_view content) {
  const auto malformed = [] {
    return base::fail(base::ErrorCode::protocol_violation, "A message that names a truncated partition is malformed.");
  };
  if (content.size() < kNumbersBytes) return malformed();
  lcr::ByteReader numbers(std::as_bytes(std::span(content.substr(0, kNumbersBytes))));
  TruncatedPartition out;
  out.xid = {numbers.integer<uint32_t>()};
  out.table = {numbers.integer<uint32_t>()};
  out.mark.partition = {numbers.integer<uint32_t>()};
  std::string_view names = content.substr(kNumbersBytes);
  out.mark.schema_name = take_name(names);
  out.mark.partition_name = take_name(names);
  const bool is_whole = out.xid && out.table.value != 0 && out.mark.partition.value != 0 &&
                        !out.mark.schema_name.empty() && !out.mark.partition_name.empty() && names.empty();
  if (!is_whole) return malformed();
  return out;
}

}  // namespace thalweg::capture
