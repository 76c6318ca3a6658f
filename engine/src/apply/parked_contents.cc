#include "apply/parked_contents.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apply/applier/statements.h"
#include "apply/applier/tuple_values.h"
#include "apply/parked_edits.h"
#include "apply/parked_frames.h"
#include "base/plain_text.h"
#include "pg/guarded_query.h"

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;
using lcr::FrameView;
using lcr::ValueMark;
using metadata::TableMetadata;
using telemetry::ChangesPart;
using telemetry::kParkedValueBytesMax;
using telemetry::kWholeChangeBytesMax;
using telemetry::kWholePageBytesMax;
using telemetry::ShownChange;
using telemetry::ShownColumn;
using telemetry::ShownValue;

namespace {

// No statement takes longer, nor waits for a lock. A row that a policy hides is not shown as missing.
constexpr const char* kBegin =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '2s'; SET LOCAL lock_timeout = "
    "'1s'; SET LOCAL row_security = off";
constexpr const char* kOutOfTime = "not looked for: out of time";
constexpr std::string_view kHexDigits = "0123456789abcdef";
// Larger ones are not sent to the server to be written as text.
constexpr size_t kWrittenBytesMax = 8 * 1024 * 1024;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The text of all of it, in bytes.
size_t raw_text_bytes(std::span<const std::byte> bytes) {
  return base::is_plain_text(as_text(bytes)) ? bytes.size() : 2 + 2 * bytes.size();
}

ShownValue raw_value(std::span<const std::byte> bytes, size_t text_bytes_max) {
  ShownValue value{.state = ShownValue::State::raw, .text = {}, .bytes = bytes.size(), .hash = 0, .cut = false};
  value.text = base::cut_at_character(as_text(bytes), text_bytes_max);
  if (base::is_plain_text(value.text)) {
    value.cut = value.text.size() < bytes.size();
    return value;
  }
  const auto shown = bytes.first(std::min(bytes.size(), text_bytes_max / 2 - 1));
  value.cut = shown.size() < bytes.size();
  value.text = "\\x";
  value.text.reserve(2 + 2 * shown.size());
  for (const std::byte byte : shown) {
    value.text += kHexDigits[std::to_integer<unsigned>(byte >> 4)];
    value.text += kHexDigits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return value;
}

// Columns [first, first + 2] of an answer: what shown_text() gives.
ShownValue written_value(const pg::Rows& rows, size_t row, size_t first, size_t bytes_max) {
  if (rows.is_null(row, first)) {
    return {.state = ShownValue::State::null, .text = {}, .bytes = 0, .hash = 0, .cut = false};
  }
  const std::string_view came = rows.text(row, first);
  ShownValue value{.state = ShownValue::State::text,
                   .text = std::string(base::cut_at_character(came, bytes_max)),
                   .bytes = static_cast<uint64_t>(rows.integer(row, first + 1)),
                   .hash = static_cast<uint64_t>(rows.integer(row, first + 2)),
                   .cut = false};
  // The server counts in its own encoding, and cuts at characters.
  value.cut = value.text.size() < came.size() || came.size() < value.bytes;
  return value;
}

size_t text_bytes(const ShownChange& change) {
  size_t bytes = 0;
  for (const ShownColumn& column : change.columns) {
    bytes += column.wanted.text.size() + column.before.text.size() + column.now.text.size();
  }
  return bytes;
}

// A table of the transaction, as the source described it and, where it still fits, as it is at the destination.
struct Table {
  std::shared_ptr<const metadata::SourceTable> source;
  std::unique_ptr<const TableMetadata> here;
  std::string problem;  // why there is none
  bool is_looked_at = false;
};

// A value and the type that the server reads it as.
struct Written {
  ShownValue* shown;
  lcr::Value value;
  base::TypeId type;
};

pg::Parameter parameter(const lcr::Value& value, base::TypeId type) {
  return {.bytes = value.bytes,
          .type = type,
          .is_null = value.mark == ValueMark::null,
          .is_binary = value.mark == ValueMark::binary};
}

// Owner: one thread.
class ContentsReader {
 public:
  ContentsReader(pg::Connection& connection, TableNames names, ParkedEdits edits,
                 std::chrono::steady_clock::time_point deadline)
      : connection_(connection), names_(std::move(names)), edits_(std::move(edits)), deadline_(deadline) {}

  base::Result<void> read(int64_t id, const ChangesPart& part, telemetry::ParkedContents& contents) {
    const uint64_t from = part.only.value_or(part.after + 1);
    const uint64_t limit = part.only ? 1 : part.limit;
    uint64_t shown = 0;
    size_t told = 0;
    const auto take = [&](const FrameView& frame, uint64_t number) -> base::Result<bool> {
      if (frame.kind() == FrameKind::table) {
        THALWEG_TRY(describe(frame));
        return true;
      }
      number_ = number;
      room_ = part.whole ? kWholeChangeBytesMax : 0;
      THALWEG_TRY(frame.kind() == FrameKind::truncate ? show_truncate(frame) : show_row(frame));
      arena_.reset();
      if (part.whole) told += text_bytes(changes_.back());
      return ++shown < limit && told <= kWholePageBytesMax;
    };
    THALWEG_TRY(visit_parked_changes(connection_, id, from, take));
    if (part.only && (number_ == 0 || number_ != *part.only)) return unknown_change(id, *part.only);
    if (!part.only && number_ > 0 && number_ < contents.changes_total) contents.next_after = number_;
    contents.changes = std::move(changes_);
    return {};
  }

 private:
  base::Result<void> describe(const FrameView& frame) {
    Table table;
    THALWEG_ASSIGN(table.source, described_table(frame, tables_.size() + 1, names_));
    tables_.push_back(std::move(table));
    return {};
  }

  // Looks at the tables of the changes that are shown only: a transaction may have thousands.
  base::Result<void> look_at(Table& table) {
    if (std::exchange(table.is_looked_at, true)) return {};
    const auto& source = *table.source;
    if (out_of_time()) {
      table.problem = kOutOfTime;
      return {};
    }
    if (names_.is_anothers(source.description)) {
      table.problem = fmt::format("{} is another table now: this one is gone", source.quoted_name);
      return {};
    }
    if (names_.is_taken_out(source.description)) {
      table.problem = fmt::format("{} is not in the stream any more: its changes are left out", source.quoted_name);
      return {};
    }
    auto loaded = loader_.load(connection_, source);
    if (loaded) {
      table.here = std::move(*loaded);
    } else if (loaded.error().code == ErrorCode::missing_table ||
               loaded.error().code == ErrorCode::destination_table_differs) {
      table.problem = loaded.error().message;
    } else {
      return std::unexpected(loaded.error());
    }
    return {};
  }

  base::Result<const Table*> table_of(base::RelationId relation, std::optional<uint32_t> version) {
    Table* found = nullptr;
    for (Table& table : tables_) {
      const auto& description = table.source->description;
      if (description.relation == relation && (!version || description.version == *version)) found = &table;
    }
    if (found == nullptr) return base::fail(ErrorCode::corrupt_frame, "a change came before its table's description");
    THALWEG_TRY(look_at(*found));
    return found;
  }

  base::Result<void> show_truncate(const FrameView& frame) {
    for (const base::RelationId relation : frame.truncated_relations()) {
      THALWEG_ASSIGN(const Table* const table, table_of(relation, std::nullopt));
      begin_change("TRUNCATE", *table);
    }
    return {};
  }

  ShownChange& begin_change(std::string_view operation, const Table& table) {
    const auto& description = table.source->description;
    const auto edit = edits_.find(number_);
    return changes_.emplace_back(
        ShownChange{.number = number_,
                    .operation = operation,
                    .schema_name = description.schema_name,
                    .table_name = description.table_name,
                    .columns = {},
                    .found_by = {},
                    .rows_found = {},
                    .problem = table.problem,
                    .edit = edit == edits_.end() ? std::nullopt : std::optional(edit->second)});
  }

  base::Result<void> show_row(const FrameView& frame) {
    THALWEG_ASSIGN(const Table* const table, table_of(frame.relation(), frame.header().table_version));
    const bool inserts = frame.kind() == FrameKind::insert;
    ShownChange& change = begin_change(inserts                             ? "INSERT"
                                       : frame.kind() == FrameKind::update ? "UPDATE"
                                                                           : "DELETE",
                                       *table);
    for (const auto& column : table->source->description.columns) {
      change.columns.push_back({.name = column.name, .is_identity = false, .wanted = {}, .before = {}, .now = {}});
    }
    for (uint16_t column = 0; table->here && column < table->here->columns.size(); ++column) {
      change.columns[column].is_identity =
          std::ranges::find(table->here->identity, column) != table->here->identity.end();
    }
    THALWEG_ASSIGN(const Values wanted, values_of(frame.new_tuple(), *table));
    THALWEG_ASSIGN(const Values before, values_of(frame.old_tuple(), *table));
    std::vector<Written> written;
    for (size_t i = 0; i < change.columns.size(); ++i) {
      const auto& column = table->source->description.columns[i];
      const base::TypeId type = table->here ? table->here->columns[i].type->value_type : column.type;
      if (wanted != nullptr) show(change.columns[i].wanted, wanted[i], type, written);
      // An old row that is a key has NULL in the other columns.
      const bool is_known = before != nullptr && (frame.has(lcr::kOldRow) || column.is_key);
      if (is_known) show(change.columns[i].before, before[i], type, written);
    }
    THALWEG_TRY(write(written, kParkedValueBytesMax));
    THALWEG_TRY(make_whole(written));
    if (out_of_time() && change.problem.empty()) change.problem = kOutOfTime;
    if (!change.problem.empty()) return {};
    if (!table->here || table->here->columns.empty()) return {};
    return look_up(*table->here, wanted, before, inserts, change);
  }

  // nullptr of no tuple.
  base::Result<Values> values_of(lcr::TupleView tuple, const Table& table) {
    if (!tuple.exists()) return Values{};
    if (table.here) return read_values(tuple, *table.here, arena_);
    std::vector<lcr::Value> read;
    tuple.read(read);
    if (read.size() != table.source->description.columns.size()) {
      return base::fail(ErrorCode::corrupt_frame, "a tuple has another number of columns than its table");
    }
    const Values values = arena_.take_array<lcr::Value>(read.size());
    std::ranges::copy(read, values);
    return values;
  }

  // Fills `shown`. A value whose text the server has to produce is appended to `written`.
  void show(ShownValue& shown, const lcr::Value& value, base::TypeId type, std::vector<Written>& written) {
    if (value.mark == ValueMark::null) shown.state = ShownValue::State::null;
    if (value.mark == ValueMark::unchanged) shown.state = ShownValue::State::unchanged;
    if (value.mark != ValueMark::binary && value.mark != ValueMark::text) return;
    shown = raw_value(value.bytes, kParkedValueBytesMax);
    if (value.bytes.size() <= kWrittenBytesMax) {
      written.push_back({.shown = &shown, .value = value, .type = type});
    } else {
      make_raw_whole(shown, value);
    }
  }

  // Takes it from what the values of a change may have beyond their first kParkedValueBytesMax.
  bool take_room(size_t bytes) {
    if (bytes > room_) return false;
    room_ -= bytes;
    return true;
  }

  void make_raw_whole(ShownValue& shown, const lcr::Value& value) {
    if (!shown.cut || value.bytes.size() > room_) return;
    const size_t needed = raw_text_bytes(value.bytes);
    if (take_room(needed)) shown = raw_value(value.bytes, needed);
  }

  // Of these, those that are cut. Their sizes are known by now: what the server sends fits into the room.
  base::Result<void> make_whole(std::span<const Written> values) {
    std::vector<Written> fitting;
    for (const Written& value : values) {
      if (!value.shown->cut) continue;
      if (value.shown->state == ShownValue::State::raw) {
        make_raw_whole(*value.shown, value.value);
      } else if (take_room(value.shown->bytes)) {
        fitting.push_back(value);
      }
    }
    return write(fitting, kWholeChangeBytesMax);
  }

  // All at once; where the server refuses one, each by itself, and what it refuses stays raw.
  base::Result<void> write(std::span<const Written> values, size_t bytes_max) {
    if (values.empty()) return {};
    THALWEG_ASSIGN(const bool together, try_to_write(values, bytes_max));
    if (together || values.size() == 1) return {};
    for (const Written& value : values) THALWEG_TRY(try_to_write({&value, 1}, bytes_max));
    return {};
  }

  base::Result<bool> try_to_write(std::span<const Written> values, size_t bytes_max) {
    std::string list;
    std::vector<pg::Parameter> parameters;
    for (size_t i = 0; i < values.size(); ++i) {
      list += fmt::format("{}({}, pg_catalog.format('%s', ${}))", i == 0 ? "" : ", ", i, i + 1);
      parameters.push_back(parameter(values[i].value, values[i].type));
    }
    THALWEG_ASSIGN(const auto rows,
                   ask(fmt::format("SELECT place, {} FROM (VALUES {}) AS written (place, written_text)",
                                   shown_text("written_text", bytes_max), list),
                       parameters));
    if (!rows) return false;
    for (size_t row = 0; row < rows->size(); ++row) {
      *values[static_cast<size_t>(rows->integer(row, 0))].shown = written_value(*rows, row, 1, bytes_max);
    }
    return true;
  }

  // The destination's row, by the old row or key; of an INSERT by its own key, or another unique one that it collides
  // with.
  base::Result<void> look_up(const TableMetadata& table, const lcr::Value* wanted, const lcr::Value* before,
                             bool inserts, ShownChange& change) {
    const lcr::Value* const row = before != nullptr ? before : wanted;
    if (!table.keyless()) THALWEG_TRY(look_up_by(table, table.identity, row, change));
    if (table.keyless() && !inserts) THALWEG_TRY(look_up_by(table, {}, row, change));
    if (!inserts) return {};
    for (const auto& key : table.unique_keys) {
      if (change.rows_found.value_or(0) > 0 || !change.problem.empty()) return {};
      if (!key.columns.empty()) THALWEG_TRY(look_up_by(table, key.columns, row, change));
    }
    return {};
  }

  base::Result<void> look_up_by(const TableMetadata& table, std::span<const uint16_t> by, const lcr::Value* row,
                                ShownChange& change) {
    if (looks_no_more_) {
      change.problem = "not looked for: an earlier row could not be read in time";
      return {};
    }
    const Statement statement = make_lookup(table, by, kParkedValueBytesMax);
    std::vector<pg::Parameter> parameters;
    for (size_t i = 0; i < statement.parameters.size(); ++i) {
      const lcr::Value& value = row[statement.parameters[i].column];
      if (!by.empty() && value.mark != ValueMark::binary && value.mark != ValueMark::text) return {};  // finds nothing
      if (value.mark == ValueMark::unchanged) return {};
      parameters.push_back(parameter(value, statement.types[i]));
    }
    std::string refusal;
    THALWEG_ASSIGN(const auto rows, ask(statement.sql, parameters, &refusal));
    change.problem = refusal;
    if (!rows) return {};
    const bool is_first = !change.rows_found.has_value();
    change.rows_found = rows->size() == 0 ? 0 : static_cast<uint64_t>(rows->integer(0, 4));
    if (rows->size() == 0 && !is_first) return {};  // found_by stays what the row itself is found by
    change.found_by.clear();
    for (const uint16_t column : by) change.found_by.push_back(table.columns[column].name);
    for (size_t column = 0; by.empty() && column < table.columns.size(); ++column) {
      change.found_by.push_back(table.columns[column].name);
    }
    take_row(*rows, kParkedValueBytesMax, change);
    return make_row_whole(table, by, parameters, change);
  }

  static void take_row(const pg::Rows& rows, size_t bytes_max, ShownChange& change) {
    for (size_t i = 0; i < rows.size(); ++i) {
      change.columns[static_cast<size_t>(rows.integer(i, 0))].now = written_value(rows, i, 1, bytes_max);
    }
  }

  // Asks once more where some of the row is cut, and all of it has room.
  base::Result<void> make_row_whole(const TableMetadata& table, std::span<const uint16_t> by,
                                    std::span<const pg::Parameter> parameters, ShownChange& change) {
    size_t bytes = 0;
    for (const ShownColumn& column : change.columns) bytes += column.now.bytes;
    const bool is_cut = std::ranges::any_of(change.columns, [](const ShownColumn& column) { return column.now.cut; });
    if (!is_cut || !take_room(bytes)) return {};
    THALWEG_ASSIGN(const auto rows, ask(make_lookup(table, by, kWholeChangeBytesMax).sql, parameters));
    if (rows) take_row(*rows, kWholeChangeBytesMax, change);
    return {};
  }

  bool out_of_time() const { return std::chrono::steady_clock::now() >= deadline_; }

  // None: the server refuses, or is not asked any more; why is in `refusal`. Its transaction goes on.
  base::Result<std::optional<pg::Rows>> ask(const std::string& sql, std::span<const pg::Parameter> parameters,
                                            std::string* refusal = nullptr) {
    if (out_of_time()) {
      if (refusal != nullptr) *refusal = kOutOfTime;
      return std::nullopt;
    }
    auto rows = pg::query_guarded(connection_, sql, parameters);
    if (rows) return std::move(*rows);
    if (connection_.broken()) return std::unexpected(rows.error());
    if (refusal != nullptr) {
      *refusal = rows.error().message;
      looks_no_more_ = looks_no_more_ || rows.error().code == ErrorCode::database_busy;
    }
    return std::nullopt;
  }

  pg::Connection& connection_;
  const TableNames names_;
  const ParkedEdits edits_;
  const std::chrono::steady_clock::time_point deadline_;
  std::atomic<uint64_t> generations_{0};
  metadata::TableLoader loader_{generations_};
  std::vector<Table> tables_;
  std::vector<ShownChange> changes_;
  uint64_t number_ = 0;  // of the change at hand
  size_t room_ = 0;      // for its values beyond their first kParkedValueBytesMax
  Arena arena_;
  bool looks_no_more_ = false;  // a lock or a slow search: the next row would take as long
};

base::Result<telemetry::ParkedContents> read_in_transaction(pg::Connection& connection, std::string_view stream_id,
                                                            int64_t id, const ChangesPart& part,
                                                            std::chrono::steady_clock::time_point deadline) {
  THALWEG_ASSIGN(TableNames names, TableNames::read(connection, stream_id));  // asks whether the schema can be trusted
  THALWEG_ASSIGN(const pg::Rows entry, connection.query(fmt::format("SELECT lcrs, {} FROM thalweg.error_queue q "
                                                                    "WHERE stream_id = $1 AND id = $2::bigint",
                                                                    kEditsOfQ),
                                                        {stream_id, std::to_string(id)}));
  if (entry.size() == 0) return unknown_parked(id);
  THALWEG_ASSIGN(ParkedEdits edits, parse_edits(entry.text(0, 1)));
  telemetry::ParkedContents contents{.changes_total = static_cast<uint64_t>(entry.integer(0, 0)), .changes = {}};
  THALWEG_TRY(ContentsReader(connection, std::move(names), std::move(edits), deadline).read(id, part, contents));
  return contents;
}

}  // namespace

base::Result<telemetry::ParkedContents> read_parked(pg::Connection& connection, std::string_view stream_id, int64_t id,
                                                    std::chrono::milliseconds patience, const ChangesPart& part) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  THALWEG_TRY(connection.script(kBegin));
  auto contents = read_in_transaction(connection, stream_id, id, part, deadline);
  if (!connection.broken()) THALWEG_TRY(connection.script("ROLLBACK"));
  return contents;
}

}  // namespace thalweg::apply
