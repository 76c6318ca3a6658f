#include "rules/condition.h"

#include <algorithm>

#include "lcr/bytes.h"
#include "rules/decode.h"
#include "rules/parser.h"

namespace thalweg::rules {

namespace {

// PostgreSQL's words in a rule's `operation`.
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

void set_text(Datum& out, std::string_view text) {
  give_text(out, text);
  out.state = State::value;
}

}  // namespace

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
  for (Load& load : program_.loads()) {
    if (load.from != Load::From::row) continue;
    load.is_key = table.columns[load.column].is_key;
    columns_.push_back(load.column);
    needs_old_row_ = needs_old_row_ || (load.row != Row::after && !load.is_key);
  }
  std::ranges::sort(columns_);
  columns_.erase(std::ranges::unique(columns_).begin(), columns_.end());
  for (const Load& load : program_.loads()) {
    indexes_.push_back(static_cast<size_t>(std::ranges::lower_bound(columns_, load.column) - columns_.begin()));
  }
  old_values_.resize(columns_.size());
  new_values_.resize(columns_.size());
}

// The frame was checked, so every length lies inside it; a tuple with fewer columns leaves NULLs.
void Condition::walk(const lcr::TupleView& tuple, std::vector<Raw>& raw) const {
  const std::byte* at = tuple.bytes().data() + sizeof(uint16_t);
  const uint16_t count = tuple.column_count();
  uint16_t column = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    raw[i] = {};
    for (; column < count && column <= columns_[i]; ++column) {
      const auto mark = static_cast<lcr::ValueMark>(*at++);
      std::string_view bytes;
      if (mark == lcr::ValueMark::binary || mark == lcr::ValueMark::text) {
        const auto length = lcr::load_network<uint32_t>(at);
        bytes = {reinterpret_cast<const char*>(at) + sizeof(uint32_t), length};
        at += sizeof(uint32_t) + length;
      }
      if (column == columns_[i]) raw[i] = {.mark = mark, .bytes = bytes};
    }
  }
}

Failure Condition::load_column(const Load& load, size_t index, const lcr::FrameView& frame) {
  Datum& out = program_.at(load.place);
  const bool has_old = frame.has(lcr::kOldRow) || (frame.has(lcr::kOldKey) && load.is_key);
  const bool removes = frame.kind() == lcr::FrameKind::remove;
  const bool before = load.row == Row::before || (load.row == Row::newest && removes);
  const Raw* raw = before ? &old_values_[index] : &new_values_[index];
  out.state = State::null;
  if (before) {
    if (frame.kind() == lcr::FrameKind::insert) return Failure::none;
    if (!has_old) {
      const bool same_key = !removes && load.is_key && key_is_sent_ && !frame.has(lcr::kOldKey);
      if (!same_key) {
        out.state = State::undecidable;
        return Failure::none;
      }
      raw = &new_values_[index];
    }
  } else {
    if (removes) return Failure::none;
    if (raw->mark == lcr::ValueMark::unchanged && has_old) raw = &old_values_[index];
  }
  switch (raw->mark) {
    case lcr::ValueMark::null:
      return Failure::none;
    case lcr::ValueMark::unchanged:
      out.state = State::undecidable;
      return Failure::none;
    case lcr::ValueMark::text:
      if (!is_text(load.type) && load.type != Type::any_enum) return Failure::corrupt;
      set_text(out, raw->bytes);
      return Failure::none;
    case lcr::ValueMark::binary:
      return decode(load.type, raw->bytes, out);
  }
  return Failure::corrupt;
}

Failure Condition::load_row(const lcr::FrameView& frame) {
  if (columns_.empty()) return Failure::none;
  if (frame.kind() != lcr::FrameKind::truncate) {
    if (frame.has(lcr::kOldRow) || frame.has(lcr::kOldKey)) walk(frame.old_tuple(), old_values_);
    if (frame.kind() != lcr::FrameKind::remove) walk(frame.new_tuple(), new_values_);
  }
  const std::vector<Load>& loads = program_.loads();
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i].from != Load::From::row) continue;
    if (frame.kind() == lcr::FrameKind::truncate) {
      program_.at(loads[i].place).state = State::null;
    } else if (const Failure failure = load_column(loads[i], indexes_[i], frame); failure != Failure::none) {
      return failure;
    }
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
        break;
      case Attribute::commit_time:
        out.integer = context.commit_time ? context.commit_time->value - base::kPostgresEpochMicros : 0;
        out.state = context.commit_time ? State::value : State::undecidable;
        break;
    }
  }
}

Verdict Condition::evaluate(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch) {
  if (const Failure failure = load_row(frame); failure != Failure::none) {
    return {.outcome = Outcome::failed, .failure = failure};
  }
  load_attributes(frame, context);
  const Datum result = program_.value(scratch);
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
