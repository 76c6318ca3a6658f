#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/bytes.h"

// A batch as the output plugin thalweg_output sends it (docs/formats/output-batch.md).

namespace thalweg::capture {

// The versions differ in the messages that may come; the batch around them is the same.
inline constexpr uint8_t kBatchVersionMin = 1;
inline constexpr uint8_t kBatchVersion = 2;
inline constexpr uint8_t kBatchVersionWithRowFilters = 3;           // from here the reader may give filters of rows
inline constexpr uint8_t kBatchVersionWithTruncatedPartitions = 4;  // from here it is told of them
inline constexpr uint8_t kBatchVersionMax = kBatchVersionWithTruncatedPartitions;

struct BatchedMessage {
  base::Lsn lsn;  // the message's WAL position, zero where the source gave none
  std::span<const std::byte> bytes;
};

// Total: any bytes give messages inside them, then an end or protocol_violation. Owner: one thread; the bytes outlive
// it.
class BatchReader {
 public:
  explicit BatchReader(std::span<const std::byte> bytes) : reader_(bytes) {}

  // The next message; nullopt at the end.
  base::Result<std::optional<BatchedMessage>> next();

 private:
  lcr::ByteReader reader_;
  bool begun_ = false;
};

}  // namespace thalweg::capture
