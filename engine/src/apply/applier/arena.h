#pragma once

#include <cstddef>
#include <memory>
#include <vector>

// Memory for one group, given back all at once: nothing on the path of a row calls malloc.

namespace thalweg::apply {

// Owner: one applier. Memory from take() lives until reset().
class Arena {
 public:
  std::byte* take(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > left_) refill(bytes);
    std::byte* const taken = at_;
    at_ += bytes;
    left_ -= bytes;
    return taken;
  }
  template <typename T>
  T* take_array(size_t count) {
    static_assert(alignof(T) <= 8);
    return reinterpret_cast<T*>(take(count * sizeof(T)));
  }
  void reset() {
    large_.clear();
    next_chunk_ = 0;
    left_ = 0;
  }

 private:
  static constexpr size_t kChunkBytes = 256 * 1024;

  void refill(size_t bytes) {
    if (bytes > kChunkBytes) {
      // Stays aside: what is left of the current chunk is given up, which costs nothing that matters.
      large_.push_back(std::make_unique<std::byte[]>(bytes));
      at_ = large_.back().get();
      left_ = bytes;
      return;
    }
    if (next_chunk_ == chunks_.size()) chunks_.push_back(std::make_unique<std::byte[]>(kChunkBytes));
    at_ = chunks_[next_chunk_++].get();
    left_ = kChunkBytes;
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::vector<std::unique_ptr<std::byte[]>> large_;
  size_t next_chunk_ = 0;
  std::byte* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace thalweg::apply
