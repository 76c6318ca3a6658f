#include "rules/condition.h"

#include <algorithm>

#include "rules/decode.h"
#include "rules/parser.h"
#include "rules/text_input.h"

namespace thalweg::rules {

namespace {

void set_text(Datum& out, std::string_view text) {
  give_text(out, text);
  out.state = State::value;
}

}  // namespace

std::string_view operation_of(lcr::FrameKind kind) {
  switch (kind) {
    case lcr::FrameKind::insert:
      return "INSERT";
    case lcr::FrameKind::update:
      return "UPDATE";
    case lcr::FrameKind::remove:
      return "DELETE";
    default:
      return "TRUNCATE";
  }
}

Ruled<Condition> Condition::compile(std::string_view text, const RuleTable& table) {
  RULES_ASSIGN(syntax, parse(text));
  auto strings = std::make_unique<Strings>();
  auto typed = type_condition(syntax, table, *strings);
  if (!typed) return std::unexpected(place_in(text, std::move(typed).error()));
  Scratch scratch;
  if (auto folded = fold(*typed, scratch, *strings); !folded) {
    return std::unexpected(place_in(text, std::move(folded).error()));
  }
  return Condition(Program(*typed), std::move(strings), table);
}

Condition::Condition(Program program, std::unique_ptr<Strings> strings, const RuleTable& table)
    : program_(std::move(program)), strings_(std::move(strings)), schema_(table.schema), table_(table.name) {
  key_is_sent_ = table.replica_identity == 'd' || table.replica_identity == 'i';
  old_rows_are_whole_ = !table.is_partitioned;
  std::ranges::stable_sort(program_.loads(), {}, &Load::column);
  for (Load& load : program_.loads()) {
    if (load.from != Load::From::row) {
      has_attributes_ = true;
      continue;
    }
    load.is_key = table.columns[load.column].is_key;
    columns_.push_back(load.column);
    reads_before_ = reads_before_ || load.row == Row::before;
    needs_old_values_ = needs_old_values_ || (load.row == Row::before && !load.is_key);
    needs_plain_values_ = needs_plain_values_ || (load.row == Row::newest && !load.is_key);
    const bool is_long = table.columns[load.column].may_be_long;
    reads_long_values_ = reads_long_values_ || (load.row != Row::before && !load.is_key && is_long);
  }
  std::ranges::sort(columns_);
  columns_.erase(std::ranges::unique(columns_).begin(), columns_.end());
  for (const Load& load : program_.loads()) {
    indexes_.push_back(static_cast<size_t>(std::ranges::lower_bound(columns_, load.column) - columns_.begin()));
  }
  old_values_.resize(columns_.size());
  new_values_.resize(columns_.size());
}

// The frame was checked, so every length lies inside it.
Condition::Raw Condition::take(const std::byte*& at) {
  const auto mark = static_cast<lcr::ValueMark>(*at++);
  if (mark != lcr::ValueMark::binary && mark != lcr::ValueMark::text) return {.mark = mark, .bytes = {}};
  const auto length = network_integer<uint32_t>(at);
  const auto* const bytes = reinterpret_cast<const char*>(at) + sizeof(uint32_t);
  at += sizeof(uint32_t) + length;
  return {.mark = mark, .bytes = {bytes, length}};
}

// Columns that the tuple has not are NULL.
void Condition::walk(const lcr::TupleView& tuple, std::vector<Raw>& raw) const {
  const std::byte* at = tuple.bytes().data();
  const auto count = network_integer<uint16_t>(at);
  at += sizeof(uint16_t);
  uint16_t column = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    raw[i] = {};
    for (; column < count && column < columns_[i]; ++column) take(at);
    if (column < count) raw[i] = take(at);
    ++column;
  }
}

Failure Condition::set(const Load& load, const Raw* raw, Scratch& scratch, Datum& out) {
  out.state = raw == nullptr ? State::undecidable : State::null;
  if (raw == nullptr || raw->mark == lcr::ValueMark::null) return Failure::none;
  if (raw->mark == lcr::ValueMark::binary) [[likely]]
    return decode(load.type, raw->bytes, out);
  return input(scratch, load.type, raw->bytes, out) == Failure::none ? Failure::none : Failure::corrupt;
}

