#include "shipment/unpack.h"

#include <isa-l/igzip_lib.h>
#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace thalweg::shipment {

namespace {

constexpr size_t kInputBytes = size_t{256} << 10;
constexpr size_t kOutputBytes = size_t{256} << 10;

base::Result<void> damaged(std::string_view why) {
  return base::fail(base::ErrorCode::protocol_violation, fmt::format("The packed file is damaged: {}.", why));
}

struct Step {
  size_t taken = 0;  // of the input
  size_t given = 0;  // of the output
  bool ended = false;
};

// One file's. A step makes progress while there is input, or says that the content has ended.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  virtual base::Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) = 0;

 protected:
  Unpacker() = default;
  Unpacker(const Unpacker&) = default;
  Unpacker& operator=(const Unpacker&) = default;
};

class Gunzip final : public Unpacker {
 public:
  Gunzip() { begin(); }
  base::Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (state_->block_state == ISAL_BLOCK_FINISH && !in.empty()) begin();  // another member
    // The library takes input that is not const, and does not write to it.
    state_->next_in = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(in.data()));
    state_->avail_in = static_cast<uint32_t>(in.size());
    state_->next_out = reinterpret_cast<uint8_t*>(out.data());
    state_->avail_out = static_cast<uint32_t>(out.size());
    if (const int failed = isal_inflate(state_.get()); failed != ISAL_DECOMP_OK) {
      THALWEG_TRY(damaged(fmt::format("gzip says {}", failed)));
    }
    return Step{.taken = in.size() - state_->avail_in,
                .given = out.size() - state_->avail_out,
                .ended = state_->block_state == ISAL_BLOCK_FINISH};
  }

 private:
  void begin() {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }
  std::unique_ptr<inflate_state> state_ = std::make_unique<inflate_state>();
};

class Unzstd final : public Unpacker {
 public:
  base::Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer input{.src = in.data(), .size = in.size(), .pos = 0};
    ZSTD_outBuffer output{.dst = out.data(), .size = out.size(), .pos = 0};
    const size_t left = ZSTD_decompressStream(stream_.get(), &output, &input);
    if (ZSTD_isError(left) != 0) THALWEG_TRY(damaged(ZSTD_getErrorName(left)));
    return Step{.taken = input.pos, .given = output.pos, .ended = left == 0};
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
};

class Unlz4 final : public Unpacker {
 public:
  Unlz4() {
    LZ4F_dctx* context = nullptr;
    LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    context_.reset(context);
  }
  base::Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    size_t taken = in.size();
    size_t given = out.size();
    const size_t left = LZ4F_decompress(context_.get(), out.data(), &given, in.data(), &taken, nullptr);
    if (LZ4F_isError(left) != 0) THALWEG_TRY(damaged(LZ4F_getErrorName(left)));
    return Step{.taken = taken, .given = given, .ended = left == 0};
  }

 private:
  struct Free {
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };
  std::unique_ptr<LZ4F_dctx, Free> context_;
};

class Copy final : public Unpacker {
 public:
  base::Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    const size_t count = std::min(in.size(), out.size());
    std::ranges::copy(in.first(count), out.begin());
    return Step{.taken = count, .given = count, .ended = true};
  }
};

std::unique_ptr<Unpacker> unpacker_of(Packing packing) {
  switch (packing) {
    case Packing::none:
      return std::make_unique<Copy>();
    case Packing::gzip:
      return std::make_unique<Gunzip>();
    case Packing::zstd:
      return std::make_unique<Unzstd>();
    case Packing::lz4:
      return std::make_unique<Unlz4>();
  }
  std::unreachable();
}

}  // namespace

std::string_view suffix_of(Packing packing) {
  switch (packing) {
    case Packing::none:
      return "";
    case Packing::gzip:
      return ".gz";
    case Packing::zstd:
      return ".zst";
    case Packing::lz4:
      return ".lz4";
  }
  std::unreachable();
}

base::Result<void> unpack(base::File& from, Packing packing, base::File& to, uint64_t bytes_max) {
  const auto unpacker = unpacker_of(packing);
  std::vector<std::byte> input(kInputBytes);
  std::vector<std::byte> output(kOutputBytes);
  bool ended = false;
  while (true) {
    const auto count = from.read_some(input);
    if (!count) return damaged(count.error().message);
    if (*count == 0) break;
    std::span<const std::byte> left{input.data(), *count};
    bool full = false;  // more may wait inside
    while (!left.empty() || full) {
      THALWEG_ASSIGN(const Step step, unpacker->step(left, output));
      if (step.given > bytes_max) return damaged("it is larger than what it should hold");
      bytes_max -= step.given;
      THALWEG_TRY(to.write_all(std::span{output}.first(step.given)));
      if (step.taken == 0 && step.given == 0) {
        if (!left.empty()) return damaged("bytes follow its end");
        break;
      }
      ended = step.ended;
      full = step.given == output.size();
      left = left.subspan(step.taken);
    }
  }
  return ended ? base::Result<void>{} : damaged("its end is missing");
}

}  // namespace thalweg::shipment
