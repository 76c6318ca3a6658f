#include "mining/row_reader.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "pg/connection.h"

namespace thalweg::mining {

namespace {

constexpr char kNull = 'n';
constexpr char kUnchanged = 'u';
constexpr char kBinary = 'b';

std::unexpected<base::Error> refusal(const MinedTable& table, const MinedColumn& column, std::string_view what) {
  base::Error error = base::fail(base::ErrorCode::protocol_violation,
                                 fmt::format("A row in the source's WAL has in column {} {}.", column.name, what))
                          .error();
  error.table = pg::quote_table(table.description.schema_name, table.description.table_name);
  return std::unexpected(std::move(error));
}

// Whether the value could be appended.
bool append_value(const MinedColumn& column, std::span<const std::byte> content, std::string& out) {
  out += kBinary;
  const size_t length_at = out.size();
  out.append(sizeof(uint32_t), '\0');
  if (!column.form->append(content, out)) return false;
  const uint32_t length = std::byteswap(static_cast<uint32_t>(out.size() - length_at - sizeof(uint32_t)));
  std::memcpy(out.data() + length_at, &length, sizeof length);
  return true;
}

// A value with a length of its own, wherever it is stored.
base::Result<void> append_varlena(const MinedTable& table, const MinedColumn& column, const Varlena& value,
                                  const ToastChunks& chunks, std::string& out) {
  if (value.external) {
    const auto found = chunks.value(*value.external);
    if (!found) {
      out += kUnchanged;
      return {};
    }
    if (!*found) return refusal(table, column, "a stored value of which chunks are missing");
    if (!append_value(column, std::as_bytes(std::span{**found}), out))
      return refusal(table, column, "no value of its type");
    return {};
  }
  if (!value.is_compressed) {
    if (!append_value(column, value.content, out)) return refusal(table, column, "no value of its type");
    return {};
  }
  const auto whole = decompressed(value.content, value.compression, value.raw_bytes);
  if (!whole) return refusal(table, column, "a compressed value that is damaged");
  if (!append_value(column, std::as_bytes(std::span{*whole}), out))
    return refusal(table, column, "no value of its type");
  return {};
}

}  // namespace

base::Result<void> read_row(const MinedTable& table, const wal::HeapTuple& tuple, const ToastChunks& chunks,
                            std::string& out) {
  const uint16_t count = std::byteswap(static_cast<uint16_t>(table.description.columns.size()));
  out.assign(reinterpret_cast<const char*>(&count), sizeof count);
  const auto values = tuple.values();
  const auto bitmap = tuple.bitmap();
  const bool has_null = (tuple.infomask & wal::kHasNull) != 0;
  size_t at = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const MinedColumn& column = table.columns[i];
    if (i >= tuple.columns()) {
      if (!column.is_sent) continue;
      if (column.has_missing)
        return refusal(table, column, "a value that only the catalog has, from before the column");
      out += kNull;
      continue;
    }
    if (has_null && (std::to_integer<uint8_t>(bitmap[i / 8]) & (1U << (i % 8))) == 0) {
      if (column.is_sent) out += kNull;
      continue;
    }
    at = wal::begin_of_value(values, at, column.length, column.align);
    if (at > values.size()) return refusal(table, column, "nothing any more");
    const auto rest = values.subspan(at);
    if (column.length >= 0) {
      const auto bytes = static_cast<size_t>(column.length);
      if (rest.size() < bytes) return refusal(table, column, "a value that is cut");
      if (column.is_sent && !append_value(column, rest.first(bytes), out)) {
        return refusal(table, column, "no value of its type");
      }
      at += bytes;
    } else {
      const auto value = column.length == -1 ? parse_varlena(rest) : std::nullopt;
      if (!value) return refusal(table, column, "a value that is cut");
      if (column.is_sent) THALWEG_TRY(append_varlena(table, column, *value, chunks, out));
      at += value->bytes;
    }
  }
  if (tuple.columns() > table.columns.size()) {
    return refusal(table, table.columns.empty() ? MinedColumn{} : table.columns.back(),
                   "more columns behind it than its table");
  }
  return {};
}

}  // namespace thalweg::mining
