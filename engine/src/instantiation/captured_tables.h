#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "instantiation/bookkeeping.h"
#include "instantiation/source_look.h"
#include "instantiation/table_identity.h"

// The records of a stream's tables, brought up to date with the source.

namespace thalweg::instantiation {

using TableRecords = std::map<TableName, TableRecord>;

std::vector<WatchedTable> to_watch(const TableRecords& records);

// Names of records that are not what the destination has stored.
struct RecordChanges {
  std::vector<TableName> identities;
  std::vector<TableName> troubles;
  std::vector<TableName> noticed = {};  // new troubles that pass, which nothing stores
  bool any() const { return !identities.empty() || !troubles.empty(); }
};
// Sets each record's trouble, which stays although the source may look well again; a rename passes. Partitions that
// came without rows become part of the identity, and so does all of one that was not known.
RecordChanges compare(TableRecords& records, const SourceTables& now, base::UnixMicros at);
// The noted partitions that need no note any more: they are in the identity.
std::vector<WrittenLeaf> settled_partitions(const TableRecord& record);
// Carries over the troubles that are not stored, since they pass, from the records of the last look to records that
// were read again.
void keep_passing_troubles(TableRecords& records, const TableRecords& shown);
base::Result<void> store(Bookkeeping& bookkeeping, const TableRecords& records, const RecordChanges& changes);

// It loses changes, and nothing has been done about that.
bool waits_for_resolution(const TableRecord& record);

// table_trouble, of that table.
base::Error trouble_error(const TableName& table, const TableTrouble& trouble);

}  // namespace thalweg::instantiation
