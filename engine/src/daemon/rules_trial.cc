#include "daemon/rules_trial.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capture/row_filter.h"
#include "daemon/rule_sets.h"
#include "daemon/rules_check.h"
#include "daemon/tapped_rows.h"
#include "pg/text_array.h"
#include "rules/rule_errors.h"
#include "rules/source_table.h"
#include "rules/value.h"

namespace thalweg::daemon {
namespace {

using control::RuledOperation;
using control::TriedChange;
using control::TriedRow;
using Fate = capture::RowFilter::Fate;

constexpr base::RelationId kRelation{1};  // of frames that nobody else sees

std::optional<std::string> value_of(const TriedRow& row, const std::string& column) {
  const auto found = row.find(column);
  return found == row.end() ? std::nullopt : found->second;
}

std::vector<std::byte> tuple_of(const TriedRow& row, const rules::RuleTable& table, bool key_only) {
  std::vector<lcr::Value> values(table.columns.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto found = row.find(table.columns[i].name);
    if (found == row.end() || !found->second || (key_only && !table.columns[i].is_key)) continue;
    values[i] = {.mark = lcr::ValueMark::text, .bytes = std::as_bytes(std::span(*found->second))};
  }
  return lcr::make_tuple(values);
}

lcr::FrameKind kind_of(RuledOperation operation) {
  switch (operation) {
    case RuledOperation::insert:
      return lcr::FrameKind::insert;
    case RuledOperation::update:
      return lcr::FrameKind::update;
    case RuledOperation::remove:
      return lcr::FrameKind::remove;
    case RuledOperation::truncate:
      break;
  }
  return lcr::FrameKind::truncate;
}

// The frame that the capture would make of it.
std::vector<std::byte> frame_of(const TriedChange& change, const rules::RuleTable& table) {
  const lcr::FrameKind kind = kind_of(change.operation);
  if (kind == lcr::FrameKind::truncate) return lcr::make_truncate_frame({1}, {}, {1}, 0, std::span(&kRelation, 1));
  const bool is_whole = table.replica_identity == 'f';
  const bool moves = std::ranges::any_of(table.columns, [&](const rules::RuleColumn& column) {
    return column.is_key && value_of(change.old_row, column.name) != value_of(change.new_row, column.name);
  });
  const bool has_old = kind == lcr::FrameKind::remove || (kind == lcr::FrameKind::update && (is_whole || moves));
  const auto old_tuple = has_old ? tuple_of(change.old_row, table, !is_whole) : std::vector<std::byte>{};
  const bool has_new = kind != lcr::FrameKind::remove;
  const auto new_tuple = has_new ? tuple_of(change.new_row, table, false) : std::vector<std::byte>{};
  const lcr::RowFrame row{.kind = kind,
                          .flags = static_cast<uint16_t>(!has_old   ? 0
                                                         : is_whole ? lcr::kOldRow
                                                                    : lcr::kOldKey),
                          .xid = {1},
                          .subxid = {},
                          .relation = kRelation,
                          .table_version = 1,
                          .lsn = {1},
                          .old_tuple = old_tuple,
                          .new_tuple = new_tuple};
  std::vector<std::byte> frame(lcr::row_frame_bytes(row));
  lcr::write_row_frame(row, frame);
  return frame;
}

base::Result<void> check_columns(const TriedRow& row, const rules::RuleTable& table) {
  for (const auto& [column, value] : row) {
    if (std::ranges::find(table.columns, column, &rules::RuleColumn::name) != table.columns.end()) continue;
    return base::fail(
        base::ErrorCode::invalid_request,
        fmt::format("{} has no column {}.", pg::quote_table(table.schema, table.name), pg::quote_identifier(column)));
  }
  return {};
}

// Gives values of jsonb the text that changes bring: each key once, in the server's order, and its way of writing.
base::Result<void> write_documents_anew(pg::Connection& source, TriedRow& row, const rules::RuleTable& table) {
  for (const rules::RuleColumn& column : table.columns) {
    const auto found = row.find(column.name);
    const bool is_document = column.type.value == std::to_underlying(rules::Type::jsonb);
    if (!is_document || found == row.end() || !found->second) continue;
    const auto written = source.query("SELECT $1::pg_catalog.jsonb::pg_catalog.text", {*found->second});
    if (!written && written.error().sqlstate.starts_with("22")) {
      return base::fail(base::ErrorCode::invalid_request,
                        fmt::format("The value of the column {} is no jsonb: {}.", pg::quote_identifier(column.name),
                                    written.error().message));
    }
    if (!written) return std::unexpected(written.error());
    found->second = std::string(written->text(0, 0));
  }
  return {};
}

base::Result<std::vector<TriedChange>> read_sample(pg::Connection& source, const rules::RuleTable& table,
                                                   uint64_t rows_max) {
  std::vector<TriedChange> changes;
  if (rows_max == 0 || table.columns.empty()) return changes;
  std::string columns;
  for (const rules::RuleColumn& column : table.columns) {
    columns += (columns.empty() ? "" : ", ") + pg::quote_identifier(column.name);
  }
  THALWEG_ASSIGN(const pg::Rows rows, source.query(fmt::format("SELECT {} FROM {} LIMIT {}", columns,
                                                               pg::quote_table(table.schema, table.name), rows_max)));
  for (size_t i = 0; i < rows.size(); ++i) {
    TriedChange& change = changes.emplace_back();
    for (size_t column = 0; column < table.columns.size(); ++column) {
      change.new_row[table.columns[column].name] =
          rows.is_null(i, column) ? std::nullopt : std::optional(std::string(rows.text(i, column)));
    }
  }
  return changes;
}

std::string_view verdict_of(Fate fate) {
  switch (fate) {
    case Fate::pass:
      return "PASSED";
    case Fate::drop:
      return "DROPPED";
    case Fate::becomes_insert:
      return "BECOMES INSERT";
    case Fate::becomes_delete:
      return "BECOMES DELETE";
  }
  return "";
}

// The rules of a table, each by itself and all together.
class Trial {
 public:
  // `sets` outlive it, and fit the table.
  Trial(const rules::RuleSets& sets, const rules::RuleTable& table, rules::TableRules compiled,
        const std::string& source, const RulesTime& time)
      : table_(table),
        source_(source),
        time_(time),
        makes_subset_(compiled.make_subset()),
        filter_(std::move(compiled), table, source, transaction_, scratch_, counters_, nullptr) {
    add(sets.negative, false);
    add(sets.positive, true);
  }