// The common case, in one pass: only values after the change are read, and nothing came from before it.
Failure Condition::load_new_row(const lcr::TupleView& tuple, Scratch& scratch) {
  const std::byte* at = tuple.bytes().data();
  const auto count = network_integer<uint16_t>(at);
  at += sizeof(uint16_t);
  uint16_t next = 0;
  Raw raw;                                     // of column next - 1
  for (const Load& load : program_.loads()) {  // by column
    if (load.from != Load::From::row) continue;
    for (; next < count && next <= load.column; ++next) raw = take(at);
    if (load.column >= count) raw = {};
    const bool came = raw.mark != lcr::ValueMark::unchanged;
    const Failure failure = set(load, came ? &raw : nullptr, scratch, program_.at(load.place));
    if (failure != Failure::none) return failure;
  }
  return Failure::none;
}

const Condition::Raw* Condition::find(const Load& load, size_t index, const lcr::FrameHeader& header, Row plain) const {
  static constexpr Raw kNull;
  const bool has_old_row = (header.flags & lcr::kOldRow) != 0 && old_rows_are_whole_;
  const bool has_old_key = (header.flags & lcr::kOldKey) != 0;
  const bool has_old = has_old_row || (has_old_key && load.is_key);
  const bool removes = header.kind == lcr::FrameKind::remove;
  const Row row = load.row == Row::newest ? plain : load.row;
  const Raw* raw = &new_values_[index];
  if (row == Row::before || (row == Row::newest && removes)) {
    if (header.kind == lcr::FrameKind::insert) return &kNull;
    const bool same_key = !removes && load.is_key && key_is_sent_ && !has_old_key;
    if (!has_old && !same_key) return nullptr;
    if (has_old) raw = &old_values_[index];
  } else if (removes) {
    return &kNull;
  } else if (raw->mark == lcr::ValueMark::unchanged && has_old) {
    raw = &old_values_[index];
  }
  return raw->mark == lcr::ValueMark::unchanged ? nullptr : raw;
}

Failure Condition::load_row(const lcr::FrameView& frame, Scratch& scratch, Row plain) {
  static constexpr Raw kNull;
  const lcr::FrameHeader& header = frame.header();
  const bool has_old = (header.flags & (lcr::kOldRow | lcr::kOldKey)) != 0;
  const bool has_new = header.kind == lcr::FrameKind::insert || header.kind == lcr::FrameKind::update;
  const bool reads_before = reads_before_ || plain == Row::before;
  if (has_new && !has_old && !reads_before) return load_new_row(frame.new_tuple(), scratch);
  if (has_old) walk(frame.old_tuple(), old_values_);
  if (has_new) walk(frame.new_tuple(), new_values_);
  const std::vector<Load>& loads = program_.loads();
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i].from != Load::From::row) continue;
    const Raw* const raw =
        header.kind == lcr::FrameKind::truncate ? &kNull : find(loads[i], indexes_[i], header, plain);
    const Failure failure = set(loads[i], raw, scratch, program_.at(loads[i].place));
    if (failure != Failure::none) return failure;
  }
  return Failure::none;
}

void Condition::load_attributes(const lcr::FrameView& frame, const ChangeContext& context) {
  for (const Load& load : program_.loads()) {
    if (load.from != Load::From::attribute) continue;
    Datum& out = program_.at(load.place);
    switch (load.attribute) {
      case Attribute::schema:
        set_text(out, schema_);
        break;
      case Attribute::table:
        set_text(out, table_);
        break;
      case Attribute::operation:
        set_text(out, operation_of(frame.kind()));
        break;
      case Attribute::source:
        set_text(out, context.source);
        break;
      case Attribute::tag:
        set_text(out, context.tag.value_or(""));
        if (!context.tag) out.state = State::null;
        if (!context.is_committed || !context.is_tag_known) out.state = State::undecidable;
        break;
      case Attribute::commit_time:
        out.integer = context.commit_time ? context.commit_time->value - base::kPostgresEpochMicros : 0;
        out.state = context.commit_time ? State::value : State::null;
        if (!context.is_committed) out.state = State::undecidable;
        break;
    }
  }
}

Verdict Condition::evaluate(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch, Row plain) {
  scratch.clear();
  if (!columns_.empty()) {
    const Failure failure = load_row(frame, scratch, plain);
    if (failure != Failure::none) return {.outcome = Outcome::failed, .failure = failure};
  }
  if (has_attributes_) load_attributes(frame, context);
  const Datum& result = program_.value(scratch);
  if (program_.failure() != Failure::none) return {.outcome = Outcome::failed, .failure = program_.failure()};
  switch (result.state) {
    case State::value:
      return {.outcome = result.integer != 0 ? Outcome::is_true : Outcome::is_false};
    case State::null:
      return {.outcome = Outcome::is_null};
    default:
      return {.outcome = Outcome::undecidable};
  }
}

}  // namespace thalweg::rules
