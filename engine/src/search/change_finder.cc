#include "search/change_finder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "search/kept_wal.h"
#include "search/searched_key.h"

namespace thalweg::search {

namespace {

using lcr::FrameKind;
using lcr::ValueMark;
using telemetry::BeforeIs;
using telemetry::FoundChange;
using telemetry::FoundColumn;
using telemetry::FoundOperation;
using telemetry::FoundValue;

FoundOperation operation_of(FrameKind kind) {
  if (kind == FrameKind::insert) return FoundOperation::insert;
  if (kind == FrameKind::truncate) return FoundOperation::truncate;
  return kind == FrameKind::update ? FoundOperation::update : FoundOperation::remove;
}

std::vector<lcr::Value> values_of(std::span<const std::byte> tuple) {
  std::vector<lcr::Value> values;
  if (!tuple.empty()) lcr::TupleView(tuple).read(values);
  return values;
}

bool has_bytes(const lcr::Value& value) { return value.mark == ValueMark::binary || value.mark == ValueMark::text; }

bool is_equal(const lcr::Value& value, const std::optional<std::string>& binary) {
  if (value.mark == ValueMark::null || !binary) return value.mark == ValueMark::null && !binary;
  return has_bytes(value) && std::ranges::equal(value.bytes, std::as_bytes(std::span(*binary)));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

base::Result<void> ChangeFinder::flush() {
  THALWEG_TRY(texts_.read());
  if (!options_.publish(std::exchange(found_, {}))) is_done_ = is_truncated_ = true;
  return {};
}

base::Result<void> ChangeFinder::add(std::shared_ptr<FoundChange> change) {
  found_.push_back(std::move(change));
  if (++count_ >= options_.request.limit) is_done_ = is_truncated_ = true;
  if (texts_.bytes() <= kWaitingBytesMax && found_.size() <= kWaitingMax) return {};
  return flush();
}

base::Result<void> ChangeFinder::check_stop() const {
  if (!options_.stop->load(std::memory_order_relaxed) && !is_done_) return {};
  return base::fail(base::ErrorCode::engine_stopping, "The search ends");
}

// --- tables

base::Result<void> ChangeFinder::describe(const mining::MinedTable& table) {
  const lcr::TableDescription& description = table.description;
  const auto& wanted = options_.request.table;
  if (wanted && *wanted != std::pair(description.schema_name, description.table_name)) {
    forms_.erase(description.relation);
    followed_.erase(description.relation);
    return {};
  }
  auto form = std::make_shared<Form>(Form{.description = description});
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].is_sent) form->numbers.push_back(static_cast<int16_t>(i + 1));
  }
  form->is_hidden.assign(description.columns.size(), false);
  const auto steps = options_.transformations->find({description.schema_name, description.table_name});
  if (steps != options_.transformations->end()) {
    std::vector<std::string> names;
    for (const lcr::ColumnDescription& column : description.columns) names.push_back(column.name);
    form->is_hidden = capture::hidden_columns(steps->second, names);
  }
  THALWEG_ASSIGN(form->key, key_of(*form));
  if (!options_.request.key.empty() && form->key) {
    const auto is_in_key = [&](size_t column) {
      return std::ranges::find(*form->key, column, &KeyColumn::column) != form->key->end();
    };
    form->follows = description.replica_identity != 'f';
    for (size_t i = 0; i < description.columns.size(); ++i) {
      form->follows = form->follows && description.columns[i].is_key == is_in_key(i);
    }
  }
  if (!form->follows) followed_.erase(description.relation);
  forms_[description.relation] = std::move(form);
  return {};
}

base::Result<std::optional<std::vector<ChangeFinder::KeyColumn>>> ChangeFinder::key_of(const Form& form) {
  std::vector<KeyColumn> key;
  const auto& columns = form.description.columns;
  for (const auto& [name, value] : options_.request.key) {
    const auto found = std::ranges::find(columns, name, &lcr::ColumnDescription::name);
    if (found == columns.end()) return std::nullopt;
    KeyColumn column{.column = static_cast<size_t>(found - columns.begin())};
    if (value) {
      THALWEG_ASSIGN(column.binary, binary_of(source_, *value, found->type, found->type_modifier));
      if (!column.binary) return std::nullopt;
    }
    key.push_back(std::move(column));
  }
  return key;
}