  base::Result<control::JudgedChange> judge(TriedChange change) {
    const std::vector<std::byte> bytes = frame_of(change, table_);
    control::JudgedChange judged{.change = std::move(change), .rules = {}, .verdict = {}};
    // A row by itself is of no transaction: it has neither a tag nor a commit time.
    const capture::TransactionFacts transaction{.is_committed = true,
                                                .commit_time = judged.change.commit_time.value_or(base::UnixMicros{}),
                                                .tag = judged.change.tag};
    THALWEG_TRY(judge(lcr::FrameView::trusted(bytes.data()), transaction, judged));
    return judged;
  }

  // Adds what the rules make of the change.
  base::Result<void> judge(const lcr::FrameView& frame, const capture::TransactionFacts& transaction,
                           control::JudgedChange& judged) {
    transaction_ = transaction;
    const rules::ChangeContext context = capture::context_of(transaction_, source_);
    judged.change.tag = transaction.tag;
    judged.change.commit_time = context.commit_time;
    const bool has_two = makes_subset_ && frame.kind() == lcr::FrameKind::update;
    for (TriedRule& tried : rules_) {
      THALWEG_TRY(time_.check());
      judged.rules.push_back({.is_positive = tried.is_positive,
                              .rule = tried.rule->name,
                              .outcome = outcome(tried, frame, rules::Row::newest)});
      if (has_two) judged.rules.back().before = outcome(tried, frame, rules::Row::before);
    }
    if (const auto fate = fate_of(frame)) {
      judged.verdict = verdict_of(*fate);
    } else {
      judged.verdict = "STOPS THE STREAM";
      judged.error = fate.error();
    }
    return {};
  }

 private:
  struct TriedRule {
    const rules::Rule* rule;
    bool is_positive;
    std::optional<rules::Condition> condition;
  };

  base::Result<Fate> fate_of(const lcr::FrameView& frame) {
    THALWEG_ASSIGN(const Fate fate, filter_.judge(frame));
    if (fate == Fate::becomes_insert) {
      const auto row = filter_.inserted_row(frame);  // which a value that did not come may be missing from
      if (!row) return std::unexpected(row.error());
    }
    if (fate == Fate::becomes_delete) {
      const auto key = filter_.deleted_key(frame);
      if (!key) return std::unexpected(key.error());
    }
    return fate;
  }

  void add(const std::optional<std::vector<rules::Rule>>& set, bool is_positive) {
    if (!set) return;
    for (const rules::Rule& rule : *set) {
      TriedRule& tried = rules_.emplace_back(TriedRule{.rule = &rule, .is_positive = is_positive, .condition = {}});
      if (rule.condition.empty()) continue;
      if (auto condition = rules::Condition::compile(rule.condition, table_)) {
        tried.condition.emplace(std::move(*condition));
      }
    }
  }

