#include "capture/row_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/log.h"
#include "pg/text_array.h"
#include "rules/rule_errors.h"
#include "rules/source_table.h"

namespace thalweg::capture {

namespace {

constexpr const char* kRelations =
    "SELECT c.oid, n.nspname, c.relname FROM unnest($1::text[], $2::text[]) w(schema, name) "
    "JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema "
    "JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind IN ('r', 'p')";

constexpr const char* kSource =
    "SELECT s.system_identifier || '/' || d.oid FROM pg_catalog.pg_control_system() s, pg_catalog.pg_database d "
    "WHERE d.datname = pg_catalog.current_database()";
constexpr const char* kExisting =
    "SELECT oid FROM pg_catalog.pg_class WHERE oid = ANY ($1::oid[]) AND relkind IN ('r', 'p')";

// The capture gives no feedback while it waits for an answer. Later questions get a connection of their own.
constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::seconds kReuse{10};

pg::ConnectOptions within_patience(pg::ConnectOptions options) {
  options.lifetime = kPatience;
  return options;
}

}  // namespace

base::Result<bool> RowFilter::passes(const lcr::FrameView& change, rules::Row plain) {
  const rules::Judgement judgement = compiled_.judge(change, context_of(transaction_, source_), scratch_, plain);
  if (judgement.by_policy != nullptr && by_policy_.by_policy == nullptr) by_policy_ = judgement;
  switch (judgement.decision) {
    case rules::Decision::pass:
      return true;
    case rules::Decision::drop:
      return false;
    default:
      return std::unexpected(
          rules::error_of(judgement, table_, change.kind(), transaction_.is_committed && transaction_.is_tag_known));
  }
}

bool RowFilter::knows_labels_of(const lcr::FrameView& change) {
  if (enums_.empty()) return true;
  return knows_labels_in(change.old_tuple()) && knows_labels_in(change.new_tuple());
}

bool RowFilter::knows_labels_in(const lcr::TupleView& row) {
  if (!row.exists()) return true;
  row.read(values_);
  return std::ranges::all_of(enums_, [&](uint16_t column) {
    const lcr::Value& value = values_[column];
    if (value.mark == lcr::ValueMark::null || value.mark == lcr::ValueMark::unchanged) return true;
    const std::string_view label(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    const auto& labels = table_.columns[column].enum_labels;
    return std::ranges::find(labels, label) != labels.end();
  });
}

base::Result<RowFilter::Fate> RowFilter::judge(const lcr::FrameView& change) {
  by_policy_ = {};
  THALWEG_ASSIGN(const Fate fate, decide(change));
  counters_[static_cast<size_t>(fate)].add();
  if (by_policy_.by_policy != nullptr) [[unlikely]] {
    counters_[kByPolicy].add();
    if (log_ != nullptr) log_->note(by_policy_, table_, change);
  }
  return fate;
}

base::Result<RowFilter::Fate> RowFilter::decide(const lcr::FrameView& change) {
  THALWEG_ASSIGN(const bool now, passes(change, rules::Row::newest));
  if (change.kind() != lcr::FrameKind::update || !compiled_.make_subset()) return now ? Fate::pass : Fate::drop;
  THALWEG_ASSIGN(const bool before, passes(change, rules::Row::before));
  if (now) return before ? Fate::pass : Fate::becomes_insert;
  return before ? Fate::becomes_delete : Fate::drop;
}

base::Result<std::vector<std::byte>> RowFilter::inserted_row(const lcr::FrameView& update) const {
  std::vector<lcr::Value> values, before;
  update.new_tuple().read(values);
  const bool is_whole = update.has(lcr::kOldRow) && !table_.is_partitioned;
  if (is_whole) update.old_tuple().read(before);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].mark != lcr::ValueMark::unchanged) continue;
    if (!is_whole) {
      const std::string column = i < table_.columns.size() ? table_.columns[i].name : "";
      return std::unexpected(rules::undecidable(
          table_, update.kind(), rules::Move::into,
          fmt::format("the value of column {}, which did not change", pg::quote_identifier(column))));
    }
    values[i] = before[i];
  }
  return lcr::make_tuple(values);
}

base::Result<std::vector<std::byte>> RowFilter::deleted_key(const lcr::FrameView& update) const {
  if (update.old_tuple().exists()) return std::vector<std::byte>{};
  std::vector<lcr::Value> values;
  update.new_tuple().read(values);
  bool has_key = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_key = i < table_.columns.size() && table_.columns[i].is_key;
    if (!is_key) values[i] = {};
    if (values[i].mark == lcr::ValueMark::unchanged) return std::unexpected(lacks_key(update));
    has_key = has_key || is_key;
  }
  // The old keys of a partition's rows come by the partition's identity, which may be another.
  if (!has_key || table_.is_partitioned) return std::unexpected(lacks_key(update));
  return lcr::make_tuple(values);
}

