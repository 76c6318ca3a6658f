#include "instantiation/captured_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace thalweg::instantiation {
namespace {

// An older engine did not record which relation it had copied: the one that is published under the name, then.
std::optional<TableTrouble> adopt(TableRecord& record, const SourceTables& now) {
  const SourceTable* const named = now.find(record.table);
  if (named != nullptr && (named->published == Published::changes || named->published == Published::unknown)) {
    record.identity = named->now;
    return std::nullopt;
  }
  TableTrouble trouble;
  if (named == nullptr) {
    trouble.reason = fmt::format("{} does not exist at the source.", record.table.quoted());
  } else {
    trouble.kind = TroubleKind::unpublished;
    trouble.reason = fmt::format(
        "{} is not in the stream's publication: another table had its name, or somebody took "
        "it out.",
        record.table.quoted());
  }
  return trouble;
}

// A stream that gives up a table's updates and deletes loses nothing that it had. One that wants them again has lost
// those in between.
std::optional<TableTrouble> follow_consent(TableRecord& record, const SourceTables& now) {
  if (record.inserts_only == record.identity.inserts_only) return std::nullopt;
  const SourceTable* const captured = now.find(record.identity.relation);
  if (record.inserts_only) {
    if (captured != nullptr && captured->published == Published::inserts) {
      record.identity.inserts_only = true;
      record.identity.publication_entry = captured->now.publication_entry;
    }
    return std::nullopt;
  }
  TableTrouble trouble;
  trouble.kind = TroubleKind::unpublished;
  trouble.reason = fmt::format(
      "Only inserts of {} were replicated until now: rows that were updated or deleted meanwhile are wrong at the "
      "destination.",
      record.table.quoted());
  return trouble;
}

// Truncated before its rows were copied, or the whole table was truncated since: nothing of it is missing.
bool is_made_up_for(const WrittenLeaf& leaf, const TableRecord& record) {
  if (!leaf.truncated) return false;
  return leaf.commit_lsn < record.copied_from ||
         std::ranges::any_of(
             record.truncations, [&](const Truncation& whole) { return whole.commit_lsn > leaf.commit_lsn; });
}

std::optional<TableTrouble> trouble_of(TableRecord& record, const SourceTables& now) {
  if (record.identity.relation == 0) return adopt(record, now);
  if (auto trouble = follow_consent(record, now)) return trouble;
  std::vector<WrittenLeaf> written;
  if (record.finished) {
    std::ranges::copy_if(record.written, std::back_inserter(written),
                         [&](const WrittenLeaf& leaf) { return !is_made_up_for(leaf, record); });
  }
  return examine(record.table, record.identity, now, written);
}

// The engine itself takes a stopped table out of the publication: its first trouble says more.
bool is_stopped_for_partitions(const TableRecord& record) {
  return record.stopped && record.trouble && record.trouble->kind == TroubleKind::partitions_changed;
}

bool is_captured_as(const TableRecords& records, const TableName& name, uint32_t relation) {
  const auto record = records.find(name);
  return record != records.end() && record->second.identity.relation == relation;
}

// Tables that have become partitions of another table of the stream since the last look, each with that one: their rows
// come as its rows.
std::map<TableName, TableName> absorbed_tables(const TableRecords& records, const SourceTables& now) {
  std::map<uint32_t, TableName> names;
  for (const auto& [name, record] : records) names.emplace(record.identity.relation, name);
  std::map<TableName, TableName> absorbed;
  for (const auto& [whole, record] : records) {
    const SourceTable* const table = now.find(record.identity.relation);
    if (table == nullptr) continue;
    for (const Leaf& leaf : table->now.leaves) {
      const auto part = names.find(leaf.relation);
      if (part != names.end() && !record.identity.has_leaf(leaf.relation)) absorbed.emplace(part->second, whole);
    }
  }
  return absorbed;
}

}  // namespace

bool waits_for_resolution(const TableRecord& record) {
  return record.trouble && !record.trouble->loses_nothing() && !record.stopped && !record.copy_again;
}

