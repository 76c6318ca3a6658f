#include "capture/logical/batch_reader.h"

#include <fmt/format.h>

namespace thalweg::capture {

base::Result<std::optional<BatchedMessage>> BatchReader::next() {
  if (!begun_) {
    begun_ = true;
    const auto version = reader_.integer<uint8_t>();
    if (reader_.failed()) return base::fail(base::ErrorCode::protocol_violation, "A batch of messages is empty.");
    if (version < kBatchVersionMin || version > kBatchVersionMax) {
      return base::fail(base::ErrorCode::protocol_violation,
                        fmt::format("A batch of messages has version {}; this engine knows {} to {}.", version,
                                    kBatchVersionMin, kBatchVersionMax));
    }
  }
  if (reader_.remaining() == 0) return std::nullopt;
  const size_t left = reader_.remaining();
  const auto length = reader_.integer<uint32_t>();
  const base::Lsn lsn{reader_.integer<uint64_t>()};
  const auto bytes = reader_.take(length);
  if (reader_.failed()) {
    return base::fail(base::ErrorCode::protocol_violation,
                      fmt::format("A message of {} bytes does not fit the {} bytes left in its batch.", length, left));
  }
  return BatchedMessage{.lsn = lsn, .bytes = bytes};
}

}  // namespace thalweg::capture
