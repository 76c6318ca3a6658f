#include "dictionary/dictionary_file.h"

#include <string>
#include <string_view>

#include "dictionary/file_bytes.h"

namespace thalweg::dictionary {

namespace {

constexpr std::string_view kMagic = "TWDICT02";

}  // namespace

base::Result<bool> DictionaryFile::save(const Dictionary& dictionary, const std::filesystem::path& path) {
  if (!dictionary.is_ready() || !dictionary.rewrites_.empty()) return false;
  FileWriter writer;
  writer.raw(kMagic).put(dictionary.position_.value);
  writer.put(dictionary.place_.tablespace).put(dictionary.place_.database);
  uint32_t versions = 0;
  for (size_t i = 0; i < kCatalogs; ++i) {
    writer.put(dictionary.numbers_.at(i));
    const auto& stored = dictionary.layouts_.at(i)->stored();
    writer.put(static_cast<uint32_t>(stored.size()));
    for (const StoredColumn& column : stored) writer.text(column.name).put(column.length).put(column.align);
    versions += static_cast<uint32_t>(dictionary.files_.at(dictionary.numbers_.at(i)).size());
  }
  writer.put(versions);
  for (const auto& [number, file] : dictionary.files_) {
    file.each([&](Place place, const Version& version) {
      writer.put(number).put(place.block).put(place.offset).put(static_cast<uint8_t>(version.knowledge));
      writer.put(version.infomask2).put(version.infomask).put(version.header_bytes);
      writer.put(version.inserted_by.value).put(version.removed_by.value).text(version.bytes);
    });
  }
  const OpenTransactions& open = dictionary.transactions_;
  uint32_t count = 0;
  for (const auto& [xid, all] : open.touched_) count += static_cast<uint32_t>(all.size());
  writer.put(count);
  for (const auto& [xid, all] : open.touched_) {
    for (const Touched& touched : all) {
      writer.put(xid.value).put(touched.file).put(touched.place.block).put(touched.place.offset);
      writer.put(static_cast<uint8_t>(touched.inserted));
    }
  }
  writer.put(static_cast<uint32_t>(open.top_level_.size()));
  for (const auto& [xid, top_level] : open.top_level_) writer.put(xid.value).put(top_level.value);
  writer.put(static_cast<uint32_t>(open.prepared_.size()));
  for (const auto& [xid, prepared] : open.prepared_) writer.put(xid.value);
  THALWEG_TRY(writer.write_to(path));
  return true;
}

base::Result<Dictionary> DictionaryFile::load(const std::filesystem::path& path) {
  THALWEG_ASSIGN(const std::string bytes, read_summed_file(path, kMagic));
  const auto damaged = [&] { return damaged_file(path); };
  FileReader reader{std::string_view{bytes}.substr(kMagic.size())};
  Dictionary dictionary;
  dictionary.position_ = {reader.take<uint64_t>()};
  dictionary.place_.tablespace = reader.take<uint32_t>();
  dictionary.place_.database = reader.take<uint32_t>();
  for (size_t i = 0; i < kCatalogs; ++i) {
    const auto catalog = static_cast<Catalog>(i);
    const uint32_t number = dictionary.numbers_.at(i) = reader.take<uint32_t>();
    std::vector<StoredColumn> stored(std::min<uint32_t>(reader.take<uint32_t>(), wal::kColumnsMask));
    for (StoredColumn& column : stored) {
      column.name = reader.text();
      column.length = reader.take<int16_t>();
      column.align = reader.take<char>();
    }
    auto layout = CatalogLayout::of(description_of(catalog), std::move(stored));
    if (!layout) return damaged();
    dictionary.layouts_.at(i) = std::make_shared<const CatalogLayout>(std::move(*layout));
    dictionary.files_.emplace(number, CatalogFile(catalog, dictionary.layouts_.at(i)));
  }
  for (auto left = reader.take<uint32_t>(); left > 0 && reader.is_whole(); --left) {
    const auto file = dictionary.files_.find(reader.take<uint32_t>());
    Place place{.block = reader.take<uint32_t>()};
    place.offset = reader.take<uint16_t>();
    Version version{.knowledge = static_cast<Knowledge>(reader.take<uint8_t>()), .is_settled = true};
    version.infomask2 = reader.take<uint16_t>();
    version.infomask = reader.take<uint16_t>();
    version.header_bytes = reader.take<uint8_t>();
    version.inserted_by = {reader.take<uint32_t>()};
    version.removed_by = {reader.take<uint32_t>()};
    version.bytes = reader.text();
    if (file == dictionary.files_.end() || version.knowledge > Knowledge::stored) return damaged();
    if (version.knowledge == Knowledge::stored && !wal::is_whole(version.tuple())) return damaged();
    if (file->second.put(place, std::move(version)) == nullptr) return damaged();
  }
  OpenTransactions& open = dictionary.transactions_;
  for (auto left = reader.take<uint32_t>(); left > 0 && reader.is_whole(); --left) {
    const base::Xid xid{reader.take<uint32_t>()};
    Touched touched{.file = reader.take<uint32_t>(), .place = {.block = reader.take<uint32_t>()}};
    touched.place.offset = reader.take<uint16_t>();
    touched.inserted = reader.take<uint8_t>() != 0;
    open.touch(xid, touched);
  }
  for (auto left = reader.take<uint32_t>(); left > 0 && reader.is_whole(); --left) {
    const base::Xid xid{reader.take<uint32_t>()};
    open.assign(xid, {reader.take<uint32_t>()});
  }
  for (auto left = reader.take<uint32_t>(); left > 0 && reader.is_whole(); --left) {
    open.prepare({reader.take<uint32_t>()});
  }
  if (!reader.is_at_end()) return damaged();
  return dictionary;
}

}  // namespace thalweg::dictionary
