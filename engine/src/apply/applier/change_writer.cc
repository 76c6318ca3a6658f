#include "apply/applier/change_writer.h"

#include <algorithm>
#include <cstring>
#include <ranges>

#include <fmt/format.h>

#include "apply/applier/old_values.h"

namespace thalweg::apply {

namespace {

using base::TypeId;
using lcr::ValueMark;
using metadata::TableMetadata;

constexpr size_t kSetRowsMin = 4;              // below, single rows are as fast
constexpr size_t kCopyRowsMin = 100;           // below, COPY's extra round trips cost more than they save
constexpr size_t kSetBytesMax = 16'000'000;    // of one statement's arrays
constexpr size_t kSetRowBytesMax = 1'000'000;  // a larger row goes by itself
constexpr size_t kCopyPieceBytes = 64 * 1024;
constexpr size_t kArrayHeaderBytes = 20;

void put32(std::vector<std::byte>& out, uint32_t value) {
  const uint32_t swapped = __builtin_bswap32(value);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&swapped);
  out.insert(out.end(), bytes, bytes + 4);
}

void put32_at(std::vector<std::byte>& out, size_t at, uint32_t value) {
  const uint32_t swapped = __builtin_bswap32(value);
  std::memcpy(out.data() + at, &swapped, 4);
}

void put_sized(std::vector<std::byte>& out, const lcr::Value& value) {
  if (value.mark == ValueMark::null) {
    put32(out, UINT32_MAX);
    return;
  }
  const size_t size = value.bytes.size();
  const size_t at = out.size();
  out.resize(at + 4 + size);
  const uint32_t swapped = __builtin_bswap32(static_cast<uint32_t>(size));
  std::memcpy(out.data() + at, &swapped, 4);
  if (size > 0) std::memcpy(out.data() + at + 4, value.bytes.data(), size);
}

bool insertable(const RowChange& change) {
  return change.state == RowState::insert || change.state == RowState::remove_insert;
}

// Whether one statement can do both changes.
bool is_alike(const TableMetadata& table, const RowChange& left, const RowChange& right, bool updates) {
  const auto is_missing = [](const lcr::Value& value) { return value.mark == ValueMark::unchanged; };
  if ((left.old == nullptr) != (right.old == nullptr)) return false;
  for (size_t column = 0; updates && column < table.columns.size(); ++column) {
    if (is_missing(left.values[column]) != is_missing(right.values[column])) return false;
  }
  return left.old == nullptr || std::ranges::all_of(table.compared, [&](uint16_t column) {
           return is_missing(left.old[column]) == is_missing(right.old[column]);
         });
}

bool single(const RowChange& change) { return change.has_text || change.bytes > kSetRowBytesMax; }

}  // namespace

base::Result<void> ChangeWriter::run_row(DestinationSession::Prepared& prepared, const lcr::Value* values,
                                         const lcr::Value* key, const DestinationSession::Expectation& expectation) {
  parameters_.clear();
  for (const ParameterSource source : prepared.statement.parameters) {
    const lcr::Value& value = source.from_key ? key[source.column] : values[source.column];
    parameters_.push_back({.bytes = value.bytes,
                           .type = {},
                           .is_null = value.mark == ValueMark::null || value.mark == ValueMark::unchanged,
                           .is_binary = value.mark == ValueMark::binary});
  }
  return session_.run(prepared, parameters_, expectation);
}

base::Result<void> ChangeWriter::insert(const TableMetadata& table, const lcr::Value* values, const std::byte* frame) {
  return run_row(session_.prepared(table, StatementKind::insert, {}, nullptr, false), values, values,
                 {.rows = 1, .frame = frame, .table = &table});
}

base::Result<void> ChangeWriter::upsert(const TableMetadata& table, const lcr::Value* values, const std::byte* frame) {
  return run_row(session_.prepared(table, StatementKind::upsert, {}, nullptr, false), values, values,
                 {.rows = 1, .any = true, .frame = frame, .table = &table});
}

base::Result<void> ChangeWriter::update(const TableMetadata& table, const lcr::Value* values, const lcr::Value* key,
                                        const std::byte* frame, RowOptions options) {
  const bool same_key = table.keyless() || key == values || same_identity(table, values, key);
  const auto kind = same_key ? StatementKind::update : StatementKind::update_key;
  ColumnMask known;
  if (options.old != nullptr) known = known_columns(table, options.old);
  auto& prepared = session_.prepared(table, kind, columns_that_came(table, values),
                                     options.old == nullptr ? nullptr : &known, options.checked);
  return run_row(prepared, values, options.old == nullptr ? key : options.old,
                 {.rows = 1, .any = options.any_count, .frame = frame, .table = &table});
}

