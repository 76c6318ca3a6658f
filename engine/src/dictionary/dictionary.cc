#include "dictionary/dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dictionary/contradiction.h"

namespace thalweg::dictionary {

base::Result<Dictionary> Dictionary::begin(FirstContents contents) {
  Dictionary dictionary;
  for (size_t i = 0; i < kCatalogs; ++i) {
    const auto catalog = static_cast<Catalog>(i);
    CatalogContents& selected = contents.catalogs.at(i);
    auto layout = CatalogLayout::of(description_of(catalog), std::move(selected.columns));
    if (!layout) {
      return base::fail(base::ErrorCode::unsupported_version,
                        fmt::format("The source's {} lacks a column.", description_of(catalog).name));
    }
    dictionary.layouts_.at(i) = std::make_shared<const CatalogLayout>(std::move(*layout));
    dictionary.numbers_.at(i) = selected.file.number;
    dictionary.files_.emplace(selected.file.number, CatalogFile(catalog, dictionary.layouts_.at(i)));
    dictionary.place_ = selected.file;
  }
  dictionary.first_ = std::move(contents);
  return dictionary;
}

base::Result<void> Dictionary::reach(base::Lsn begin) {
  return first_ && begin >= first_->as_of ? settle() : base::Result<void>{};
}

base::Result<void> Dictionary::apply(const wal::WalRecord& record, const wal::RecordParts& parts,
                                     const wal::WalFormat& format) {
  THALWEG_TRY(reach(record.begin));
  if (parts.top_level_xid()) transactions_.assign(record.xid, parts.top_level_xid());
  switch (record.rmgr) {
    case wal::Rmgr::heap:
    case wal::Rmgr::heap2:
      THALWEG_TRY(apply_heap(record, parts));
      break;
    case wal::Rmgr::transaction:
      THALWEG_TRY(apply_transaction(record, parts, format));
      break;
    case wal::Rmgr::xlog:
      if (wal::ends_all_transactions(record)) abort_all(transactions_.not_prepared());
      break;
    case wal::Rmgr::standby: {
      THALWEG_ASSIGN(const auto oldest, wal::parse_oldest_running(record, parts));
      if (oldest) abort_all(transactions_.not_prepared_before(*oldest));
      break;
    }
    default:
      THALWEG_TRY(apply_files(record, parts));
  }
  // The images come after the change, which is on them.
  for (const wal::BlockReference& block : parts.blocks()) {
    if (block.has_image && block.fork == wal::Fork::main) THALWEG_TRY(compare_image(record, block));
  }
  position_ = record.end;
  return {};
}

base::Result<void> Dictionary::apply_files(const wal::WalRecord& record, const wal::RecordParts& parts) {
  THALWEG_ASSIGN(const auto truncation, wal::parse_truncation(record, parts));
  if (truncation) {
    if (CatalogFile* const file = file_of(truncation->file)) file->truncate(truncation->blocks);
  }
  THALWEG_ASSIGN(const auto map, wal::parse_file_map(record, parts));
  if (map && map->database == place_.database) THALWEG_TRY(follow_map(record, *map));
  THALWEG_ASSIGN(const auto database, wal::parse_database(record, parts));
  // Made before the first contents, it comes page by page, as images; or before a checkpoint, and so before the start.
  if (database && *database == place_.database && is_ready()) {
    return contradiction(record, Catalog::pg_class, {}, "is of a database that was moved or removed");
  }
  return {};
}

CatalogFile* Dictionary::file_of(const wal::RelationFile& file) {
  if (file.database != place_.database || file.tablespace != place_.tablespace) return nullptr;
  const auto found = files_.find(file.number);
  return found == files_.end() ? nullptr : &found->second;
}

base::Result<void> Dictionary::apply_heap(const wal::WalRecord& record, const wal::RecordParts& parts) {
  const wal::BlockReference* const first = parts.block(0);
  if (first == nullptr || file_of(first->file) == nullptr) return {};
  THALWEG_ASSIGN(const wal::HeapChange change, heap_records_.parse(record, parts));
  if (change.old_page == nullptr && change.tuples.empty()) return {};
  // A row of a copy is changed: by then the copy is complete, and has taken the file's place.
  for (Rewrite& rewrite : rewrites_) {
    if (rewrite.number == first->file.number && !rewrite.is_current) THALWEG_TRY(make_current(record, rewrite));
  }
  CatalogFile& file = *file_of(first->file);
  if (change.operation == wal::HeapOperation::in_place) return apply_in_place(record, change, file);
  std::vector<std::pair<Place, Version>> added;
  const Place old_place{.block = change.old_page == nullptr ? 0 : change.old_page->block, .offset = change.old_offset};
  const Version* const old = change.old_page == nullptr ? nullptr : file.find(old_place);
  for (const wal::NewTuple& tuple : change.tuples) {
    THALWEG_ASSIGN(Version version, version_of(record, tuple, change, old));
    added.emplace_back(Place{.block = change.new_page->block, .offset = tuple.offset}, std::move(version));
  }
  if (change.old_page != nullptr) THALWEG_TRY(remove(record, first->file, old_place));
  if (change.new_page != nullptr && change.new_page->is_initialised) file.erase_page(change.new_page->block);
  for (auto& [place, version] : added) THALWEG_TRY(add(record, first->file, place, std::move(version)));
  return {};
}

base::Result<Version> Dictionary::version_of(const wal::WalRecord& record, const wal::NewTuple& added,
                                             const wal::HeapChange& change, const Version* old) {
  const auto refused = [&](std::string_view what) {
    return contradiction(record, file_of(change.new_page->file)->catalog(),
                         {.block = change.new_page->block, .offset = added.offset}, what);
  };
  Version version{.inserted_by = record.xid, .is_settled = true};
  if (!added.has_data) {
    if (!change.new_page->has_image) return refused("is neither in the record nor on an image");
    THALWEG_TRY(page_.restore(change.new_page->image, record.begin));
    THALWEG_ASSIGN(const auto tuple, page_.tuple(added.offset));
    if (!tuple) return refused("is not on its page's image");
    version.store(tuple->tuple);
    return version;
  }
  version.store(added.tuple);
  if (added.prefix_bytes == 0 && added.suffix_bytes == 0) return version;
  if (old == nullptr || old->knowledge != Knowledge::stored) return refused("is a part of one that is not known");
  const auto values = old->tuple().values();
  if (size_t{added.prefix_bytes} + added.suffix_bytes > values.size()) return refused("is longer than the one before");
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  };
  version.bytes = text(added.tuple.bitmap());
  version.bytes += text(values.first(added.prefix_bytes));
  version.bytes += text(added.tuple.values());
  version.bytes += text(values.last(added.suffix_bytes));
  return version;
}