  std::string_view outcome(TriedRule& tried, const lcr::FrameView& frame, rules::Row plain) {
    const bool is_truncate = frame.kind() == lcr::FrameKind::truncate;
    if ((tried.rule->kinds & rules::kind_of(frame.kind())) == 0) return "OTHER OPERATION";
    // A TRUNCATE counts here as TableRules takes it.
    const bool empties_subset = makes_subset_ && is_truncate && tried.rule->kinds == rules::kEveryKind;
    if (empties_subset && !tried.rule->subset && tried.condition) return "OTHER OPERATION";
    if (!tried.condition || empties_subset) return "TRUE";
    switch (tried.condition->evaluate(frame, capture::context_of(transaction_, source_), scratch_, plain).outcome) {
      case rules::Outcome::is_true:
        return "TRUE";
      case rules::Outcome::is_false:
        return "FALSE";
      case rules::Outcome::is_null:
        return "NULL";
      case rules::Outcome::undecidable:
        return "UNDECIDABLE";
      case rules::Outcome::failed:
        break;
    }
    return "FAILED";
  }

  const rules::RuleTable& table_;
  const std::string& source_;
  const RulesTime& time_;
  const bool makes_subset_;
  capture::TransactionFacts transaction_;  // of the change that is judged
  rules::Scratch scratch_;
  capture::RowFilter::Counters counters_;
  capture::RowFilter filter_;
  std::vector<TriedRule> rules_;
};

std::string_view end_of(capture::TapEnd end) {
  switch (end) {
    case capture::TapEnd::limit:
      return "LIMIT";
    case capture::TapEnd::size:
      return "SIZE";
    case capture::TapEnd::time:
    case capture::TapEnd::closed:
      break;
  }
  return "TIME";
}

// Judges a stream's changes as its capture would with these rules: each with the version of the table that it came
// with.
base::Result<void> judge_tapped(pg::Connection& source, const capture::TappedChanges& tapped,
                                const control::RulesTrialRequest& request, const rules::RuleSets& sets,
                                const RulesTime& time, control::RulesTrial& out) {
  const capture::TappedTable* version = nullptr;
  rules::RuleTable table;
  std::optional<Trial> trial;
  for (const capture::TappedChange& change : tapped.changes) {
    if (change.table.get() != version) {
      version = change.table.get();
      table = rules::table_of(version->description);
      THALWEG_TRY(rules::complete(source, version->description.relation, table));
      auto compiled = rules::TableRules::compile(sets, table);
      if (!compiled) return std::unexpected(rules::error_of(compiled.error(), table));
      trial.emplace(sets, table, std::move(*compiled), request.source_name, time);
    }
    THALWEG_ASSIGN(control::JudgedChange judged, shown(source, change));
    THALWEG_TRY(trial->judge(lcr::FrameView::trusted(change.frame.data()), change.transaction, judged));
    out.changes.push_back(std::move(judged));
  }
  out.recent_end = end_of(tapped.end);
  return {};
}

}  // namespace

base::Result<control::RulesTrial> try_rules(pg::Connection& source, const control::RulesTrialRequest& request,
                                            const RulesTime& time, const TakeChanges& tap) {
  control::RulesTrial out;
  control::RulesCheckRequest check;
  check.rules[request.table] = request.rules;
  THALWEG_ASSIGN(out.problems, find_rule_troubles(source, check, time));
  THALWEG_ASSIGN(const auto table, rules::read_table(source, request.table.schema, request.table.table));
  const auto is_refused = [](const control::RuleProblem& problem) {
    return problem.code == base::name_of(base::ErrorCode::rule_refused);
  };
  if (!table || std::ranges::any_of(out.problems, is_refused)) return out;
  const rules::RuleSets sets = rule_sets(request.rules);
  auto compiled = rules::TableRules::compile(sets, *table);
  if (!compiled) return out;
  Trial trial(sets, *table, std::move(*compiled), request.source_name, time);
  for (TriedChange change : request.changes) {
    THALWEG_TRY(check_columns(change.old_row, *table));
    THALWEG_TRY(check_columns(change.new_row, *table));
    THALWEG_TRY(write_documents_anew(source, change.old_row, *table));
    THALWEG_TRY(write_documents_anew(source, change.new_row, *table));
    THALWEG_ASSIGN(control::JudgedChange judged, trial.judge(std::move(change)));
    out.changes.push_back(std::move(judged));
  }
  if (request.recent) {
    THALWEG_ASSIGN(const capture::TappedChanges tapped, tap(*request.recent));
    THALWEG_TRY(judge_tapped(source, tapped, request, sets, time, out));
  }
  THALWEG_ASSIGN(std::vector<TriedChange> sample, read_sample(source, *table, request.sample));
  for (TriedChange& change : sample) {
    THALWEG_ASSIGN(control::JudgedChange judged, trial.judge(std::move(change)));
    judged.origin = control::ChangeOrigin::table;
    out.changes.push_back(std::move(judged));
  }
  return out;
}

}  // namespace thalweg::daemon
