#include "dictionary/catalog_file.h"

#include <algorithm>

namespace thalweg::dictionary {

void Version::store(const wal::HeapTuple& tuple) {
  knowledge = Knowledge::stored;
  bytes.assign(reinterpret_cast<const char*>(tuple.data.data()), tuple.data.size());
  infomask2 = tuple.infomask2;
  infomask = tuple.infomask;
  header_bytes = tuple.header_bytes;
}

bool Version::has(const wal::HeapTuple& tuple) const {
  return tuple.columns() == (infomask2 & wal::kColumnsMask) && tuple.header_bytes == header_bytes &&
         (tuple.infomask & wal::kHasNull) == (infomask & wal::kHasNull) &&
         std::ranges::equal(tuple.data, std::as_bytes(std::span{bytes}));
}

CatalogFile::CatalogFile(Catalog catalog, std::shared_ptr<const CatalogLayout> layout)
    : catalog_(catalog), layout_(std::move(layout)), keys_(description_of(catalog).keys.size()) {}

Version* CatalogFile::find(Place place) {
  const auto page = pages_.find(place.block);
  if (page == pages_.end()) return nullptr;
  const auto found = page->second.find(place.offset);
  return found == page->second.end() ? nullptr : &found->second;
}

Version* CatalogFile::put(Place place, Version version) {
  std::optional<Row> row;
  if (version.knowledge != Knowledge::none) {
    row = this->row(version);
    if (!row) return nullptr;
  }
  erase(place);
  if (row) index(place, *row);
  return &pages_[place.block].insert_or_assign(place.offset, std::move(version)).first->second;
}

void CatalogFile::erase(Place place) {
  const auto page = pages_.find(place.block);
  if (page == pages_.end()) return;
  const auto found = page->second.find(place.offset);
  if (found == page->second.end()) return;
  forget(place, found->second);
  page->second.erase(found);
  if (page->second.empty()) pages_.erase(page);
}

const CatalogFile::Page* CatalogFile::page(uint32_t block) const {
  const auto found = pages_.find(block);
  return found == pages_.end() ? nullptr : &found->second;
}

void CatalogFile::erase_page(uint32_t block) {
  const auto found = pages_.find(block);
  if (found == pages_.end()) return;
  for (const auto& [offset, version] : found->second) forget({block, offset}, version);
  pages_.erase(found);
}

void CatalogFile::truncate(uint32_t blocks) {
  std::vector<uint32_t> gone;
  for (const auto& [block, page] : pages_) {
    if (block >= blocks) gone.push_back(block);
  }
  for (const uint32_t block : gone) erase_page(block);
}

std::optional<Row> CatalogFile::row(const Version& version) const {
  switch (version.knowledge) {
    case Knowledge::none:
      return std::nullopt;
    case Knowledge::selected:
      return unpacked(version.bytes);
    case Knowledge::stored:
      return layout_->row(version.tuple());
  }
  return std::nullopt;
}

void CatalogFile::each_with_key(size_t key, int64_t value, const std::function<void(const Version&)>& take) const {
  const auto [begin, end] = keys_.at(key).equal_range(value);
  for (auto found = begin; found != end; ++found) {
    take(pages_.at(found->second.block).at(found->second.offset));
  }
}

void CatalogFile::each(const std::function<void(Place, Version&)>& take) {
  for (auto& [block, page] : pages_) {
    for (auto& [offset, version] : page) take({block, offset}, version);
  }
}

void CatalogFile::each(const std::function<void(Place, const Version&)>& take) const {
  for (const auto& [block, page] : pages_) {
    for (const auto& [offset, version] : page) take({block, offset}, version);
  }
}

size_t CatalogFile::size() const {
  size_t count = 0;
  for (const auto& [block, page] : pages_) count += page.size();
  return count;
}

void CatalogFile::index(Place place, const Row& row) {
  const auto keys = description_of(catalog_).keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (const auto* const value = std::get_if<int64_t>(&row[keys[i]])) keys_[i].emplace(*value, place);
  }
}

void CatalogFile::forget(Place place, const Version& version) {
  const auto row = this->row(version);
  if (!row) return;
  const auto keys = description_of(catalog_).keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto* const value = std::get_if<int64_t>(&(*row)[keys[i]]);
    if (value == nullptr) continue;
    const auto [begin, end] = keys_[i].equal_range(*value);
    const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second == place; });
    if (found != end) keys_[i].erase(found);
  }
}

}  // namespace thalweg::dictionary