bool ChangeFinder::is_masked(const Form& form, size_t column, base::Lsn lsn) const {
  return form.is_hidden[column] ||
         options_.masked->is_masked({form.description.relation.value, form.numbers[column]}, lsn);
}

bool ChangeFinder::had_key(const Form& form, const Row& row) const {
  // Of an old row that is no whole one, columns beside the identity are NULL whatever they were.
  const bool is_whole = (row.frame.flags & lcr::kOldRow) != 0;
  return has_key(form, row.old_values, row.frame.lsn) && std::ranges::all_of(*form.key, [&](const KeyColumn& key) {
           return is_whole || form.description.columns[key.column].is_key;
         });
}

bool ChangeFinder::has_key(const Form& form, const std::vector<lcr::Value>& values, base::Lsn lsn) const {
  return !values.empty() && std::ranges::all_of(*form.key, [&](const KeyColumn& key) {
    return !is_masked(form, key.column, lsn) && is_equal(values[key.column], key.binary);
  });
}

bool ChangeFinder::fits(const Form& form, const Row& row) const {
  if (options_.request.key.empty()) return true;
  return form.key && (had_key(form, row) || has_key(form, row.new_values, row.frame.lsn));
}

// --- transactions

base::Result<void> ChangeFinder::begin(base::Xid xid, const lcr::TransactionMark& mark) {
  xid_ = xid;
  mark_ = mark;
  return check_stop();
}

base::Result<void> ChangeFinder::change(const lcr::RowFrame& frame) {
  THALWEG_TRY(check_stop());
  const auto found = forms_.find(frame.relation);
  if (found == forms_.end()) return {};
  Row row{.frame = frame, .old_values = values_of(frame.old_tuple), .new_values = values_of(frame.new_tuple)};
  if (!fits(*found->second, row)) return {};
  if ((frame.flags & lcr::kStreamed) == 0) return accept(found->second, row);
  hold(frame.xid, {.subxid = frame.subxid,
                   .form = found->second,
                   .kind = frame.kind,
                   .flags = frame.flags,
                   .lsn = frame.lsn,
                   .old_tuple = text_of(frame.old_tuple),
                   .new_tuple = text_of(frame.new_tuple)});
  return {};
}

base::Result<void> ChangeFinder::truncate(const mining::TruncateChange& truncate) {
  THALWEG_TRY(check_stop());
  for (const base::RelationId relation : truncate.relations) {
    const auto found = forms_.find(relation);
    if (found == forms_.end()) continue;
    if ((truncate.flags & lcr::kStreamed) == 0) {
      THALWEG_TRY(add_truncate(*found->second, truncate.lsn));
    } else {
      hold(truncate.xid, {.subxid = truncate.subxid,
                          .form = found->second,
                          .kind = FrameKind::truncate,
                          .flags = truncate.flags,
                          .lsn = truncate.lsn});
    }
  }
  return {};
}

base::Result<void> ChangeFinder::message(base::Xid, std::string_view) { return {}; }

void ChangeFinder::hold(base::Xid xid, Held held) {
  const auto& request = options_.request;
  const bool is_needed = !request.xid || *request.xid == xid || !request.key.empty();
  if (!is_needed) return;
  Open& open = open_[xid];
  if (open.is_cut || held_bytes_ + held.bytes() > kHeldBytesMax) {
    open.is_cut = true;
    return;
  }
  held_bytes_ += held.bytes();
  open.changes.push_back(std::move(held));
}

base::Result<void> ChangeFinder::rolled_back(base::Xid xid, base::Xid subxid, base::Lsn) {
  const auto found = open_.find(xid);
  if (found == open_.end()) return {};
  std::erase_if(found->second.changes, [&](const Held& held) {
    const bool is_gone = !subxid || held.subxid == subxid;
    if (is_gone) held_bytes_ -= held.bytes();
    return is_gone;
  });
  if (!subxid) open_.erase(found);
  return {};
}

base::Result<void> ChangeFinder::commit(base::Xid, const lcr::TransactionMark& mark) {
  note_end(mark);
  return {};
}

