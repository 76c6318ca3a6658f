#include "apply/transaction_frames.h"

namespace thalweg::apply {

namespace {
constexpr size_t kChunkBytes = 1024 * 1024;  // and at most one frame more
}

base::Result<void> TransactionFrames::open() {
  THALWEG_ASSIGN(auto reader, transaction_.spilled->read());
  reader_.emplace(std::move(reader));
  return {};
}

base::Result<std::span<const std::byte>> TransactionFrames::next_chunk() {
  chunk_.clear();
  while (chunk_.size() < kChunkBytes) {
    THALWEG_ASSIGN(const auto frame, reader_->next());
    if (!frame) break;
    const auto bytes = frame->bytes();
    chunk_.insert(chunk_.end(), bytes.begin(), bytes.end());
  }
  return std::span<const std::byte>(chunk_);
}

}  // namespace thalweg::apply
