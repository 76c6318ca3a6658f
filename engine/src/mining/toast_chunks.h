#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "wal/heap_page.h"
#include "wal/little_endian.h"
#include "wal/varlena.h"

// Parts of values that were stored outside of their rows, by one transaction, until the row that has them
// (ReorderBufferToastAppendChunk of src/backend/replication/logical/reorderbuffer.c).

namespace thalweg::mining {

// Owner: the builder.
class ToastChunks {
 public:
  // `tuple`: of a TOAST table (chunk_id, chunk_seq, chunk_data). False: it is none.
  bool add(const wal::HeapTuple& tuple) {
    constexpr size_t kFixedBytes = 8;
    const auto values = tuple.values();
    if (tuple.columns() != 3 || (tuple.infomask & wal::kHasNull) != 0 || values.size() < kFixedBytes) return false;
    const auto data = wal::parse_varlena(values.subspan(kFixedBytes));
    if (!data || data->is_compressed || data->external) return false;
    std::string& chunk = chunks_[wal::load<uint32_t>(values, 0)][wal::load<uint32_t>(values, 4)];
    bytes_ += data->content.size();
    chunk.assign(reinterpret_cast<const char*>(data->content.data()), data->content.size());
    return true;
  }
  // Null: its chunks did not come, so the row's value is as it was. Empty inside: they do not fit the pointer.
  std::optional<std::optional<std::string>> value(const wal::ExternalPointer& pointer) const {
    const auto found = chunks_.find(pointer.value);
    if (found == chunks_.end()) return std::nullopt;
    std::string stored;
    uint32_t next = 0;
    for (const auto& [number, chunk] : found->second) {
      if (number != next++) return std::optional<std::string>{};
      stored += chunk;
    }
    if (stored.size() != pointer.stored_bytes) return std::optional<std::string>{};
    if (!pointer.is_compressed()) return stored;
    // The stored bytes begin with the length and the method once more (toast_compress_header).
    constexpr size_t kHeaderBytes = 4;
    if (stored.size() < kHeaderBytes) return std::optional<std::string>{};
    return wal::decompressed(std::as_bytes(std::span{stored}).subspan(kHeaderBytes), pointer.compression,
                             pointer.raw_bytes - static_cast<uint32_t>(kHeaderBytes));
  }
  void clear() {
    chunks_.clear();
    bytes_ = 0;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  std::unordered_map<uint32_t, std::map<uint32_t, std::string>> chunks_;
};

}  // namespace thalweg::mining
