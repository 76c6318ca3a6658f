#include "wal/logical_message.h"

#include <fmt/format.h>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

base::Result<std::optional<LogicalMessage>> parse_logical_message(const WalRecord& record, const RecordParts& parts) {
  if (record.rmgr != Rmgr::logical_message || (record.info & kRmgrInfo) != 0) return std::nullopt;
  constexpr size_t kTransactionalAt = 4;
  constexpr size_t kPrefixBytesAt = 8;
  constexpr size_t kContentBytesAt = 16;
  constexpr size_t kHeaderBytes = 24;
  const auto data = parts.data();
  const auto cut = [&] {
    return violation(record.begin, fmt::format("The message at {} is cut.", to_string(record.begin)), record.xid);
  };
  if (data.size() < kHeaderBytes) return cut();
  const auto prefix_bytes = load<uint64_t>(data, kPrefixBytesAt);  // with the zero byte at its end
  const auto content_bytes = load<uint64_t>(data, kContentBytesAt);
  const auto rest = data.subspan(kHeaderBytes);
  if (prefix_bytes == 0 || prefix_bytes > rest.size() || content_bytes > rest.size() - prefix_bytes) return cut();
  const std::string_view text{reinterpret_cast<const char*>(rest.data()), rest.size()};
  return LogicalMessage{.database = load<uint32_t>(data, 0),
                        .is_transactional = data[kTransactionalAt] != std::byte{0},
                        .prefix = text.substr(0, prefix_bytes - 1),
                        .content = text.substr(prefix_bytes, content_bytes)};
}

}  // namespace thalweg::wal
