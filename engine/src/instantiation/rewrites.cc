#include "instantiation/rewrites.h"

#include <algorithm>

namespace thalweg::instantiation {
namespace {

// Whether there is something to decide: of a table that has a trouble already, there is not.
bool is_open(const TableRecord& record) {
  return !record.copy_again && (!record.trouble || record.trouble->loses_nothing());
}

// The file that had what came through the root: of a leaf that nobody has seen before, its first one.
uint32_t known_file(const TableIdentity& recorded, const Leaf& leaf) {
  const auto was = std::ranges::find(recorded.leaves, leaf.relation, &Leaf::relation);
  return was == recorded.leaves.end() ? leaf.first_file() : was->file;
}

bool is_rewritten(const TableIdentity& recorded, const Leaf& leaf) { return known_file(recorded, leaf) != leaf.file; }

void take_over(TableIdentity& recorded, const Leaf& leaf) {
  const auto was = std::ranges::find(recorded.leaves, leaf.relation, &Leaf::relation);
  if (was == recorded.leaves.end()) {
    recorded.leaves.push_back(leaf);
  } else {
    was->file = leaf.file;
  }
}

}  // namespace

std::set<TableName> Rewrites::open(const TableRecords& records, const SourceTables& now) {
  std::set<TableName> names;
  for (const auto& [name, record] : records) {
    const SourceTable* const table = now.find(record.identity.relation);
    if (table == nullptr || !is_open(record)) continue;
    const auto is_changed = [&](const Leaf& leaf) { return is_rewritten(record.identity, leaf); };
    if (std::ranges::any_of(table->now.leaves, is_changed)) names.insert(name);
  }
  return names;
}

std::vector<TableName> Rewrites::settle(TableRecords& records, SourceTables& now, base::Lsn low_watermark,
                                        std::string_view suspect, const std::set<TableName>& kept) {
  std::vector<TableName> taken_over;
  std::map<File, base::Lsn> waiting;
  for (auto& [name, record] : records) {
    SourceTable* const table = now.find(record.identity.relation);
    if (table == nullptr || !is_open(record)) continue;
    bool changed = false;
    for (Leaf& leaf : table->now.leaves) {
      if (!is_rewritten(record.identity, leaf)) continue;
      const uint32_t changed_by = table->changed_by[leaf.relation];
      const auto& applied = record.truncations;
      if (kept.contains(name) || std::ranges::find(applied, changed_by, &Truncation::xid) != applied.end()) {
        take_over(record.identity, leaf);
        changed = true;
        continue;
      }
      const File file{leaf.relation, leaf.file};
      const auto before = seen_.find(file);
      const base::Lsn seen = before == seen_.end() ? now.wal_end : before->second;
      waiting[file] = seen;
      // Errors name it as the destination does.
      const TableName leaf_there{record.there.schema, leaf.name.name};
      const auto is_named = [&](const TableName& called) { return called.quoted() == suspect; };
      const bool is_suspect = is_named(name) || is_named(leaf.name) || is_named(record.there) || is_named(leaf_there);
      if (low_watermark < seen && !is_suspect) leaf.file = known_file(record.identity, leaf);
    }
    if (changed) taken_over.push_back(name);
  }
  seen_ = std::move(waiting);
  return taken_over;
}

}  // namespace thalweg::instantiation
