#include "rules/rule_errors.h"

#include <utility>

#include <fmt/format.h>

#include "pg/connection.h"

namespace thalweg::rules {

namespace {

constexpr std::string_view kPolicy = "With on_error, the rule can count as true or as not true for such changes";

base::Error error_about(base::ErrorCode code, const RuleTable& table, std::string message) {
  base::Error error = base::fail(code, std::move(message)).error();
  error.table = pg::quote_table(table.schema, table.name);
  return error;
}

std::string rule_of(const std::string& name, Scope scope, const RuleTable& table) {
  switch (scope) {
    case Scope::table:
      return fmt::format("The rule \"{}\" of {}", name, pg::quote_table(table.schema, table.name));
    case Scope::schema:
      return fmt::format("The rule \"{}\" of the schema {}", name, pg::quote_identifier(table.schema));
    case Scope::global:
      return fmt::format("The global rule \"{}\"", name);
  }
  return {};
}

// The table, where the name of a rule of a wider scope does not tell it: " of orders".
std::string about(std::string_view preposition, Scope scope, const RuleTable& table) {
  if (scope == Scope::table) return {};
  return fmt::format(" {} {}", preposition, pg::quote_table(table.schema, table.name));
}

// PostgreSQL writes whole old rows with FULL alone, and a partition's own identity decides for its rows.
std::string cure_for(const RuleTable& table) {
  const std::string name = pg::quote_table(table.schema, table.name);
  if (table.is_partitioned) {
    return fmt::format(
        "{} is partitioned: rules can read old values of its key's columns only, and of none with "
        "REPLICA IDENTITY FULL",
        name);
  }
  return fmt::format("ALTER TABLE {} REPLICA IDENTITY FULL makes later changes bring the whole old row", name);
}

}  // namespace

base::Error error_of(const RuleRefusal& refusal, const RuleTable& table) {
  return error_about(
      base::ErrorCode::rule_refused, table,
      fmt::format("{} is refused{} at line {}, column {}: {}.", rule_of(refusal.rule, refusal.scope, table),
                  about("for", refusal.scope, table), refusal.error.line, refusal.error.column, refusal.error.message));
}

base::Error error_of(const Judgement& judgement, const RuleTable& table, lcr::FrameKind change, bool is_known) {
  const Scope scope = judgement.rule == nullptr ? Scope::table : judgement.rule->scope;
  const std::string rule = rule_of(judgement.rule == nullptr ? "" : judgement.rule->name, scope, table);
  const std::string change_of_table = std::string(operation_of(change)) + about("of", scope, table);
  const bool reads_open = judgement.decision == Decision::undecidable && !is_known && judgement.rule != nullptr &&
                          reads_transaction({.negative = std::vector{*judgement.rule}, .positive = {}});
  if (reads_open) {
    return error_about(
        base::ErrorCode::rule_undecidable, table,
        fmt::format("{} reads the tag or the commit time, which are not known for this {}: it came before its "
                    "transaction's end, it was captured before any rule asked, or its replication origin is gone at "
                    "the source. Until it is applied, use a rule that reads neither; with log mining, raise "
                    "capture_memory_mb, so that large transactions come whole.",
                    rule, change_of_table));
  }
  if (judgement.decision == Decision::undecidable) {
    return error_about(base::ErrorCode::rule_undecidable, table,
                       fmt::format("{} needs a value that this {} did not bring. {}. {}.", rule, change_of_table,
                                   cure_for(table), kPolicy));
  }
  base::Error error = error_about(
      base::ErrorCode::rule_failed, table,
      fmt::format("{} failed on this {}: {}. {}.", rule, change_of_table, message_of(judgement.failure), kPolicy));
  error.sqlstate = sqlstate_of(judgement.failure);
  return error;
}

base::Error perhaps_undecidable(const Rule& rule, const RuleTable& table) {
  return error_about(
      base::ErrorCode::rule_undecidable, table,
      fmt::format("{} needs a value that an UPDATE{} does not bring if it is long and stays as it was: "
                  "PostgreSQL stores it apart. {}. {}.",
                  rule_of(rule.name, rule.scope, table), about("of", rule.scope, table), cure_for(table), kPolicy));
}

base::Error undecidable(const RuleTable& table, lcr::FrameKind change, Move move, std::string_view lacking) {
  return error_about(base::ErrorCode::rule_undecidable, table,
                     fmt::format("This {} of {} moves a row {} the subset of the rules and did not bring {}. {}.",
                                 operation_of(change), pg::quote_table(table.schema, table.name),
                                 move == Move::into ? "into" : "out of", lacking, cure_for(table)));
}

}  // namespace thalweg::rules
