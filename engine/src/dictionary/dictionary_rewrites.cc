#include <algorithm>
#include <unordered_map>

#include "dictionary/contradiction.h"
#include "dictionary/dictionary.h"

// VACUUM FULL and CLUSTER of a catalog copy it into another file, by images of pages (rewriteheap.c of
// src/backend/access/heap), and swap the files (swap_relation_files of src/backend/commands/cluster.c). Other
// transactions do not change the catalog meanwhile; what they had changed before may still be open.

namespace thalweg::dictionary {

namespace {

// Whether the row of an image may be this one. A row has older versions that may be equal to it.
bool may_be(const Version& copied, const Version& known) {
  const bool frozen = (copied.infomask & wal::kXminFrozen) == wal::kXminFrozen;
  if (!frozen && (copied.infomask & wal::kXminInvalid) != 0) return false;
  if (known.inserted_by && (frozen || copied.xmin != known.inserted_by)) return false;
  const bool has_remover = copied.xmax && (copied.infomask & (wal::kXmaxInvalid | wal::kXmaxLockOnly)) == 0;
  if (!known.removed_by) return !has_remover || (copied.infomask & (wal::kXmaxCommitted | wal::kXmaxIsMulti)) == 0;
  return has_remover && (copied.xmax == known.removed_by || (copied.infomask & wal::kXmaxIsMulti) != 0);
}

}  // namespace

base::Result<void> Dictionary::note_rewrite(const wal::WalRecord& record, const Version& version) {
  const auto row = current(Catalog::pg_class).row(version);
  if (!row) return {};
  const auto of = catalog_of(static_cast<uint32_t>(std::get<int64_t>((*row)[class_column::rewrite])));
  if (!of) return {};
  const auto filenode = std::get<int64_t>((*row)[class_column::filenode]);
  const auto number = static_cast<uint32_t>(filenode != 0 ? filenode : std::get<int64_t>((*row)[class_column::oid]));
  // Updates of the new row insert it again, the last one with the file that the catalog had.
  const auto is_known = [&](const Rewrite& rewrite) {
    return rewrite.catalog == *of && transactions_.top_of(rewrite.by) == transactions_.top_of(record.xid);
  };
  if (std::ranges::any_of(rewrites_, is_known)) return {};
  if (!is_ready() || files_.contains(number)) {
    was_rewritten_ = true;
    if (is_ready()) return contradiction(record, *of, {}, "was read by SQL from a file that is only made here");
    return {};
  }
  files_.emplace(number, CatalogFile(*of, layouts_.at(static_cast<size_t>(*of))));
  rewrites_.push_back({.catalog = *of, .by = record.xid, .number = number});
  return {};
}

base::Result<void> Dictionary::make_current(const wal::WalRecord& record, Rewrite& rewrite) {
  const CatalogDescription& catalog = description_of(rewrite.catalog);
  CatalogFile& before = current(rewrite.catalog);
  CatalogFile& copy = files_.at(rewrite.number);
  std::unordered_multimap<std::string, Place> copied;
  bool is_complete = true;
  copy.each([&](Place place, const Version& version) {
    const auto row = copy.row(version);
    if (row) copied.emplace(comparable(catalog, *row), place);
    is_complete = is_complete && row;
  });
  std::optional<Place> missing;
  before.each([&](Place place, const Version& version) {
    if (missing || !version.is_settled) return;
    const auto row = before.row(version);
    const auto [begin, end] =
        row ? copied.equal_range(comparable(catalog, *row)) : std::pair{copied.end(), copied.end()};
    const auto found = std::find_if(begin, end, [&](const auto& entry) {
      const Version& candidate = *copy.find(entry.second);
      return !candidate.is_settled && may_be(candidate, version);
    });
    if (found == end) {
      missing = place;
      return;
    }
    Version& same = *copy.find(found->second);
    same.is_settled = true;
    same.inserted_by = version.inserted_by;
    same.removed_by = version.removed_by;
    for (const auto& [xid, inserted] : {std::pair{same.inserted_by, true}, std::pair{same.removed_by, false}}) {
      if (xid) transactions_.touch(xid, {.file = rewrite.number, .place = found->second, .inserted = inserted});
    }
  });
  if (missing || !is_complete) {
    return contradiction(record, rewrite.catalog, missing.value_or(Place{}), "is not in the copy of its catalog");
  }
  std::vector<Place> dead;
  copy.each([&](Place place, const Version& version) {
    if (!version.is_settled) dead.push_back(place);
  });
  for (const Place place : dead) copy.erase(place);
  uint32_t& number = numbers_.at(static_cast<size_t>(rewrite.catalog));
  rewrite.before = number;
  rewrite.is_current = true;
  number = rewrite.number;
  return {};
}

base::Result<void> Dictionary::follow_map(const wal::WalRecord& record, const wal::FileMap& map) {
  if (!is_ready()) return {};  // settle() learns of it by the row that makes the file
  for (const auto& [oid, number] : map.numbers) {
    const auto catalog = catalog_of(oid);
    if (!catalog || !description_of(*catalog).is_mapped) continue;
    const auto rewrite = std::ranges::find(rewrites_, number, &Rewrite::number);
    if (rewrite != rewrites_.end()) {
      if (!rewrite->is_current) THALWEG_TRY(make_current(record, *rewrite));
      rewrite->is_mapped = true;
    } else if (number != numbers_.at(static_cast<size_t>(*catalog))) {
      return contradiction(record, *catalog, {}, "is in a file of which no copy was seen");
    }
  }
  return {};
}

void Dictionary::end_rewrites(base::Xid xid, bool committed) {
  for (const Rewrite& rewrite : rewrites_) {
    if (rewrite.by != xid) continue;
    const bool stays = rewrite.is_current && (committed || rewrite.is_mapped);
    if (rewrite.is_current && !stays) numbers_.at(static_cast<size_t>(rewrite.catalog)) = rewrite.before;
    files_.erase(stays ? rewrite.before : rewrite.number);
  }
  std::erase_if(rewrites_, [&](const Rewrite& rewrite) { return rewrite.by == xid; });
}

}  // namespace thalweg::dictionary
