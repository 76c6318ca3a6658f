#include "dictionary/first_contents_file.h"

#include <string>
#include <string_view>

#include "dictionary/file_bytes.h"

namespace thalweg::dictionary {

namespace {

constexpr std::string_view kMagic = "TWFIRST1";

}  // namespace

base::Result<void> save_first_contents(const FirstContents& contents, const std::filesystem::path& path) {
  FileWriter writer;
  writer.raw(kMagic).put(contents.as_of.value);
  for (const CatalogContents& catalog : contents.catalogs) {
    writer.put(catalog.file.tablespace).put(catalog.file.database).put(catalog.file.number);
    writer.put(static_cast<uint32_t>(catalog.columns.size()));
    for (const StoredColumn& column : catalog.columns) writer.text(column.name).put(column.length).put(column.align);
    writer.put(static_cast<uint32_t>(catalog.rows.size()));
    for (const SelectedRow& row : catalog.rows) writer.put(row.place.block).put(row.place.offset).text(row.row);
  }
  return writer.write_to(path);
}

base::Result<FirstContents> load_first_contents(const std::filesystem::path& path) {
  THALWEG_ASSIGN(const std::string bytes, read_summed_file(path, kMagic));
  FileReader reader{std::string_view{bytes}.substr(kMagic.size())};
  FirstContents contents{.as_of = {reader.take<uint64_t>()}, .catalogs = {}};
  for (CatalogContents& catalog : contents.catalogs) {
    catalog.file.tablespace = reader.take<uint32_t>();
    catalog.file.database = reader.take<uint32_t>();
    catalog.file.number = reader.take<uint32_t>();
    for (auto left = reader.take<uint32_t>(); left > 0 && reader.is_whole(); --left) {
      StoredColumn& column = catalog.columns.emplace_back();
      column.name = reader.text();
      column.length = reader.take<int16_t>();
      column.align = reader.take<char>();
    }
    for (auto left = reader.take<uint32_t>(); left > 0 && reader.is_whole(); --left) {
      SelectedRow& row = catalog.rows.emplace_back();
      row.place.block = reader.take<uint32_t>();
      row.place.offset = reader.take<uint16_t>();
      row.row = reader.text();
    }
  }
  if (!reader.is_at_end()) return damaged_file(path);
  return contents;
}

}  // namespace thalweg::dictionary