base::Error RowFilter::lacks_key(const lcr::FrameView& update) const {
  return rules::undecidable(table_, update.kind(), rules::Move::out_of, "the row's key");
}

lcr::RowFrame as_insert(lcr::RowFrame update, std::span<const std::byte> row) {
  update.kind = lcr::FrameKind::insert;
  update.flags &= lcr::kStreamed;
  update.old_tuple = {};
  update.new_tuple = row;
  return update;
}

lcr::RowFrame as_delete(lcr::RowFrame update, std::span<const std::byte> key) {
  // Without a policy, only an old tuple can have said that the row was inside, where the new one says that it is not.
  assert(update.old_tuple.empty() != key.empty());
  if (!key.empty()) {
    update.old_tuple = key;
    update.flags |= lcr::kOldKey;
  }
  update.kind = lcr::FrameKind::remove;
  update.new_tuple = {};
  return update;
}

RowFilters::RowFilters(const StreamRules& rules, base::Conninfo conninfo, pg::ConnectOptions options,
                       const base::Clock& clock)
    : rules_(rules),
      conninfo_(std::move(conninfo)),
      options_(within_patience(std::move(options))),
      clock_(clock),
      policy_log_(clock) {
  for (const auto& [table, sets] : rules_.tables) {
    if (sets.has_any()) counters_.try_emplace(table);
  }
}

std::vector<telemetry::RuleSample> RowFilters::sample() const {
  std::vector<telemetry::RuleSample> tables;
  for (const auto& [table, counters] : counters_) {
    const auto count = [&](RowFilter::Fate fate) { return counters[static_cast<size_t>(fate)].get(); };
    tables.push_back({.schema_name = table.first,
                      .table_name = table.second,
                      .passed = count(RowFilter::Fate::pass),
                      .dropped = count(RowFilter::Fate::drop),
                      .became_inserts = count(RowFilter::Fate::becomes_insert),
                      .became_deletes = count(RowFilter::Fate::becomes_delete),
                      .by_policy = counters[RowFilter::kByPolicy].get(),
                      .place = {}});
    source_filters_.complete(tables.back());
  }
  return tables;
}

base::Result<pg::Connection*> RowFilters::connection() {
  const auto now = clock_.steady_now();
  if (!connection_ || connection_->broken() || now - opened_ > kReuse) {
    connection_.reset();
    THALWEG_ASSIGN(connection_, pg::Connection::open(conninfo_, options_));
    opened_ = now;
  }
  return &*connection_;
}

base::Result<void> RowFilters::locate() {
  if (rules_.tables.empty()) return {};
  std::vector<std::string> schemas, names;
  const auto ask_for = [&](const TableKey& table) {
    schemas.push_back(table.first);
    names.push_back(table.second);
  };
  for (const auto& [table, sets] : rules_.tables) ask_for(table);
  for (const TableKey& table : rules_.plain_tables) ask_for(table);
  THALWEG_ASSIGN(pg::Connection * source, connection());
  THALWEG_ASSIGN(const pg::Rows rows, source->query(kRelations, {pg::text_array(schemas), pg::text_array(names)}));
  THALWEG_ASSIGN(relations_, remembered(*source));
  for (size_t i = 0; i < rows.size(); ++i) {
    const base::RelationId relation{static_cast<uint32_t>(rows.integer(i, 0))};
    const TableKey table(rows.text(i, 1), rows.text(i, 2));
    // One that has taken the name of a table without rules keeps those that it is known to have.
    if (rules_.tables.contains(table)) relations_.insert_or_assign(relation, table);
    relations_.try_emplace(relation, table);
  }
  std::set<TableKey> found;
  for (const auto& [relation, table] : relations_) found.insert(table);
  for (const auto& [table, sets] : rules_.tables) {
    if (!found.contains(table)) missing_ = table;
  }
  THALWEG_TRY(locate_forms());
  return note_ruled_relations(rules_, source_, relations_);
}

base::Result<void> RowFilters::locate_forms() {
  const auto file = rules_.relations_file;
  forms_.open(file.empty() ? file : file.parent_path() / "transformed-forms.json", source_);
  std::set<base::RelationId> transformed;
  for (const auto& [relation, table] : relations_) {
    if (rules_.transformations.contains(table)) transformed.insert(relation);
  }
  THALWEG_TRY(forms_.retain(transformed));
  for (const base::RelationId relation : transformed) {
    const transform::Steps& steps = rules_.transformations.at(relations_.at(relation));
    if (!forms_.wants_beginning(relation, steps)) continue;
    THALWEG_ASSIGN(pg::Connection * source, connection());
    THALWEG_ASSIGN(const CatalogueNow now, look_now(*source, relation));
    THALWEG_TRY(forms_.begin(relation, now, steps));
  }
  return {};
}

