#include <fmt/format.h>

#include "apply/applier/group_executor.h"
#include "apply/applier/tuple_values.h"
#include "apply/row_errors.h"
#include "base/plain_text.h"

// Errors, in words for operators, of changes that cannot be applied.

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;

namespace {

constexpr std::string_view kUniqueViolation = "23505";
constexpr std::string_view kUntranslatableCharacter = "22P05";
constexpr size_t kShownBytesMax = 64;

// pg_type oids whose binary form is worth reading.
enum TypeOid : uint32_t {
  kBool = 16,
  kInt8 = 20,
  kInt2 = 21,
  kInt4 = 23,
  kText = 25,
  kBpchar = 1042,
  kVarchar = 1043,
  kUuid = 2950
};

std::string hex_of(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::byte byte : bytes.first(std::min(bytes.size(), kShownBytesMax))) {
    hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return hex;
}

// UTF-8 with "\u{142}" for each character that is not ASCII.
std::string ascii_of(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at++]);
    if (first < 0x80) {
      shown += static_cast<char>(first);
      continue;
    }
    uint32_t character = first & (first >= 0xF0 ? 0x07 : first >= 0xE0 ? 0x0F : 0x1F);
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
      character = character << 6 | (static_cast<unsigned char>(text[at++]) & 0x3F);
    }
    shown += fmt::format("\\u{{{:x}}}", character);
  }
  return shown;
}

// The message is kept at the destination, so it says nothing that the destination cannot store: no bytes that are no
// text (of a SQL_ASCII source), and with `only_ascii` no characters that its encoding may lack.
std::string show_text(std::span<const std::byte> bytes, bool only_ascii) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!base::is_plain_text(text)) return "\\x" + hex_of(bytes);
  const std::string_view shown = base::cut_at_character(text, kShownBytesMax);
  return fmt::format("'{}'{}", only_ascii ? ascii_of(shown) : shown, shown.size() < text.size() ? "..." : "");
}

std::string show(const metadata::Column& column, const lcr::Value& value, bool only_ascii) {
  if (value.mark == lcr::ValueMark::null) return "NULL";
  lcr::ByteReader reader(value.bytes);
  const uint32_t type =
      value.mark == lcr::ValueMark::text ? static_cast<uint32_t>(kText) : column.type->value_type.value;
  switch (type) {
    case kInt2:
      return std::to_string(reader.integer<int16_t>());
    case kInt4:
      return std::to_string(reader.integer<int32_t>());
    case kInt8:
      return std::to_string(reader.integer<int64_t>());
    case kText:
    case kBpchar:
    case kVarchar:
      return show_text(value.bytes, only_ascii);
    case kUuid: {
      std::string uuid = hex_of(value.bytes);
      for (const size_t dash : {20, 16, 12, 8}) uuid.insert(std::min(dash, uuid.size()), "-");
      return fmt::format("'{}'", uuid);
    }
    default:
      return "\\x" + hex_of(value.bytes);
  }
}

std::string show_key(const metadata::TableMetadata& table, const std::byte* bytes, bool only_ascii) {
  const auto frame = lcr::FrameView::trusted(bytes);
  auto tuple = frame.old_tuple();
  if (!tuple.exists()) tuple = frame.new_tuple();
  Arena arena;
  const auto values = read_values(tuple, table, arena);
  if (!values || table.keyless()) return "";
  std::string key;
  for (const uint16_t column : table.identity) {
    key += fmt::format("{}{} = {}", key.empty() ? "" : ", ", table.columns[column].quoted_name,
                       show(table.columns[column], (*values)[column], only_ascii));
  }
  return fmt::format(" ({})", key);
}

base::RowOperation operation_of(FrameKind kind) {
  return kind == FrameKind::insert   ? base::RowOperation::insert
         : kind == FrameKind::update ? base::RowOperation::update
                                     : base::RowOperation::remove;
}

std::string_view beginning_of(base::RowOperation operation) {
  return operation == base::RowOperation::insert   ? kInsertInto
         : operation == base::RowOperation::update ? kUpdateOf
                                                   : kDeleteFrom;
}

bool is_nobodys_data(ErrorCode code) {
  return code == ErrorCode::connection_lost || code == ErrorCode::database_busy || code == ErrorCode::disk_full ||
         code == ErrorCode::insufficient_privilege || code == ErrorCode::authentication_failed ||
         code == ErrorCode::database_unreachable || code == ErrorCode::missing_database ||
         code == ErrorCode::destination_read_only;
}

}  // namespace

base::Error final_error(const StatementFailure& failure, const Transaction& transaction) {
  base::Error error = failure.error;
  error.lsn = transaction.commit_lsn;
  error.xid = transaction.xid;
  if (failure.table != nullptr) error.table = failure.table->quoted_name;
  if (failure.handler > 0) error.message = fmt::format("statement handler {}: {}", failure.handler, error.message);
  if (is_nobodys_data(error.code)) return error;
  const bool unique = error.sqlstate == kUniqueViolation && failure.handler == 0;
  if (failure.table != nullptr && transaction.commit_lsn < failure.table->copied_to &&
      (unique || failure.missing_row)) {
    error.code = ErrorCode::initial_copy_inconsistent;
  } else {
    error.code = failure.missing_row || unique || error.code == ErrorCode::apply_conflict ? ErrorCode::apply_conflict
                                                                                          : ErrorCode::apply_failed;
  }
  if (failure.table == nullptr && failure.handler == 0) return error;
  const std::string where = fmt::format("commit LSN {}", base::to_string(transaction.commit_lsn));
  if (failure.table == nullptr) {
    error.may_show_rows = true;  // what the statement wrote
    error.message = fmt::format("at the end of the transaction, {}: {}", where, error.message);
    return error;
  }
  if (failure.frame.empty()) {
    error.message = fmt::format("{} in a change of {}, {}", error.message, error.table, where);
    return error;
  }
  error.may_show_rows = true;  // the row's key
  error.operation = operation_of(lcr::FrameView::trusted(failure.frame.data()).kind());
  const std::string change =
      fmt::format("{} {}{}, {}", beginning_of(error.operation), error.table,
                  show_key(*failure.table, failure.frame.data(), error.sqlstate == kUntranslatableCharacter), where);
  error.message = fmt::format("{}: {}", change,
                              failure.unwritten     ? kUnwritten
                              : failure.differs     ? kRowDiffers
                              : failure.missing_row ? kMissingRow
                                                    : error.message);
  error.is_row_missing = failure.missing_row && !failure.unwritten && !failure.differs;
  if (!failure.unsettled.empty()) error.message += "; " + failure.unsettled;
  if (failure.missing_row) error.sqlstate.clear();
  return error;
}

}  // namespace thalweg::apply