base::Result<void> Dictionary::apply_in_place(const wal::WalRecord& record, const wal::HeapChange& change,
                                              CatalogFile& file) {
  const wal::NewTuple& added = change.tuples.front();
  const Place place{.block = change.new_page->block, .offset = added.offset};
  const Version* const found = file.find(place);
  if (found == nullptr || found->knowledge != Knowledge::stored) {
    // No column that matters is ever changed in place; the next image brings the row.
    if (found == nullptr && is_ready())
      return contradiction(record, file.catalog(), place, "is overwritten and unknown");
    return {};
  }
  Version version = *found;
  if (added.has_data) {
    if (added.tuple.data.size() != version.tuple().values().size()) {
      return contradiction(record, file.catalog(), place, "is overwritten by a longer one");
    }
    version.bytes.resize(version.tuple().bitmap().size());
    version.bytes.append(reinterpret_cast<const char*>(added.tuple.data.data()), added.tuple.data.size());
  } else {
    if (!change.new_page->has_image) return contradiction(record, file.catalog(), place, "is overwritten by nothing");
    THALWEG_TRY(page_.restore(change.new_page->image, record.begin));
    THALWEG_ASSIGN(const auto tuple, page_.tuple(added.offset));
    if (!tuple) return contradiction(record, file.catalog(), place, "is not on its page's image");
    version.store(tuple->tuple);
  }
  if (file.put(place, std::move(version)) == nullptr) {
    return contradiction(record, file.catalog(), place, "is overwritten by what is no row");
  }
  return {};
}