// Relations that an earlier session has noted, as far as they are tables still.
base::Result<RuledRelations> RowFilters::remembered(pg::Connection& source) {
  THALWEG_ASSIGN(const pg::Rows id, source.query(kSource));
  source_ = id.text(0, 0);
  const RuledRelations noted = read_ruled_relations(rules_, source_);
  std::vector<std::string> oids;
  for (const auto& [relation, table] : noted) oids.push_back(std::to_string(relation.value));
  if (oids.empty()) return RuledRelations{};
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kExisting, {pg::text_array(oids)}));
  RuledRelations existing;
  for (size_t i = 0; i < rows.size(); ++i) {
    const base::RelationId relation{static_cast<uint32_t>(rows.integer(i, 0))};
    existing.emplace(relation, noted.at(relation));
  }
  return existing;
}

base::Result<const RowFilters::Ruled*> RowFilters::find(const lcr::TableDescription& table) {
  const TableKey name(table.schema_name, table.table_name);
  if (const auto ruled = rules_.tables.find(name); ruled != rules_.tables.end()) {
    THALWEG_TRY(note(table.relation, name));
    return &*ruled;
  }
  if (const auto known = relations_.find(table.relation); known != relations_.end()) {
    const auto ruled = rules_.tables.find(known->second);
    return ruled == rules_.tables.end() ? nullptr : &*ruled;
  }
  if (rules_.plain_tables.contains(name)) {
    THALWEG_TRY(note(table.relation, name));
    return nullptr;
  }
  if (!missing_) return nullptr;
  base::Error error =
      base::fail(
          base::ErrorCode::rule_refused,
          fmt::format("Changes of {} come, which is none of the stream's tables. It may be {} under another "
                      "name, whose rules would not be kept. Give the stream's table its new name, or remove it "
                      "from the stream.",
                      pg::quote_table(name.first, name.second), pg::quote_table(missing_->first, missing_->second)))
          .error();
  error.table = pg::quote_table(name.first, name.second);
  return std::unexpected(std::move(error));
}

base::Result<void> RowFilters::note(base::RelationId relation, const TableKey& table) {
  const auto [known, is_new] = relations_.try_emplace(relation, table);
  if (!is_new && known->second == table) return {};
  known->second = table;
  return note_ruled_relations(rules_, source_, relations_);
}

base::Result<std::string> RowFilters::write_for_source() {
  THALWEG_ASSIGN(pg::Connection * source, connection());
  return source_filters_.write(*source, rules_, relations_);
}

base::Result<std::unique_ptr<RowFilter>> RowFilters::make(const lcr::TableDescription& table) {
  THALWEG_ASSIGN(const Ruled* ruled, find(table));
  if (ruled == nullptr || !ruled->second.has_any()) return nullptr;
  rules::RuleTable seen = rules::table_of(table);
  THALWEG_ASSIGN(pg::Connection * source, connection());
  THALWEG_ASSIGN(const bool exists, rules::complete(*source, table.relation, seen));
  // Nobody can say what the columns of a dropped table were like. Changes from before the drop would stop the stream,
  // where the table is to stop alone: with its changes left out.
  const bool is_left_out = !exists && rules_.stops_tables;
  if (is_left_out) {
    base::log_event(base::LogLevel::warning, "dropped_table_left_out",
                    {{"table", pg::quote_table(table.schema_name, table.table_name)}});
  }
  auto compiled = rules::TableRules::compile(is_left_out ? nothing_ : ruled->second, seen);
  if (!compiled) return std::unexpected(rules::error_of(compiled.error(), seen));
  source_filters_.look_again(table.relation, ruled->first, ruled->second, seen, rules_.source);
  return std::make_unique<RowFilter>(std::move(*compiled), std::move(seen), rules_.source, transaction_, scratch_,
                                     counters_.at(ruled->first), &policy_log_);
}

base::Result<MadeTransformation> RowFilters::make_transformation(const lcr::TableDescription& table,
                                                                 const ChangePlace& change) {
  THALWEG_ASSIGN(const Ruled* ruled, find(table));
  if (ruled == nullptr) return MadeTransformation{};
  const auto steps = rules_.transformations.find(ruled->first);
  if (steps == rules_.transformations.end()) return MadeTransformation{};
  THALWEG_ASSIGN(pg::Connection * source, connection());
  THALWEG_ASSIGN(const CatalogueLook look, look_at(*source, table.relation, change));
  if (look.age == CatalogueLook::Age::unknown) return MadeTransformation{.is_undecided = true};
  transform::ComputeContext context{.table = {}, .source = rules_.source, .scratch = &scratch_};
  if (transform::have_computed_columns(steps->second)) {
    context.table = rules::table_of(table);
    // Of a dropped table nobody knows the collations: an expression that depends on one is refused.
    THALWEG_TRY(rules::complete(*source, table.relation, context.table));
  }
  THALWEG_ASSIGN(auto made, transform::RowTransformation::make(steps->second, table, std::move(context)));
  THALWEG_TRY(forms_.take(table, look, change.lsn, steps->second));
  return MadeTransformation{.steps = std::make_unique<transform::RowTransformation>(std::move(made))};
}

}  // namespace thalweg::capture
