#include "dictionary/dictionary_file.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/file.h"

namespace thalweg::dictionary {

namespace {

constexpr std::string_view kMagic = "TWDICT02";
constexpr size_t kBytesMax = size_t{4} << 30;  // twenty million attributes

class Writer {
 public:
  template <typename Number>
  Writer& put(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  Writer& raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Behind the end everything is zero, and is_whole() false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <typename Number>
  Number take() {
    Number value{};
    const std::string_view bytes = raw(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view raw(size_t count) {
    if (count > left_.size()) {
      left_ = {};
      whole_ = false;
      return {};
    }
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }
  std::string text() { return std::string{raw(take<uint32_t>())}; }
  bool is_whole() const { return whole_; }
  bool is_at_end() const { return whole_ && left_.empty(); }

 private:
  std::string_view left_;
  bool whole_ = true;
};

}  // namespace

base::Result<bool> DictionaryFile::save(const Dictionary& dictionary, const std::filesystem::path& path) {
  if (!dictionary.is_ready() || !dictionary.rewrites_.empty()) return false;
  Writer writer;
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
    for (const Touched& one : all) {
      writer.put(xid.value).put(one.file).put(one.place.block).put(one.place.offset);
      writer.put(static_cast<uint8_t>(one.inserted));
    }
  }
  writer.put(static_cast<uint32_t>(open.top_level_.size()));
  for (const auto& [xid, top_level] : open.top_level_) writer.put(xid.value).put(top_level.value);
  writer.put(static_cast<uint32_t>(open.prepared_.size()));
  for (const auto& [xid, prepared] : open.prepared_) writer.put(xid.value);
  writer.put(static_cast<uint64_t>(XXH3_64bits(writer.bytes().data(), writer.bytes().size())));
  constexpr mode_t kMode = 0600;
  THALWEG_TRY(base::write_file_atomically(path, writer.bytes(), kMode));
  return true;
}

base::Result<Dictionary> DictionaryFile::load(const std::filesystem::path& path) {
  THALWEG_ASSIGN(const std::string bytes, base::read_file(path, kBytesMax));
  const auto damaged = [&] {
    return base::fail(base::ErrorCode::file_error, fmt::format("{} is damaged.", path.string()),
                      base::ErrorSide::engine);
  };
  uint64_t sum = 0;
  if (bytes.size() < kMagic.size() + sizeof sum) return damaged();
  const std::string_view content = std::string_view{bytes}.substr(0, bytes.size() - sizeof sum);
  std::memcpy(&sum, bytes.data() + content.size(), sizeof sum);
  if (sum != XXH3_64bits(content.data(), content.size()) || !content.starts_with(kMagic)) return damaged();
  Reader reader(content.substr(kMagic.size()));
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