base::Result<void> ChangeWriter::remove(const TableMetadata& table, const lcr::Value* key, const std::byte* frame,
                                        RowOptions options) {
  ColumnMask known;
  if (options.old != nullptr) known = known_columns(table, options.old);
  const lcr::Value* const values = options.old == nullptr ? key : options.old;
  auto& prepared =
      session_.prepared(table, StatementKind::remove, {}, options.old == nullptr ? nullptr : &known, options.checked);
  return run_row(prepared, values, values, {.rows = 1, .any = options.any_count, .frame = frame, .table = &table});
}

base::Result<void> ChangeWriter::remove_if_moved(const TableMetadata& table, const lcr::Value* values,
                                                 const lcr::Value* key, const std::byte* frame) {
  return run_row(session_.prepared(table, StatementKind::remove_if_moved, {}, nullptr, false), values, key,
                 {.rows = 0, .any = true, .frame = frame, .table = &table});
}

bool ChangeWriter::fits_sets(const TableMetadata& table, StatementKind kind, const ColumnMask& came,
                             const ColumnMask* compared) {
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    const bool in_identity = std::ranges::find(table.identity, column) != table.identity.end();
    const bool used = kind == StatementKind::set_remove ? in_identity
                      : kind == StatementKind::set_update
                          ? in_identity || (came.has(column) && table.columns[column].written)
                          : table.columns[column].written;
    if (used && !table.columns[column].in_sets) return false;
  }
  return compared == nullptr || std::ranges::all_of(table.compared, [&](uint16_t column) {
           return !compared->has(column) || table.columns[column].in_sets;
         });
}

base::Result<void> ChangeWriter::run_set(const TableMetadata& table, StatementKind kind, const ColumnMask& came,
                                         const ColumnMask* compared, std::span<const RowChange* const> rows) {
  auto& prepared = session_.prepared(table, kind, came, compared, false);
  const auto& sources = prepared.statement.parameters;
  if (arrays_.size() < sources.size()) arrays_.resize(sources.size());
  while (!rows.empty()) {
    size_t count = 0;
    size_t bytes = 0;
    while (count < rows.size() && (count == 0 || bytes + rows[count]->bytes <= kSetBytesMax))
      bytes += rows[count++]->bytes;
    for (size_t i = 0; i < sources.size(); ++i) {
      auto& array = arrays_[i];
      array.clear();
      array.reserve(kArrayHeaderBytes + count * 12);
      put32(array, 1);  // one dimension
      put32(array, 0);  // has NULLs: set below
      put32(array, table.columns[sources[i].column].type->value_type.value);
      put32(array, static_cast<uint32_t>(count));
      put32(array, 1);  // lower bound
      bool has_null = false;
      for (const RowChange* row : rows.first(count)) {
        const bool is_old = sources[i].from_key && row->old != nullptr;
        const lcr::Value& value = (is_old ? row->old : row->values)[sources[i].column];
        has_null |= value.mark == ValueMark::null;
        put_sized(array, value);
      }
      if (has_null) put32_at(array, 4, 1);
    }
    parameters_.clear();
    for (size_t i = 0; i < sources.size(); ++i) {
      parameters_.push_back({.bytes = arrays_[i], .type = {}, .is_null = false, .is_binary = true});
    }
    THALWEG_TRY(session_.run(prepared, parameters_, {.rows = count, .table = &table}));
    sets_.add();
    rows = rows.subspan(count);
  }
  return {};
}

base::Result<void> ChangeWriter::write_removes(const TableMetadata& table, const Rows& rows,
                                               const ColumnMask* compared) {
  if (rows.size() >= kSetRowsMin && fits_sets(table, StatementKind::set_remove, {}, compared)) {
    return run_set(table, StatementKind::set_remove, {}, compared, rows);
  }
  for (const RowChange* row : rows) THALWEG_TRY(remove(table, row->values, row->frame, {.old = row->old}));
  return {};
}

base::Result<void> ChangeWriter::write_updates(const TableMetadata& table, const Rows& rows, const ColumnMask& came,
                                               const ColumnMask* compared) {
  if (rows.size() >= kSetRowsMin && fits_sets(table, StatementKind::set_update, came, compared)) {
    return run_set(table, StatementKind::set_update, came, compared, rows);
  }
  for (const RowChange* row : rows) {
    THALWEG_TRY(update(table, row->values, row->values, row->frame, {.old = row->old}));
  }
  return {};
}

base::Result<void> ChangeWriter::write_alike(const TableMetadata& table, Rows& rows, StatementKind kind) {
  const bool updates = kind == StatementKind::set_update;
  const RowChange& first = *rows.front();
  const auto is_like_first = [&](const RowChange* row) { return is_alike(table, first, *row, updates); };
  const auto others = std::ranges::all_of(rows, is_like_first) ? std::ranges::subrange(rows.end(), rows.end())
                                                               : std::ranges::stable_partition(rows, is_like_first);
  const Rows same(rows.begin(), others.begin());
  const ColumnMask came = updates ? columns_that_came(table, first.values) : ColumnMask{};
  const ColumnMask known = first.old != nullptr ? known_columns(table, first.old) : ColumnMask{};
  const ColumnMask* const compared = first.old != nullptr ? &known : nullptr;
  THALWEG_TRY(updates ? write_updates(table, same, came, compared) : write_removes(table, same, compared));
  rows.erase(rows.begin(), others.begin());
  return {};
}

