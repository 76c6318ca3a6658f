#pragma once

#include <string>

#include "base/ids.h"
#include "metadata/source_table.h"

// The note of a partitioned table's TRUNCATE in thalweg.stream_table: a partition's new file is no trouble where its
// table was truncated as a whole. The watch of the source's catalogs finds there by which transaction a file came
// (docs/decisions/table-identity.md).

namespace thalweg::apply {

// One statement, for the transaction that truncates or parks the TRUNCATE. `xid`: the transaction, or subtransaction.
std::string truncation_note(const metadata::SourceTable& source, base::Xid xid, base::Lsn commit_lsn);

}  // namespace thalweg::apply
