#include "mining/row_reader.h"

#include <bit>

#include <fmt/format.h>

#include "mining/conversions.h"
#include "pg/connection.h"
#include "wal/tuple_values.h"

namespace thalweg::mining {

namespace {

constexpr char kNull = 'n';
constexpr char kUnchanged = 'u';
constexpr char kBinary = 'b';

std::unexpected<base::Error> fail_of(const MinedTable& table, base::ErrorCode code, std::string message) {
  base::Error error = base::fail(code, std::move(message)).error();
  error.table = pg::quote_table(table.description.schema_name, table.description.table_name);
  return std::unexpected(std::move(error));
}

std::unexpected<base::Error> refusal(const MinedTable& table, const MinedColumn& column, std::string_view what) {
  return fail_of(table, base::ErrorCode::protocol_violation,
                 fmt::format("A row in the source's WAL has in column {} {}.", column.name, what));
}

// PostgreSQL's own decoding cannot send it either (MaxAllocSize of src/include/utils/memutils.h).
std::unexpected<base::Error> too_large(const MinedTable& table) {
  return fail_of(
      table, base::ErrorCode::unsupported_table,
      "A row has more than 1 GiB once its values are unpacked, which PostgreSQL could not send either. Split "
      "it, or keep its large values in a table that is not replicated.");
}

base::Result<void> append_value(const MinedTable& table, const MinedColumn& column, std::span<const std::byte> content,
                                std::string& out) {
  out += kBinary;
  if (!append_sized(*column.stored.form, content, out)) return refusal(table, column, "no value of its type");
  return {};
}

// A value, wherever it is stored.
base::Result<void> append_stored(const MinedTable& table, const MinedColumn& column, const wal::StoredValue& value,
                                 const ToastChunks& chunks, std::string& out) {
  if (value.external) {
    const auto found = chunks.value(*value.external);
    if (!found) {
      out += kUnchanged;
      return {};
    }
    if (!*found) return refusal(table, column, "a stored value of which chunks are missing");
    return append_value(table, column, std::as_bytes(std::span{**found}), out);
  }
  std::string plain;
  const auto content = wal::plain_content(value, plain);
  if (!content) return refusal(table, column, "a compressed value that is damaged");
  return append_value(table, column, *content, out);
}

// A row that is older than the column.
base::Result<void> append_missing(const MinedTable& table, const MinedColumn& column, std::string& out) {
  if (!column.stored.has_missing) {
    out += kNull;
    return {};
  }
  if (!column.stored.missing) {
    return refusal(table, column, "a value from before the column, which the source's catalog did not tell as one");
  }
  const uint32_t length = std::byteswap(static_cast<uint32_t>(column.stored.missing->size()));
  out += kBinary;
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += *column.stored.missing;
  return {};
}

}  // namespace

base::Result<void> read_row(const MinedTable& table, const wal::HeapTuple& tuple, const ToastChunks& chunks,
                            std::string& out) {
  const uint16_t count = std::byteswap(static_cast<uint16_t>(table.description.columns.size()));
  out.assign(reinterpret_cast<const char*>(&count), sizeof count);
  wal::TupleValues values(tuple);
  for (const MinedColumn& column : table.columns) {
    const wal::TupleValue read = values.next(column.stored.length, column.stored.align);
    if (read.state == wal::TupleValue::State::damaged) return refusal(table, column, "a value that is cut");
    if (!column.is_sent) continue;
    switch (read.state) {
      case wal::TupleValue::State::absent:
        THALWEG_TRY(append_missing(table, column, out));
        break;
      case wal::TupleValue::State::null:
        out += kNull;
        break;
      case wal::TupleValue::State::present:
      case wal::TupleValue::State::damaged:
        THALWEG_TRY(append_stored(table, column, read.value, chunks, out));
    }
    if (out.size() > kSentBytesMax) return too_large(table);
  }
  if (tuple.columns() > table.columns.size()) {
    return refusal(table, table.columns.empty() ? MinedColumn{} : table.columns.back(),
                   "more columns behind it than its table");
  }
  return {};
}

}  // namespace thalweg::mining
