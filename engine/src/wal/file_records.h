#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "wal/record_parts.h"
#include "wal/wal_record.h"

// Records that change files as a whole, and what the source tells of its state: of the resource managers of storage
// (src/include/catalog/storage_xlog.h), of the map of the catalogs' files (src/backend/utils/cache/relmapper.c), of
// databases (src/include/commands/dbcommands_xlog.h), of standbys (src/include/storage/standbydefs.h).

namespace thalweg::wal {

struct FileTruncation {
  RelationFile file;
  uint32_t blocks = 0;  // that are left
};

// Files of the catalogs of which pg_class does not tell, by the catalogs' oids.
struct FileMap {
  uint32_t database = 0;  // 0: of the catalogs that all databases share
  std::vector<std::pair<uint32_t, uint32_t>> numbers;
};

// Each gives nothing for a record of another kind, and a protocol_violation for one that is cut.
base::Result<std::optional<FileTruncation>> parse_truncation(const WalRecord& record, const RecordParts& parts);
base::Result<std::optional<FileMap>> parse_file_map(const WalRecord& record, const RecordParts& parts);
// The database whose files were made or removed.
base::Result<std::optional<uint32_t>> parse_database(const WalRecord& record, const RecordParts& parts);
// The oldest transaction that was running then.
base::Result<std::optional<base::Xid>> parse_oldest_running(const WalRecord& record, const RecordParts& parts);

// Whether the server's wal_level is logical from there on; none: the record does not tell.
base::Result<std::optional<bool>> parse_is_logical(const WalRecord& record, const RecordParts& parts);

// Whether full_page_writes is on from there on; none: the record does not tell.
base::Result<std::optional<bool>> parse_has_full_pages(const WalRecord& record, const RecordParts& parts);

// Whether the server began anew: what was open then and not prepared is dead.
bool ends_all_transactions(const WalRecord& record);

}  // namespace thalweg::wal