base::Result<void> ChangeFinder::commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                                 std::span<const base::Xid> subtransactions) {
  THALWEG_TRY(begin(xid, mark));
  auto node = open_.extract(xid);
  if (!node.empty()) {
    for (const Held& held : node.mapped().changes) {
      held_bytes_ -= held.bytes();
      if (held.subxid && std::ranges::find(subtransactions, held.subxid) == subtransactions.end()) continue;
      THALWEG_TRY(check_stop());
      if (held.kind == FrameKind::truncate) {
        THALWEG_TRY(add_truncate(*held.form, held.lsn));
        continue;
      }
      const lcr::RowFrame frame{.kind = held.kind,
                                .flags = held.flags,
                                .xid = xid,
                                .subxid = held.subxid,
                                .relation = held.form->description.relation,
                                .table_version = 0,
                                .lsn = held.lsn,
                                .old_tuple = std::as_bytes(std::span(held.old_tuple)),
                                .new_tuple = std::as_bytes(std::span(held.new_tuple))};
      Row row{.frame = frame, .old_values = values_of(frame.old_tuple), .new_values = values_of(frame.new_tuple)};
      THALWEG_TRY(accept(held.form, row));
    }
    if (node.mapped().is_cut && is_in_time()) is_done_ = is_truncated_ = true;
  }
  note_end(mark);
  return {};
}

// A commit that was applied from elsewhere has the time that it had there.
void ChangeFinder::note_end(const lcr::TransactionMark& mark) {
  constexpr int64_t kMargin = std::chrono::microseconds(kClockMargin).count();
  const auto& to = options_.request.to_time;
  if (to && origin_ == 0 && mark.commit_time.value > to->value + kMargin) is_done_ = true;
}

bool ChangeFinder::is_in_time() const {
  const auto& request = options_.request;
  return mark_.commit_lsn >= options_.from && (!request.xid || *request.xid == xid_) &&
         (!request.from_time || mark_.commit_time >= *request.from_time) &&
         (!request.to_time || mark_.commit_time < *request.to_time);
}

// --- changes

base::Result<void> ChangeFinder::accept(const std::shared_ptr<Form>& form, Row& row) {
  // The row that is followed is the one with the key before this change.
  const bool follows = form->follows;
  KnownRow followed;
  const bool was_followed =
      follows && row.frame.kind != FrameKind::insert && (row.old_values.empty() || had_key(*form, row));
  if (const auto known = followed_.find(form->description.relation); was_followed && known != followed_.end()) {
    followed = known->second;
  }
  if (is_in_time()) {
    THALWEG_ASSIGN(auto change, begin_change(*form, row.frame.lsn));
    change->operation = operation_of(row.frame.kind);
    THALWEG_TRY(add_columns(*form, row, followed, *change));
    THALWEG_TRY(add(std::move(change)));
  }
  if (follows) follow(*form, row, followed.empty() ? std::nullopt : std::optional(std::move(followed)));
  return {};
}

void ChangeFinder::follow(Form& form, const Row& row, const std::optional<KnownRow>& before) {
  const base::RelationId relation = form.description.relation;
  if (row.new_values.empty() || !has_key(form, row.new_values, row.frame.lsn)) {
    followed_.erase(relation);
    return;
  }
  KnownRow after;
  for (size_t i = 0; i < row.new_values.size(); ++i) {
    const lcr::Value& value = row.new_values[i];
    const int16_t number = form.numbers[i];
    // It may not be masked any more where it would be filled in.
    if (is_masked(form, i, row.frame.lsn)) continue;
    if (value.mark != ValueMark::unchanged) {
      const lcr::ColumnDescription& column = form.description.columns[i];
      after[number] = {.type = column.type,
                       .type_modifier = column.type_modifier,
                       .mark = value.mark,
                       .bytes = text_of(value.bytes)};
    } else if (before) {
      if (const auto known = before->find(number); known != before->end()) after.insert(*known);
    }
  }
  followed_[relation] = std::move(after);
}

base::Result<std::shared_ptr<FoundChange>> ChangeFinder::begin_change(const Form& form, base::Lsn lsn) {
  auto change = std::make_shared<FoundChange>();
  change->xid = xid_;
  change->commit_lsn = mark_.commit_lsn;
  change->commit_time = mark_.commit_time;
  change->lsn = lsn;
  change->schema = form.description.schema_name;
  change->table = form.description.table_name;
  THALWEG_ASSIGN(change->origin, origin_name());
  return change;
}

