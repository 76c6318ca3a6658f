#include "transform/row_transformation.h"

#include <algorithm>
#include <utility>

#include "pg/connection.h"
#include "transform/characters.h"

namespace thalweg::transform {
namespace {

std::string_view text_of(const lcr::Value& value) {
  return {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
}

}  // namespace

void mask_part(std::string_view text, const Mask& mask, std::string& out) {
  out.clear();
  const auto characters = static_cast<size_t>(std::ranges::count_if(text, begins_character));
  const bool is_longer = characters > size_t{mask.keep_first} + mask.keep_last;
  const size_t first = is_longer ? mask.keep_first : 0;
  const size_t last = characters - (is_longer ? mask.keep_last : 0);  // from here on they are kept
  size_t number = 0;                                                  // of the characters before the byte
  for (const char byte : text) {
    const bool begins = begins_character(byte);
    if (begins) ++number;
    if (number <= first || number > last) {
      out += byte;
    } else if (begins) {
      out += '*';
    }
  }
}

base::Result<RowTransformation> RowTransformation::make(const Steps& steps, const lcr::TableDescription& source) {
  std::vector<SourceColumn> columns;
  // Where a whole row identifies itself no column alone is a key.
  const bool has_key = source.replica_identity != 'f';
  for (const lcr::ColumnDescription& column : source.columns) {
    columns.push_back({.name = column.name,
                       .type = column.type,
                       .modifier = column.type_modifier,
                       .is_key = has_key && column.is_key});
  }
  RowTransformation made;
  THALWEG_ASSIGN(made.columns_, plan(steps, columns, pg::quote_table(source.schema_name, source.table_name)));
  made.sent_table_ = source;
  made.sent_table_.columns.clear();
  const bool is_identified = std::ranges::any_of(source.columns, &lcr::ColumnDescription::is_key);
  for (const SentColumn& column : made.columns_) {
    if (column.added) {
      // It is known of every row, also of one of which only the key is told: it may be part of the destination's key.
      made.sent_table_.columns.push_back(
          {.name = column.name, .type = column.added->type, .type_modifier = -1, .is_key = is_identified});
      continue;
    }
    lcr::ColumnDescription& sent = made.sent_table_.columns.emplace_back(source.columns[column.source]);
    sent.name = column.name;
  }
  made.masked_.resize(made.columns_.size());
  made.hashes_.resize(made.columns_.size());
  for (size_t i = 0; i < made.columns_.size(); ++i) {
    const std::optional<Mask>& mask = made.columns_[i].mask;
    if (mask && mask->needs_key()) made.hashes_[i].emplace(mask->key);
  }
  return made;
}

lcr::RowFrame RowTransformation::apply(const lcr::RowFrame& change) {
  lcr::RowFrame sent = change;
  sent.old_tuple = transformed(change.old_tuple, (change.flags & lcr::kOldKey) != 0, old_tuple_);
  sent.new_tuple = transformed(change.new_tuple, false, new_tuple_);
  return sent;
}

std::span<const std::byte> RowTransformation::transformed(std::span<const std::byte> tuple, bool is_key_only,
                                                          std::vector<std::byte>& out) {
  if (tuple.empty()) return {};
  lcr::TupleView(tuple).read(values_);
  sent_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const SentColumn& column = columns_[i];
    if (column.added) {
      sent_.push_back({.mark = lcr::ValueMark::text, .bytes = std::as_bytes(std::span(column.added->value))});
      continue;
    }
    const lcr::Value& value = values_[column.source];
    // Beside an old key nothing is told: what is masked is no key, though a partition that identifies its rows
    // otherwise than the whole table brings its value.
    sent_.push_back(column.mask ? (is_key_only ? lcr::Value{} : masked(value, i)) : value);
  }
  lcr::write_tuple(sent_, out);
  return out;
}

lcr::Value RowTransformation::masked(const lcr::Value& value, size_t column) {
  const Mask& mask = *columns_[column].mask;
  std::string& out = masked_[column];
  // A value that did not come is at the destination already, masked.
  if (value.mark == lcr::ValueMark::unchanged) return value;
  switch (mask.kind) {
    case MaskKind::null:
      return {};
    case MaskKind::constant:
      return {.mark = lcr::ValueMark::text, .bytes = std::as_bytes(std::span(mask.value))};
    case MaskKind::partial:
      if (value.mark == lcr::ValueMark::null) return value;
      mask_part(text_of(value), mask, out);
      return {.mark = value.mark, .bytes = std::as_bytes(std::span(out))};
    case MaskKind::hash:
      if (value.mark == lcr::ValueMark::null) return value;
      hashes_[column]->write(text_of(value), mask.digits, out);
      return {.mark = value.mark, .bytes = std::as_bytes(std::span(out))};
    case MaskKind::digits:
      if (value.mark == lcr::ValueMark::null) return value;
      hashes_[column]->replace_digits(text_of(value), out);
      return {.mark = value.mark, .bytes = std::as_bytes(std::span(out))};
  }
  return {};
}

}  // namespace thalweg::transform
