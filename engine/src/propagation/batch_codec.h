#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "propagation/messages.h"

namespace thalweg::propagation {

// Compresses batches for one link. Owner: the sender's packing thread.
class BatchCompressor {
 public:
  BatchCompressor(Compression compression, int zstd_level);
  ~BatchCompressor();
  BatchCompressor(const BatchCompressor&) = delete;
  BatchCompressor& operator=(const BatchCompressor&) = delete;

  // Compresses `raw` into the front of `out`, which is at least as long. How many bytes that took, or 0 when it does
  // not get shorter: then it goes as it is.
  size_t compress(std::span<const std::byte> raw, std::span<std::byte> out);

 private:
  struct Context;
  Compression compression_;
  int zstd_level_;
  std::unique_ptr<Context> context_;
};

// Decompresses batches of any kind. Owner: the receiver's thread.
class BatchDecompressor {
 public:
  BatchDecompressor();
  ~BatchDecompressor();
  BatchDecompressor(const BatchDecompressor&) = delete;
  BatchDecompressor& operator=(const BatchDecompressor&) = delete;

  // The batch's frames: its payload itself, or memory of the decompressor, of fixed size, valid until the next call.
  // Fails with link_protocol_violation unless the payload gives exactly raw_length bytes.
  base::Result<std::span<const std::byte>> decompress(const Batch& batch);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace thalweg::propagation