base::Result<void> ChangeFinder::add_truncate(Form& form, base::Lsn lsn) {
  followed_.erase(form.description.relation);
  if (!is_in_time()) return {};
  THALWEG_ASSIGN(auto change, begin_change(form, lsn));
  change->operation = FoundOperation::truncate;
  return add(std::move(change));
}

// An update without an old row left the replica identity as it was.
base::Result<void> ChangeFinder::add_columns(Form& form, const Row& row, const KnownRow& followed, FoundChange& out) {
  THALWEG_TRY(read_types(form));
  const FrameKind kind = row.frame.kind;
  const bool is_whole = (row.frame.flags & lcr::kOldRow) != 0;
  const auto& columns = form.description.columns;
  const bool has_identity = std::ranges::any_of(columns, &lcr::ColumnDescription::is_key);
  if (kind != FrameKind::insert) {
    out.before_is = is_whole                                  ? BeforeIs::whole
                    : !followed.empty()                       ? BeforeIs::followed
                    : has_identity || !row.old_values.empty() ? BeforeIs::identity
                                                              : BeforeIs::unknown;
  }
  out.columns.resize(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    FoundColumn& column = out.columns[i];
    column.name = columns[i].name;
    column.type = form.types[i];
    column.is_key = columns[i].is_key;
    const auto came = [](const lcr::Value& value) { return value.mark != ValueMark::unchanged; };
    std::optional<lcr::Value> before;
    if (kind != FrameKind::insert) {
      const bool is_in_old = !row.old_values.empty() && (is_whole || columns[i].is_key) && came(row.old_values[i]);
      const auto known = followed.find(form.numbers[i]);
      if (is_in_old) {
        before = row.old_values[i];
      } else if (row.old_values.empty() && columns[i].is_key && came(row.new_values[i])) {
        before = row.new_values[i];
      } else if (!is_whole && known != followed.end() && known->second.type == columns[i].type &&
                 known->second.type_modifier == columns[i].type_modifier) {
        before = lcr::Value{.mark = known->second.mark, .bytes = std::as_bytes(std::span(known->second.bytes))};
      }
    }
    std::optional<lcr::Value> after;
    if (!row.new_values.empty()) {
      if (came(row.new_values[i])) {
        after = row.new_values[i];
      } else {
        after = before;
      }
    }
    if (is_masked(form, i, row.frame.lsn)) {
      if (before) column.before = FoundValue{.is_masked = true};
      if (after) column.after = FoundValue{.is_masked = true};
      continue;
    }
    if (before) texts_.add(*before, columns[i].type, column.before.emplace());
    if (after) texts_.add(*after, columns[i].type, column.after.emplace());
  }
  return {};
}

base::Result<void> ChangeFinder::read_types(Form& form) {
  const auto& columns = form.description.columns;
  if (!form.types.empty() || columns.empty()) return {};
  std::string list;
  for (size_t i = 0; i < columns.size(); ++i) {
    list += fmt::format("{}({}, {}::oid, {}::int4)", i == 0 ? "" : ", ", i, columns[i].type.value,
                        columns[i].type_modifier);
  }
  THALWEG_ASSIGN(const pg::Rows rows, source_.query("SELECT pg_catalog.format_type(type, modifier) FROM (VALUES " +
                                                    list + ") v (place, type, modifier) ORDER BY place"));
  for (size_t i = 0; i < columns.size(); ++i) form.types.emplace_back(rows.text(i, 0));
  return {};
}

base::Result<std::optional<std::string>> ChangeFinder::origin_name() {
  if (origin_ == 0) return std::nullopt;
  if (const auto known = origins_.find(origin_); known != origins_.end()) return known->second;
  THALWEG_ASSIGN(const pg::Rows rows,
                 source_.query("SELECT roname FROM pg_catalog.pg_replication_origin WHERE roident = $1::pg_catalog.oid",
                               {std::to_string(origin_)}));
  std::string name = rows.size() == 0 ? fmt::format("origin {}", origin_) : std::string(rows.text(0, 0));
  return origins_.emplace(origin_, std::move(name)).first->second;
}

}  // namespace thalweg::search
