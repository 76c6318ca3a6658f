#include "apply/transaction_frames.h"

namespace thalweg::apply {

namespace {
constexpr size_t kChunkBytes = 1024 * 1024;  // and at most one run more
}

base::Result<std::span<const std::byte>> TransactionFrames::next_chunk() {
  chunk_.clear();
  if (chunk_.capacity() > 4 * kChunkBytes) chunk_ = {};  // what a large frame took goes back
  while (chunk_.size() < kChunkBytes) {
    THALWEG_ASSIGN(const auto run, reader_->next_run());
    if (run.empty()) {
      if (reader_->frames() == transaction_.spilled->frames()) break;
      return base::fail(base::ErrorCode::corrupt_frame, "a spilled transaction lost its last segments");
    }
    if (chunk_.empty() && run.size() >= kChunkBytes) return run;  // a large frame, once in memory instead of twice
    chunk_.insert(chunk_.end(), run.begin(), run.end());
  }
  return std::span<const std::byte>(chunk_);
}

}  // namespace thalweg::apply