base::Result<void> Dictionary::remove(const wal::WalRecord& record, const wal::RelationFile& file, Place place) {
  CatalogFile& rows = *file_of(file);
  Version* version = rows.find(place);
  if (version == nullptr) {
    if (is_ready()) return contradiction(record, rows.catalog(), place, "is removed and unknown");
    version = rows.put(place, {});
  }
  if (is_ready() && version->removed_by && transactions_.has_touched(version->removed_by)) {
    return contradiction(record, rows.catalog(), place, "is removed twice");
  }
  version->removed_by = record.xid;
  ++changes_;
  transactions_.touch(record.xid, {.file = file.number, .place = place, .inserted = false});
  return {};
}

base::Result<void> Dictionary::add(const wal::WalRecord& record, const wal::RelationFile& file, Place place,
                                   Version version) {
  CatalogFile& rows = *file_of(file);
  if (is_ready() && rows.find(place) != nullptr) {
    return contradiction(record, rows.catalog(), place, "is inserted where another one is");
  }
  if (rows.catalog() == Catalog::pg_class) THALWEG_TRY(note_rewrite(record, version));
  if (CatalogFile* const after = file_of(file); after->put(place, std::move(version)) == nullptr) {
    return contradiction(record, after->catalog(), place, "is no row of it");
  }
  ++changes_;
  transactions_.touch(record.xid, {.file = file.number, .place = place, .inserted = true});
  return {};
}

base::Result<void> Dictionary::compare_image(const wal::WalRecord& record, const wal::BlockReference& block) {
  CatalogFile* const file = file_of(block.file);
  if (file == nullptr) return {};
  THALWEG_TRY(page_.restore(block.image, record.begin));
  std::set<uint16_t> present;
  for (uint16_t offset = 1; offset <= page_.offsets(); ++offset) {
    THALWEG_ASSIGN(const auto tuple, page_.tuple(offset));
    if (!tuple) continue;
    present.insert(offset);
    THALWEG_TRY(compare_tuple(record, *file, {.block = block.block, .offset = offset}, *tuple));
  }
  std::vector<Place> gone;
  if (const CatalogFile::Page* const known = file->page(block.block)) {
    for (const auto& [offset, version] : *known) {
      const Place place{.block = block.block, .offset = offset};
      if (present.contains(offset)) continue;
      if (version.is_settled) return contradiction(record, file->catalog(), place, "is not on its page's image");
      gone.push_back(place);
    }
  }
  for (const Place place : gone) file->erase(place);
  return {};
}

base::Result<void> Dictionary::compare_tuple(const wal::WalRecord& record, CatalogFile& file, Place place,
                                             const wal::PageTuple& tuple) {
  const Version* const known = file.find(place);
  // A copy's rows, and all before the first contents, may be anybody's. Later, a row that is not known is a dead one.
  const bool takes_new = first_.has_value() || std::ranges::any_of(rewrites_, [&](const Rewrite& rewrite) {
                           return !rewrite.is_current && &files_.at(rewrite.number) == &file;
                         });
  if (known == nullptr && !takes_new) return {};
  if (known != nullptr && known->knowledge == Knowledge::stored) {
    if (known->has(tuple.tuple)) return {};
    if (known->is_settled) return contradiction(record, file.catalog(), place, "is another one on its page's image");
  }
  Version version = known == nullptr ? Version{} : *known;
  std::optional<Row> selected;
  if (known != nullptr && known->knowledge == Knowledge::selected) selected = file.row(*known);
  version.store(tuple.tuple);
  if (!version.is_settled) {
    version.xmin = tuple.xmin;
    version.xmax = tuple.xmax;
  }
  const auto row = file.row(version);
  if (!row) return contradiction(record, file.catalog(), place, "is no row of it");
  const CatalogDescription& catalog = description_of(file.catalog());
  if (selected && comparable(catalog, std::move(*selected)) != comparable(catalog, *row)) {
    return contradiction(record, file.catalog(), place, "is not what SQL has read");
  }
  file.put(place, std::move(version));
  return {};
}

