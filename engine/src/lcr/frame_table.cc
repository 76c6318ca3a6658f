#include <algorithm>

#include "lcr/bytes.h"
#include "lcr/frame_check.h"

// The bodies of TABLE and PARTITION frames.

namespace thalweg::lcr {

namespace {

std::unexpected<base::Error> corrupt(const char* what) { return base::fail(base::ErrorCode::corrupt_frame, what); }

// A name: u16 length, then as many bytes, at least one, none of them zero.
base::Result<std::string> parse_name(ByteReader& reader) {
  const std::string_view name = reader.text(reader.integer<uint16_t>());
  if (reader.failed()) return corrupt("a description ends too early");
  if (name.empty() || name.find('\0') != std::string_view::npos) return corrupt("a name is empty or has a zero byte");
  return std::string(name);
}

base::Result<ColumnDescription> parse_column(ByteReader& reader) {
  ColumnDescription column{};
  THALWEG_ASSIGN(column.name, parse_name(reader));
  column.type = {reader.integer<uint32_t>()};
  column.type_modifier = reader.integer<int32_t>();
  const auto is_key = reader.integer<uint8_t>();
  if (reader.failed()) return corrupt("a description ends too early");
  if (is_key > 1) return corrupt("a column is a key (1) or not (0)");
  column.is_key = is_key == 1;
  return column;
}

}  // namespace

base::Result<TableDescription> parse_table(const FrameHeader& header, std::span<const std::byte> body) {
  ByteReader reader(body);
  TableDescription table{};
  table.relation = {header.relation};
  table.version = header.table_version;
  table.replica_identity = static_cast<char>(reader.integer<uint8_t>());
  if (std::string_view("dnfi").find(table.replica_identity) == std::string_view::npos) {
    return corrupt("a replica identity that PostgreSQL does not have");
  }
  THALWEG_ASSIGN(table.schema_name, parse_name(reader));
  THALWEG_ASSIGN(table.table_name, parse_name(reader));
  const auto columns = reader.integer<uint16_t>();
  if (reader.failed() || columns > kTableColumnsMax) return corrupt("a table with no or too many columns");
  table.columns.reserve(columns);
  for (uint16_t i = 0; i < columns; ++i) {
    THALWEG_ASSIGN(auto column, parse_column(reader));
    table.columns.push_back(std::move(column));
  }
  if (reader.remaining() != 0) return corrupt("bytes after the last column");
  return table;
}

base::Result<PartitionMark> parse_partition(std::span<const std::byte> body) {
  ByteReader reader(body);
  PartitionMark mark{};
  mark.partition = {reader.integer<uint32_t>()};
  THALWEG_ASSIGN(mark.schema_name, parse_name(reader));
  THALWEG_ASSIGN(mark.partition_name, parse_name(reader));
  if (mark.partition.value == 0) return corrupt("a partition has a relation");
  if (reader.remaining() != 0) return corrupt("bytes after a partition's name");
  return mark;
}

}  // namespace thalweg::lcr
