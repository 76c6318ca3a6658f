#include "propagation/batch_codec.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <cassert>
#include <vector>

namespace thalweg::propagation {

namespace {

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

struct BatchCompressor::Context {
  std::unique_ptr<ZSTD_CCtx, FreeCompressor> zstd;
};

BatchCompressor::BatchCompressor(Compression compression, int zstd_level)
    : compression_(compression), zstd_level_(zstd_level), context_(std::make_unique<Context>()) {
  if (compression == Compression::zstd) context_->zstd.reset(ZSTD_createCCtx());
}
BatchCompressor::~BatchCompressor() = default;

size_t BatchCompressor::compress(std::span<const std::byte> raw, std::span<std::byte> out) {
  assert(raw.size() <= kBatchRawBytesMax && out.size() >= raw.size());
  const size_t room = raw.size() - 1;  // what does not get shorter by a byte is not worth it
  if (compression_ == Compression::lz4) {
    const int bytes =
        LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(out.data()),
                             static_cast<int>(raw.size()), static_cast<int>(room));
    return bytes > 0 ? static_cast<size_t>(bytes) : 0;
  }
  if (compression_ == Compression::zstd && context_->zstd) {
    const size_t bytes = ZSTD_compressCCtx(context_->zstd.get(), out.data(), room, raw.data(), raw.size(), zstd_level_);
    return ZSTD_isError(bytes) != 0 ? 0 : bytes;
  }
  return 0;
}

struct BatchDecompressor::Context {
  std::unique_ptr<ZSTD_DCtx, FreeDecompressor> zstd;
  std::vector<std::byte> raw;  // kBatchRawBytesMax, once a compressed batch has come
};

BatchDecompressor::BatchDecompressor() : context_(std::make_unique<Context>()) {}
BatchDecompressor::~BatchDecompressor() = default;

base::Result<std::span<const std::byte>> BatchDecompressor::decompress(const Batch& batch) {
  if (batch.compression == Compression::none) return batch.payload;
  assert(batch.raw_length <= kBatchRawBytesMax);  // parse_message has checked it
  context_->raw.resize(kBatchRawBytesMax);
  const auto out = std::span(context_->raw).first(batch.raw_length);
  bool whole = false;
  if (batch.compression == Compression::lz4) {
    const int bytes =
        LZ4_decompress_safe(reinterpret_cast<const char*>(batch.payload.data()), reinterpret_cast<char*>(out.data()),
                            static_cast<int>(batch.payload.size()), static_cast<int>(out.size()));
    whole = bytes >= 0 && static_cast<size_t>(bytes) == out.size();
  } else {
    if (!context_->zstd) context_->zstd.reset(ZSTD_createDCtx());
    const size_t bytes =
        ZSTD_decompressDCtx(context_->zstd.get(), out.data(), out.size(), batch.payload.data(), batch.payload.size());
    whole = ZSTD_isError(bytes) == 0 && bytes == out.size();
  }
  if (!whole) {
    return base::fail(base::ErrorCode::link_protocol_violation,
                      fmt::format("batch {} does not decompress to its {} bytes", batch.sequence, batch.raw_length));
  }
  return std::span<const std::byte>(out);
}

}  // namespace thalweg::propagation