std::vector<WatchedTable> to_watch(const TableRecords& records) {
  std::vector<WatchedTable> out;
  for (const auto& [name, record] : records) out.push_back({.name = name, .was = record.identity});
  return out;
}

RecordChanges compare(TableRecords& records, const SourceTables& now, base::UnixMicros at) {
  RecordChanges changes;
  const std::map<TableName, TableName> absorbed = absorbed_tables(records, now);
  for (auto& [name, record] : records) {
    if (record.copy_again) continue;
    // Nothing stores it: it is found anew at each look, and began when it was found first.
    std::optional<TableTrouble> passing;
    if (record.trouble && record.trouble->loses_nothing()) passing = std::exchange(record.trouble, std::nullopt);
    const TableIdentity was = record.identity;
    auto trouble = trouble_of(record, now);
    const bool has_other_name = trouble && trouble->loses_nothing() && trouble->now != name;
    if (has_other_name && is_captured_as(records, trouble->now, was.relation)) {
      trouble->kind = TroubleKind::dropped;
      trouble->reason = fmt::format(
          "{} is {} at the source now, which is a table of the stream: nothing comes for {} any "
          "more.",
          name.quoted(), trouble->now.quoted(), name.quoted());
      trouble->now = {};
      trouble->cure = {};
      trouble->cure_sql = {};
    }
    if (const auto whole = absorbed.find(name); whole != absorbed.end()) {
      trouble.emplace();
      trouble->reason = fmt::format(
          "{} is a partition of {} at the source now: its rows come as that "
          "table's, and nothing comes for {} any more.",
          name.quoted(), whole->second.quoted(), name.quoted());
    }
    const bool is_as_captured = !trouble || trouble->kind == TroubleKind::unidentified;
    if (is_as_captured && !record.trouble) {
      if (const SourceTable* const captured = now.find(record.identity.relation)) record.identity = captured->now;
    }
    if (record.identity != was) changes.identities.push_back(name);
    if (!trouble || (record.trouble && trouble->loses_nothing())) continue;
    if (trouble->kind == TroubleKind::unpublished && is_stopped_for_partitions(record)) continue;
    const bool is_known = passing && passing->reason == trouble->reason;
    trouble->since = is_known ? passing->since : at;
    if (record.trouble && record.trouble->kind == trouble->kind) {
      trouble->since = record.trouble->since;
      if (record.trouble->reason == trouble->reason) continue;
    }
    record.trouble = std::move(trouble);
    if (!record.trouble->loses_nothing()) {
      changes.troubles.push_back(name);
    } else if (!is_known) {
      changes.noticed.push_back(name);
    }
  }
  return changes;
}

std::vector<WrittenLeaf> settled_partitions(const TableRecord& record) {
  std::vector<WrittenLeaf> settled;
  for (const WrittenLeaf& written : record.written) {
    const bool is_known = record.identity.has_leaf(written.relation);
    if (written.truncated ? is_made_up_for(written, record) : is_known) settled.push_back(written);
  }
  return settled;
}

void keep_passing_troubles(TableRecords& records, const TableRecords& shown) {
  for (auto& [name, record] : records) {
    const auto before = shown.find(name);
    if (record.trouble || before == shown.end() || !before->second.trouble) continue;
    if (before->second.trouble->loses_nothing()) record.trouble = before->second.trouble;
  }
}

base::Result<void> store(Bookkeeping& bookkeeping, const TableRecords& records, const RecordChanges& changes) {
  for (const TableName& name : changes.identities) {
    THALWEG_TRY(bookkeeping.set_identity(name, records.at(name).identity));
  }
  for (const TableName& name : changes.troubles) {
    const TableRecord& record = records.at(name);
    THALWEG_TRY(bookkeeping.set_trouble(name, record.identity, *record.trouble, record.stopped));
  }
  return {};
}

base::Error trouble_error(const TableName& table, const TableTrouble& trouble) {
  base::Error error =
      base::fail(base::ErrorCode::table_trouble, fmt::format("{} {}", trouble.reason, cure_of(trouble, false))).error();
  error.table = table.quoted();
  return error;
}

}  // namespace thalweg::instantiation
