#include "apply/parked_tree.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apply/applier/parking.h"
#include "apply/error_queue.h"
#include "apply/parked_frames.h"
#include "pg/bookkeeping_trust.h"

namespace thalweg::apply {

using telemetry::kParkedBehindShownMax;
using telemetry::ParkedDependant;
using telemetry::ParkedTree;
using telemetry::TreePart;

namespace {

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

void add_all(std::unordered_map<uint64_t, size_t>& places, std::span<const uint64_t> hashes, size_t place) {
  for (const uint64_t hash : hashes) places.try_emplace(hash, place);  // the first one stays
}

void find_all(const std::unordered_map<uint64_t, size_t>& places, std::span<const uint64_t> hashes,
              std::set<size_t>& found) {
  if (places.empty()) return;
  for (const uint64_t hash : hashes) {
    if (const auto at = places.find(hash); at != places.end()) found.insert(at->second);
  }
}

// A transaction of the queue, with the rows and tables that it shares with others.
struct Entry {
  int64_t id = 0;
  base::Lsn commit_lsn;
  std::vector<uint64_t> writes, reads, tables, parents, referenced;

  TransactionHashes hashes() const {
    return {
        .writes = writes, .reads = reads, .tables = {.touched = tables, .parents = parents, .referenced = referenced}};
  }
};

// The queue's transactions, in commit order.
base::Result<std::vector<Entry>> load(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT id, commit_lsn, hashes, read_hashes, table_hashes, parent_hashes, "
                                  "referenced_hashes FROM thalweg.error_queue WHERE stream_id = $1 ORDER BY commit_lsn",
                                  {stream_id}));
  std::vector<Entry> entries(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    entries[row] = {.id = rows.integer(row, 0),
                    .commit_lsn = base::parse_lsn(rows.text(row, 1)).value_or(base::Lsn{}),
                    .writes = decode_hashes_hex(rows.text(row, 2)),
                    .reads = decode_hashes_hex(rows.text(row, 3)),
                    .tables = decode_hashes_hex(rows.text(row, 4)),
                    .parents = decode_hashes_hex(rows.text(row, 5)),
                    .referenced = decode_hashes_hex(rows.text(row, 6))};
  }
  return entries;
}

std::vector<int64_t> ids_of(const std::vector<Entry>& entries, const std::set<size_t>& places) {
  std::vector<int64_t> ids;
  for (const size_t place : places) {
    if (ids.size() == kParkedBehindShownMax) break;
    ids.push_back(entries[place].id);
  }
  return ids;
}

// The tree's transactions have only their ids yet.
ParkedTree grow(const std::vector<Entry>& entries, int64_t root, const TreePart& part) {
  ParkedTree tree;
  FirstParked queue;
  FirstParked in_tree;
  base::Lsn last_shown;
  for (size_t place = 0; place < entries.size(); ++place) {
    const Entry& entry = entries[place];
    const TransactionHashes hashes = entry.hashes();
    std::set<size_t> before;
    std::set<size_t> parents;
    queue.find(hashes, before);
    in_tree.find(hashes, parents);
    queue.add(hashes, place);
    if (entry.id == root) {
      tree.behind = ids_of(entries, before);
      tree.behind_total = before.size();
    } else if (parents.empty()) {
      continue;
    }
    in_tree.add(hashes, place);
    if (entry.id == root) continue;
    ++tree.total;
    if (entry.commit_lsn.value <= part.after) continue;
    if (tree.dependants.size() == part.limit) {
      tree.next_after = last_shown.value;
      continue;
    }
    last_shown = entry.commit_lsn;
    tree.dependants.push_back({.transaction = {.id = entry.id},
                               .parent = entries[*parents.begin()].id,
                               .behind = ids_of(entries, before),
                               .behind_total = before.size()});
  }
  return tree;
}

base::Result<ParkedTree> read_in_transaction(pg::Connection& connection, std::string_view stream_id, int64_t id,
                                             const TreePart& part) {
  THALWEG_ASSIGN(const bool exists, pg::trusted_bookkeeping(connection, {"error_queue"}));
  if (!exists) return unknown_parked(id);
  THALWEG_ASSIGN(const std::vector<Entry> entries, load(connection, stream_id));
  if (std::ranges::find(entries, id, &Entry::id) == entries.end()) return unknown_parked(id);
  ParkedTree tree = grow(entries, id, part);
  std::vector<int64_t> ids;
  for (const ParkedDependant& dependant : tree.dependants) ids.push_back(dependant.transaction.id);
  THALWEG_ASSIGN(auto shown, find_parked(connection, stream_id, ids));
  for (ParkedDependant& dependant : tree.dependants) {
    const auto found = std::ranges::find(shown, dependant.transaction.id, &telemetry::ParkedTransaction::id);
    if (found != shown.end()) dependant.transaction = std::move(*found);
  }
  return tree;
}

}  // namespace

void FirstParked::Tables::add(const TableHashes& tables, size_t place) {
  add_all(touched, tables.touched, place);
  add_all(parents, tables.parents, place);
  add_all(referenced, tables.referenced, place);
}

void FirstParked::Tables::find(const TableHashes& later, std::set<size_t>& places) const {
  find_all(touched, later.touched, places);
  find_all(referenced, later.parents, places);
  find_all(parents, later.referenced, places);
}

void FirstParked::add(const TransactionHashes& parked, size_t place) {
  add_all(writes_, parked.writes, place);
  add_all(reads_, parked.reads, place);
  all_.add(parked.tables, place);
  if (!parked.of_rows()) whole_.add(parked.tables, place);
}

void FirstParked::find(const TransactionHashes& later, std::set<size_t>& places) const {
  if (!later.of_rows()) {
    all_.find(later.tables, places);
    return;
  }
  find_all(writes_, later.writes, places);
  find_all(writes_, later.reads, places);
  find_all(reads_, later.writes, places);
  whole_.find(later.tables, places);
}

base::Result<ParkedTree> read_parked_tree(pg::Connection& connection, std::string_view stream_id, int64_t id,
                                          const TreePart& part) {
  THALWEG_TRY(connection.script(kBegin));
  auto tree = read_in_transaction(connection, stream_id, id, part);
  if (!connection.broken()) THALWEG_TRY(connection.script("ROLLBACK"));
  return tree;
}

}  // namespace thalweg::apply
