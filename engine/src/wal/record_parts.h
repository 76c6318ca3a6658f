#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/ids.h"
#include "wal/wal_format.h"
#include "wal/wal_record.h"

// Parts of a record's body: references to blocks, each with an image or data or both, and the record's own data
// (PostgreSQL: src/include/access/xlogrecord.h, DecodeXLogRecord of src/backend/access/transam/xlogreader.c).

namespace thalweg::wal {

inline constexpr size_t kBlocksMax = 33;  // XLR_MAX_BLOCK_ID is the last one

// A file of a relation (RelFileNode, RelFileLocator).
struct RelationFile {
  uint32_t tablespace = 0;
  uint32_t database = 0;  // 0: shared by all
  uint32_t number = 0;
  constexpr bool operator==(const RelationFile&) const = default;
};

enum class Fork : uint8_t { main, free_space_map, visibility_map, initialisation };

// A block's content, without a hole of zeros.
struct BlockImage {
  std::span<const std::byte> bytes;
  uint16_t hole_offset = 0;
  uint16_t hole_bytes = 0;
  Compression compression = Compression::none;  // of `bytes`
  bool applies = false;                         // redo takes it; else it is for checks only
};

struct BlockReference {
  uint8_t id = 0;
  Fork fork = Fork::main;
  bool is_initialised = false;  // the block is made anew by redo
  bool has_image = false;
  bool has_data = false;
  RelationFile file;
  uint32_t block = 0;
  BlockImage image;
  std::span<const std::byte> data;
};

// Owner: whoever parses. Points into the record's body. Made once and used for one record after another.
class RecordParts {
 public:
  // A protocol_violation: lengths or flags do not fit together, or the record has more or fewer bytes than they say.
  base::Result<void> parse(const WalRecord& record, const WalFormat& format);

  // In the order of their ids, which may have gaps.
  std::span<const BlockReference> blocks() const { return {blocks_.data(), block_count_}; }
  // Null: the record has none of that id. Never take "the last one": minor releases add references.
  const BlockReference* block(uint8_t id) const;
  std::span<const std::byte> data() const { return data_; }
  // Of all blocks' images, as they are in the WAL.
  uint64_t image_bytes() const;
  uint16_t origin() const { return origin_; }  // 0: none
  base::Xid top_level_xid() const {
    return top_level_;
  }  // none: the record's xid is no subtransaction's, or told before

 private:
  std::array<BlockReference, kBlocksMax> blocks_;
  size_t block_count_ = 0;
  std::span<const std::byte> data_;
  uint16_t origin_ = 0;
  base::Xid top_level_;
};

}  // namespace thalweg::wal
