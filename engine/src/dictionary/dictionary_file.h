#pragma once

#include <filesystem>

#include "base/error.h"
#include "dictionary/dictionary.h"

// A dictionary on disk, so that a restart need not begin at a redo pointer again.
//
// Format, integers as they lie in memory of a little-endian machine, counts of 4 bytes, positions of 8:
//   magic "TWDICT01"; position; tablespace, database
//   of each catalog its number's file and its stored columns (name, length, align)
//   count of versions, each: file, block, offset (2), knowledge (1), infomask2 (2), infomask (2), header bytes (1),
//     inserted_by, removed_by, bytes
//   count of touched: xid, file, block, offset (2), inserted (1)
//   count of subtransactions: xid, top-level xid; count of prepared ones: xid
//   XXH3 of all before it (8)

namespace thalweg::dictionary {

class DictionaryFile {
 public:
  // Replaces the file; after a crash it is either the old one or the new one. False: nothing was written, because a
  // catalog is being copied, or the first contents are not reached; a file that is there stays good.
  static base::Result<bool> save(const Dictionary& dictionary, const std::filesystem::path& path);
  // Applies go on with the record at its position(). A file_error: it cannot be read, or is damaged.
  static base::Result<Dictionary> load(const std::filesystem::path& path);
};

}  // namespace thalweg::dictionary