base::Result<void> ChangeWriter::write_inserts(const TableMetadata& table, const Rows& rows) {
  if (rows.size() >= kSetRowsMin && fits_sets(table, StatementKind::set_insert, {}, nullptr)) {
    return run_set(table, StatementKind::set_insert, {}, nullptr, rows);
  }
  for (const RowChange* row : rows) THALWEG_TRY(insert(table, row->values, row->frame));
  return {};
}

base::Result<bool> ChangeWriter::write(Compactor& batch) {
  const TableMetadata& table = batch.table();
  removes_.clear();
  updates_.clear();
  partial_updates_.clear();
  inserts_.clear();
  single_.clear();
  for (const RowChange& change : batch.changes()) {
    if (change.state == RowState::remove || change.state == RowState::remove_insert) removes_.push_back(&change);
    if (change.state == RowState::update) {
      const bool may_differ = change.has_unchanged || !table.compared.empty();
      (single(change) ? single_ : may_differ ? partial_updates_ : updates_).push_back(&change);
    }
    if (insertable(change)) (single(change) ? single_ : inserts_).push_back(&change);
  }
  // remove_insert: `values` is the new row, whose identity is the old one's.
  const bool removes_in_text = std::ranges::any_of(removes_, [](const RowChange* c) { return c->has_text; });
  if (removes_in_text) {
    for (const RowChange* row : removes_) THALWEG_TRY(remove(table, row->values, row->frame, {.old = row->old}));
  } else if (table.compared.empty()) {
    THALWEG_TRY(write_removes(table, removes_, nullptr));
  } else {
    while (!removes_.empty()) THALWEG_TRY(write_alike(table, removes_, StatementKind::set_remove));
  }
  if (!updates_.empty())
    THALWEG_TRY(write_updates(table, updates_, columns_that_came(table, updates_.front()->values), nullptr));
  while (!partial_updates_.empty()) THALWEG_TRY(write_alike(table, partial_updates_, StatementKind::set_update));
  for (const RowChange* row : single_) {
    THALWEG_TRY(row->state == RowState::update ? update(table, row->values, row->values, row->frame, {.old = row->old})
                                               : insert(table, row->values, row->frame));
  }
  const bool binary = std::ranges::all_of(
      table.columns, [](const metadata::Column& column) { return !column.written || column.type->has_binary_input; });
  const bool any_written = std::ranges::any_of(table.columns, &metadata::Column::written);
  if (inserts_.size() >= kCopyRowsMin && binary && any_written) return true;
  THALWEG_TRY(write_inserts(table, inserts_));
  return false;
}

base::Result<Refusal> ChangeWriter::copy_inserts(const Compactor& batch) {
  const TableMetadata& table = batch.table();
  pg::Connection& connection = session_.connection();
  session_.leave_pipeline();
  const auto refused = [&](base::Error error) -> base::Result<Refusal> {
    if (connection.broken()) return std::unexpected(std::move(error));
    return StatementFailure{.error = std::move(error), .table = &table};
  };
  if (auto begun = connection.copy_in_begin(make_copy(table)); !begun) return refused(begun.error());
  static constexpr char kHeader[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";  // signature, flags, no extension
  const auto* const header = reinterpret_cast<const std::byte*>(kHeader);
  copy_buffer_.assign(header, header + 19);
  const auto columns = static_cast<uint16_t>(std::ranges::count_if(table.columns, &metadata::Column::written));
  uint64_t rows = 0;
  for (const RowChange& change : batch.changes()) {
    if (!insertable(change) || single(change)) continue;
    copy_buffer_.push_back(static_cast<std::byte>(columns >> 8));
    copy_buffer_.push_back(static_cast<std::byte>(columns & 0xFF));
    for (size_t column = 0; column < table.columns.size(); ++column) {
      if (table.columns[column].written) put_sized(copy_buffer_, change.values[column]);
    }
    ++rows;
    if (copy_buffer_.size() < kCopyPieceBytes) continue;
    if (auto put = connection.copy_in_put(copy_buffer_); !put) return refused(put.error());
    copy_buffer_.clear();
  }
  copy_buffer_.insert(copy_buffer_.end(), 2, std::byte{0xFF});
  if (auto put = connection.copy_in_put(copy_buffer_); !put) return refused(put.error());
  auto copied = connection.copy_in_end();
  if (!copied) return refused(copied.error());
  sets_.add();
  if (*copied != rows) {
    return refused(
        base::fail(base::ErrorCode::apply_conflict, fmt::format("COPY stored {} of {} rows", *copied, rows)).error());
  }
  return Refusal{};
}

}  // namespace thalweg::apply