base::Result<void> Dictionary::settle() {
  const FirstContents contents = std::move(*first_);
  first_.reset();
  ++changes_;
  wal::WalRecord here;
  here.begin = contents.as_of;
  if (was_rewritten_) {
    return base::fail(base::ErrorCode::wal_incomplete,
                      "A system catalog was rewritten (VACUUM FULL or CLUSTER) while the capture started: what the "
                      "WAL before tells of it cannot be followed.",
                      base::ErrorSide::source);
  }
  for (size_t i = 0; i < kCatalogs; ++i) {
    const auto catalog = static_cast<Catalog>(i);
    CatalogFile& file = current(catalog);
    for (const SelectedRow& selected : contents.catalogs.at(i).rows) {
      Version* found = file.find(selected.place);
      if (found != nullptr && found->inserted_by) {
        return contradiction(here, catalog, selected.place, "was read by SQL, and its transaction has not committed");
      }
      if (found != nullptr && found->knowledge == Knowledge::stored) {
        const auto row = file.row(*found);
        const CatalogDescription& columns = description_of(catalog);
        if (!row || comparable(columns, *row) != comparable(columns, unpacked(selected.row).value_or(Row{}))) {
          return contradiction(here, catalog, selected.place, "is not what SQL has read");
        }
      } else {
        Version version{.knowledge = Knowledge::selected,
                        .bytes = selected.row,
                        .removed_by = found == nullptr ? base::Xid{} : found->removed_by};
        found = file.put(selected.place, std::move(version));
        if (found == nullptr) return contradiction(here, catalog, selected.place, "is no row of it");
      }
      found->is_settled = true;
    }
    std::vector<Place> dead;
    file.each([&](Place place, Version& version) {
      if (!version.is_settled) dead.push_back(place);
    });
    for (const Place place : dead) file.erase(place);
  }
  return {};
}

bool Dictionary::sees(const Version& version, base::Xid viewer) const {
  const auto is_viewers = [&](base::Xid xid) {
    return static_cast<bool>(viewer) && transactions_.top_of(xid) == transactions_.top_of(viewer);
  };
  if (version.inserted_by && !is_viewers(version.inserted_by)) return false;
  return !version.removed_by || !is_viewers(version.removed_by);
}

void Dictionary::rows(Catalog catalog, base::Xid viewer, const std::function<void(Row)>& take) const {
  const CatalogFile& file = current(catalog);
  file.each([&](Place, const Version& version) {
    if (sees(version, viewer)) take(*file.row(version));
  });
}

void Dictionary::rows_with_key(Catalog catalog, size_t key, int64_t value, base::Xid viewer,
                               const std::function<void(Row)>& take) const {
  const CatalogFile& file = current(catalog);
  file.each_with_key(key, value, [&](const Version& version) {
    if (sees(version, viewer)) take(*file.row(version));
  });
}

std::optional<uint32_t> Dictionary::relation_of(const wal::RelationFile& file, base::Xid viewer) const {
  if (file.database != place_.database || file.number == 0) return std::nullopt;
  constexpr size_t kByFile = 1;
  std::optional<uint32_t> oid;
  rows_with_key(Catalog::pg_class, kByFile, file.number, viewer, [&](const Row& row) {
    const auto tablespace = std::get<int64_t>(row[class_column::tablespace]);
    if (file.tablespace != (tablespace == 0 ? place_.tablespace : tablespace)) return;
    // Files of temporary relations are numbered for themselves (t6_16384 beside 16384), and none of them is in the WAL.
    if (std::get<int64_t>(row[class_column::persistence]) == 't') return;
    oid = static_cast<uint32_t>(std::get<int64_t>(row[class_column::oid]));
  });
  return oid;
}

}  // namespace thalweg::dictionary
