#include "transform/row_transformation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pg/connection.h"
#include "rules/condition.h"
#include "rules/encode.h"
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

base::Result<RowTransformation> RowTransformation::make(const Steps& steps, const lcr::TableDescription& source,
                                                        ComputeContext context) {
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
  made.context_ = std::move(context);
  THALWEG_TRY(made.compile(source));
  made.sent_table_ = source;
  made.sent_table_.columns.clear();
  const bool is_identified = std::ranges::any_of(source.columns, &lcr::ColumnDescription::is_key);
  for (size_t i = 0; i < made.columns_.size(); ++i) {
    const SentColumn& column = made.columns_[i];
    if (column.added) {
      // Columns that are known of every row, also of one of which only the key is told, may be in the destination's
      // key.
      const bool is_known = !has_key || !column.computed || made.computations_[i]->is_of_key;
      made.sent_table_.columns.push_back(
          {.name = column.name, .type = column.added->type, .type_modifier = -1, .is_key = is_identified && is_known});
      continue;
    }
    lcr::ColumnDescription& sent = made.sent_table_.columns.emplace_back(source.columns[column.source]);
    sent.name = column.name;
    if (column.computed) {
      sent.type = column.computed->type;
      sent.type_modifier = -1;
    }
  }
  made.made_.resize(made.columns_.size());
  made.hashes_.resize(made.columns_.size());
  for (size_t i = 0; i < made.columns_.size(); ++i) {
    const std::optional<Mask>& mask = made.columns_[i].mask;
    if (mask && mask->needs_key()) made.hashes_[i].emplace(mask->key);
  }
  return made;
}

// Columns that the expressions read are of the key where pgoutput's description and the catalogue say so: of a
// partitioned table, the latter knows better.
base::Result<void> RowTransformation::compile(const lcr::TableDescription& source) {
  computations_.resize(columns_.size());
  key_is_sent_ = source.replica_identity == 'd' || source.replica_identity == 'i';
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].computed) continue;
    THALWEG_ASSIGN(rules::RowExpression expression, transform::compile(columns_[i], context_.table, context_.source));
    const bool is_of_key = std::ranges::all_of(expression.columns(), [&](uint16_t column) {
      return source.columns[column].is_key && context_.table.columns[column].is_key;
    });
    computations_[i].emplace(std::move(expression), is_of_key);
    computes_ = true;
  }
  return {};
}

bool RowTransformation::shows(size_t source_column) const {
  return std::ranges::any_of(columns_, [&](const SentColumn& column) {
    return column.source == source_column && !column.added && !column.mask;
  });
}

base::Result<lcr::RowFrame> RowTransformation::apply(const lcr::RowFrame& change) {
  lcr::RowFrame sent = change;
  before_.clear();
  if (!change.old_tuple.empty()) {
    THALWEG_TRY(rewrite(change, true, old_tuple_));
    sent.old_tuple = old_tuple_;
  }
  if (!change.new_tuple.empty()) {
    THALWEG_TRY(rewrite(change, false, new_tuple_));
    sent.new_tuple = new_tuple_;
  }
  return sent;
}

base::Result<void> RowTransformation::rewrite(const lcr::RowFrame& change, bool is_old, std::vector<std::byte>& out) {
  lcr::TupleView(is_old ? change.old_tuple : change.new_tuple).read(values_);
  const bool is_key_only = is_old && (change.flags & lcr::kOldKey) != 0;
  if (computes_) fill_inputs(change, is_old);
  sent_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const SentColumn& column = columns_[i];
    if (computations_[i]) {
      // Of a row of which only the key is told, nothing else can be computed.
      const bool has_come = !is_key_only || computations_[i]->is_of_key;
      lcr::Value value;
      if (has_come) {
        THALWEG_ASSIGN(value, computed(change, is_old, i));
      }
      sent_.push_back(value);
      continue;
    }
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
  return {};
}

// A value that did not change, and that the old tuple has, is that one. A value that an old tuple lacks looks like
// NULL, and no long value that did not change is NULL.
void RowTransformation::fill_inputs(const lcr::RowFrame& change, bool is_old) {
  inputs_.assign(values_.begin(), values_.end());
  if (is_old) {
    before_.assign(values_.begin(), values_.end());
    return;
  }
  if (change.old_tuple.empty()) return;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool is_there =
        i < before_.size() && (before_[i].mark == lcr::ValueMark::binary || before_[i].mark == lcr::ValueMark::text);
    if (inputs_[i].mark == lcr::ValueMark::unchanged && is_there) inputs_[i] = before_[i];
  }
}

base::Result<lcr::Value> RowTransformation::computed(const lcr::RowFrame& change, bool is_old, size_t column) {
  rules::RowExpression& expression = computations_[column]->expression;
  rules::Datum value;
  const rules::Failure failure = expression.evaluate(inputs_, *context_.scratch, value);
  if (failure != rules::Failure::none) return std::unexpected(failed(change, column, failure));
  switch (value.state) {
    case rules::State::null:
      return lcr::Value{};
    case rules::State::undecidable:
      // The destination has it already, if nothing that it is made of has changed.
      if (!is_old && is_as_before(change, column)) return lcr::Value{.mark = lcr::ValueMark::unchanged, .bytes = {}};
      return std::unexpected(lacking(change, column));
    case rules::State::value:
      break;
  }
  std::string& out = made_[column];
  rules::encode(expression.type(), value, out);
  return lcr::Value{.mark = lcr::ValueMark::binary, .bytes = std::as_bytes(std::span(out))};
}

bool RowTransformation::is_as_before(const lcr::RowFrame& change, size_t column) const {
  const bool key_stays = key_is_sent_ && change.kind == lcr::FrameKind::update && change.old_tuple.empty();
  return std::ranges::all_of(computations_[column]->expression.columns(), [&](uint16_t read) {
    const bool is_key = context_.table.columns[read].is_key;
    return values_[read].mark == lcr::ValueMark::unchanged || (is_key && key_stays);
  });
}

base::Error RowTransformation::failed(const lcr::RowFrame& change, size_t column, rules::Failure failure) const {
  const SentColumn& of = columns_[column];
  const std::string table = pg::quote_table(sent_table_.schema_name, sent_table_.table_name);
  base::Error error =
      refusal(table, fmt::format("The {} of column {} of {} failed on this {}: {}.",
                                 of.computed->text.empty() ? "cast" : "expression", pg::quote_identifier(of.name),
                                 table, rules::operation_of(change.kind), rules::message_of(failure)));
  error.sqlstate = rules::sqlstate_of(failure);
  return error;
}

base::Error RowTransformation::lacking(const lcr::RowFrame& change, size_t column) const {
  const std::string table = pg::quote_table(sent_table_.schema_name, sent_table_.table_name);
  return refusal(table, fmt::format("The expression of column {} of {} needs a value that this {} did not bring. {}.",
                                    pg::quote_identifier(columns_[column].name), table,
                                    rules::operation_of(change.kind), cure_of_lack(context_.table)));
}

lcr::Value RowTransformation::masked(const lcr::Value& value, size_t column) {
  const Mask& mask = *columns_[column].mask;
  std::string& out = made_[column];
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
