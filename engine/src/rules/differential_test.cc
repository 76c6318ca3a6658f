#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "pg/connection.h"
#include "rules/entry_maker.h"
#include "rules/parser.h"
#include "rules/rare_expressions.h"
#include "rules/rule_samples.h"
#include "rules/sql_text.h"
#include "support/sanitized.h"
#include "support/test_cluster.h"

// Generated conditions over generated rows: PostgreSQL evaluates the same expression over the same rows, and every
// verdict has to be the same, errors with their SQLSTATE included. A round has new rows, one use of every operator,
// function and cast of the catalogue, and random conditions.
//
// THALWEG_RULES_PAIRS and THALWEG_RULES_SEED make more rounds, and others. Under a sanitizer there is one round.

namespace thalweg::rules {
namespace {

constexpr uint64_t kSeed = 20'261'126;
#if THALWEG_SANITIZED
constexpr uint64_t kPairs = 1;
#else
constexpr uint64_t kPairs = 100'000;
#endif
constexpr size_t kRows = 50;
constexpr size_t kConditions = 250;  // of a round
constexpr size_t kBatch = 100;
constexpr int kDepth = 3;
constexpr size_t kShown = 20;  // differences
constexpr size_t kShownBytes = 200;
const ChangeContext kContext{.source = "", .tag = {}, .commit_time = {}};

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// The values of an expression over all rows, as they are sent, in hexadecimal: at once, or row by row where one fails.
constexpr const char* kAnswers = R"(
  CREATE FUNCTION answers(expression text, send text) RETURNS text LANGUAGE plpgsql
  SET plan_cache_mode = force_generic_plan AS $$
  DECLARE
    value text := 'coalesce(encode(' || send || '(' || expression || '), ''hex''), ''null'')';
    answers text[];
    answer text;
    row_of integer;
  BEGIN
    BEGIN
      EXECUTE 'SELECT array_agg(' || value || ' ORDER BY k) FROM t AS new' INTO answers;
      RETURN array_to_string(answers, ',');
    EXCEPTION WHEN others THEN answers := '{}';
    END;
    BEGIN
      EXECUTE 'PREPARE asked(integer) AS SELECT ' || value || ' FROM t AS new WHERE k = $1';
    EXCEPTION WHEN others THEN
      RETURN (SELECT string_agg('!' || SQLSTATE, ',') FROM t);
    END;
    FOR row_of IN SELECT k FROM t ORDER BY k LOOP
      BEGIN
        EXECUTE 'EXECUTE asked(' || row_of || ')' INTO answer;
      EXCEPTION WHEN others THEN answer := '!' || SQLSTATE;
      END;
      answers := answers || answer;
    END LOOP;
    DEALLOCATE asked;
    RETURN array_to_string(answers, ',');
  END $$)";

struct Question {
  std::string text;
  Type type;
};
using Answers = std::vector<std::string>;

Answers split(std::string_view list) {
  Answers parts;
  for (;;) {
    const size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

SampleValue sent(std::string_view hex) {
  if (hex == "null") return SampleValue::null();
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return SampleValue::of(bytes);
}

std::string shown(const Verdict& verdict) {
  switch (verdict.outcome) {
    case Outcome::is_true:
      return "01";
    case Outcome::is_false:
      return "00";
    case Outcome::is_null:
      return "null";
    case Outcome::undecidable:
      return "undecidable";
    case Outcome::failed:
      return "!" + std::string(sqlstate_of(verdict.failure));
  }
  return "?";
}

// Turns a question into the condition that its value equals the server's, which is the row's column `expected`, in all
// that a condition can tell of it.
std::string as_condition(const Question& question) {
  const std::string value = "(" + question.text + ")";
  const auto same = [&](const std::string& before, const std::string& after) {
    return before + "expected" + after + " is not distinct from " + before + value + after;
  };
  switch (question.type) {
    case Type::boolean:
      return question.text;
    case Type::numeric:  // with its scale
      return same("", "") + " and " + same("", "::text");
    case Type::bpchar:  // with its blanks
      return same("", "") + " and " + same("octet_length(", ")");
    case Type::jsonb:  // two of them do not compare here
      return same("", "::text");
    case Type::interval:  // months are not 30 days
      return same("", "") + " and " + same("extract(year from ", ")") + " and " + same("extract(month from ", ")") +
             " and " + same("extract(day from ", ")");
    default:
      return same("", "");
  }
}

// Whether the expression is a use of the entry, and not of another that fits the arguments better.
bool is_use(const Typed& node, const Entry& entry) {
  if (node.type != entry.result) return false;
  if (entry.evaluator.empty()) return true;
  return node.evaluator != nullptr && node.evaluator->name == entry.evaluator &&
         node.arguments.size() >= entry.arguments.size() &&
         std::ranges::equal(entry.arguments, std::span(node.arguments).first(entry.arguments.size()), {}, {},
                            &Typed::type);
}

class DifferentialTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = "rules"});
    ASSERT_TRUE(opened) << opened.error().message;
    connection_.emplace(*std::move(opened));
    std::string columns = "k integer PRIMARY KEY";
    for (const SampleColumn& column : kSampleColumns) {
      columns += ", " + std::string(column.name) + " " + std::string(column.sql_type);
    }
    run("DROP SCHEMA IF EXISTS rules CASCADE; CREATE SCHEMA rules; "
        "CREATE TYPE mood AS ENUM ('low', 'middle', 'high'); CREATE TABLE t (" +
        columns + "); " + kAnswers);
  }

  void run(const std::string& sql) {
    const auto done = connection_->script(sql);
    ASSERT_TRUE(done) << done.error().message;
  }

  void new_rows() {
    std::string rows;
    for (size_t k = 1; k <= kRows; ++k) rows += (k > 1 ? ", (" : "(") + std::to_string(k) + ", " + maker_.row() + ")";
    run("TRUNCATE t; INSERT INTO t VALUES " + rows + "; ANALYZE t");
    std::string binary, text;
    for (const SampleColumn& column : kSampleColumns) {
      const std::string name(column.name);
      binary += (binary.empty() ? "encode(" : ", encode(") + std::string(column.send) + "(" + name + "), 'hex')";
      text += ", format('%s', " + name + ")";
    }
    const auto answer = connection_->query("SELECT " + binary + text + " FROM t ORDER BY k");
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_EQ(answer->size(), kRows);
    rows_.clear();
    for (size_t row = 0; row < kRows; ++row) {
      SampleRow values;
      for (size_t column = 0; column < kSampleColumns.size(); ++column) {
        const bool as_text = row % 4 == 3;  // as a stream sends them that has a type without a binary form
        if (answer->is_null(row, column)) {
          values.push_back(SampleValue::null());
        } else if (as_text) {
          const auto shown_value = answer->text(row, kSampleColumns.size() + column);
          values.push_back({.mark = lcr::ValueMark::text, .bytes = std::string(shown_value)});
        } else {
          values.push_back(sent(answer->text(row, column)));
        }
      }
      rows_.push_back(std::move(values));
    }
  }

  // The server's answers to each question.
  std::vector<Answers> ask(std::span<const Question> questions) {
    std::string list;
    for (size_t i = 0; i < questions.size(); ++i) {
      list += (i == 0 ? "(" : ", (") + std::to_string(i) + ", " + connection_->quote_literal(questions[i].text) +
              ", '" + std::string(sample_column(questions[i].type).send) + "')";
    }
    const auto rows = connection_->query("SELECT answers(c, s) FROM (VALUES " + list + ") AS u(o, c, s) ORDER BY o");
    EXPECT_TRUE(rows) << rows.error().message;
    std::vector<Answers> answers;
    for (size_t row = 0; rows && row < rows->size(); ++row) answers.push_back(split(rows->text(row, 0)));
    return answers;
  }

  RuleTable table_for(Type type) const {
    RuleTable table = sample_columns_table();
    table.columns.push_back({.name = "expected", .type = {static_cast<uint32_t>(type)}, .enum_labels = {}});
    return table;
  }

  // A use of the entry that compiles. Few do not: arguments of other types, what is constant and fails.
  void add_use(const Entry& entry) {
    const RuleTable table = table_for(entry.result);
    for (int tries = 0; tries < 200; ++tries) {
      Question question{.text = entries_.use(entry), .type = entry.result};
      const auto parsed = parse("(" + question.text + ") is null");
      ASSERT_TRUE(parsed) << question.text << ": " << parsed.error().message;
      Strings strings;
      const auto typed = type_condition(*parsed, table, strings);
      if (!typed || !is_use(typed->arguments[0], entry) || !Condition::compile(as_condition(question), table)) continue;
      questions_.push_back(std::move(question));
      return;
    }
    ADD_FAILURE() << "no use of " << entry.shown();
  }

  void add_conditions() {
    for (size_t i = 0; i < kConditions; ++i) questions_.push_back({maker_.condition(kDepth), Type::boolean});
  }

  // A question that is refused because it always fails must fail at the server with the same error. A question that is
  // refused for another reason and computed by the server is counted.
  void compare_refusal(const Question& question, const RuleError& error, const Answers& answers) {
    const std::set<std::string> states(answers.begin(), answers.end());
    const std::string state = states.begin()->starts_with('!') ? states.begin()->substr(1) : "none";
    if (error.message.starts_with("this fails for every row")) {
      EXPECT_TRUE(states.size() == 1 && error.message.contains(state))
          << question.text << ": " << error.message << "; the server: " << *states.begin();
    } else if (!state.starts_with("42")) {
      ++refusals_[error.message];
    }
    ++refused_;
  }

  void compare(const Question& question, const Answers& answers) {
    ASSERT_EQ(answers.size(), kRows) << question.text;
    auto condition = Condition::compile(as_condition(question), table_for(question.type));
    if (!condition) return compare_refusal(question, condition.error(), answers);
    for (size_t row = 0; row < kRows; ++row) {
      const bool fails = answers[row].starts_with('!');
      const bool direct = fails || question.type == Type::boolean;
      SampleRow values = rows_[row];
      values.push_back(direct ? SampleValue::null() : sent(answers[row]));
      const SampleFrame frame = SampleFrame::insert(values);
      const std::string ours = shown(condition->evaluate(frame.view(), kContext, scratch_));
      ++outcomes_[direct ? ours : "equal values"];
      ++pairs_;
      if (ours == (direct ? answers[row] : "01")) continue;
      if (++differences_ > kShown) continue;
      const auto shown_row = connection_->query("SELECT t::text FROM t WHERE k = " + std::to_string(row + 1));
      ADD_FAILURE() << question.text << "\nrow " << (shown_row ? shown_row->text(0, 0) : "?") << ": " << ours
                    << ", the server: " << answers[row].substr(0, kShownBytes);
    }
  }

  void compare_literal(const Question& question, const std::string& answer) {
    auto condition = Condition::compile(
        question.type == Type::boolean ? "expected is not distinct from " + question.text : as_condition(question),
        table_for(question.type));
    if (!condition) {
      const std::string& message = condition.error().message;
      if (message.starts_with("this fails for every row")) {
        EXPECT_TRUE(answer.starts_with('!') && message.contains(answer.substr(1)))
            << question.text << ": " << message << ", the server: " << answer;
        return;
      }
      const bool elsewhere = message.contains("settings");
      EXPECT_TRUE(elsewhere || answer.starts_with('!')) << question.text << ": " << condition.error().message;
      return;
    }
    SampleRow values(kSampleColumns.size());
    values.push_back(answer.starts_with('!') ? SampleValue::null() : sent(answer));
    const SampleFrame frame = SampleFrame::insert(values);
    EXPECT_EQ(shown(condition->evaluate(frame.view(), kContext, scratch_)), "01")
        << question.text << ", the server: " << answer;
  }

  void round() {
    new_rows();
    questions_.clear();
    for (const Entry& entry : usable_entries()) add_use(entry);
    add_conditions();
    for (size_t at = 0; at < questions_.size() && !HasFatalFailure(); at += kBatch) {
      const auto batch = std::span(questions_).subspan(at, std::min(kBatch, questions_.size() - at));
      const auto answers = ask(batch);
      ASSERT_EQ(answers.size(), batch.size());
      for (size_t i = 0; i < batch.size(); ++i) compare(batch[i], answers[i]);
    }
  }

  ConditionMaker maker_{from_environment("THALWEG_RULES_SEED", kSeed)};
  EntryMaker entries_{maker_};
  std::optional<pg::Connection> connection_;
  Scratch scratch_;
  std::vector<SampleRow> rows_;
  std::vector<Question> questions_;
  uint64_t pairs_ = 0;
  uint64_t refused_ = 0;
  size_t differences_ = 0;
  std::map<std::string, uint64_t> outcomes_;
  std::map<std::string, uint64_t> refusals_;
};

TEST_F(DifferentialTest, JudgesAsPostgresOnAHundredThousandPairs) {
  if (connection_->server_version() / 10'000 != 15) GTEST_SKIP() << "the catalogue is PostgreSQL 15's";
  const uint64_t wanted = from_environment("THALWEG_RULES_PAIRS", kPairs);
  while (pairs_ < wanted && !HasFatalFailure() && differences_ == 0) round();
  EXPECT_EQ(differences_, 0U);
  for (const auto& [message, count] : refusals_) std::printf("refused %lu times: %s\n", count, message.c_str());
  for (const auto& [outcome, count] : outcomes_) std::printf("%s: %lu\n", outcome.c_str(), count);
  // A comparison of nothing but NULLs, or of errors only, would show little.
  EXPECT_GT(outcomes_["01"], pairs_ / 10);
  EXPECT_GT(outcomes_["00"], pairs_ / 10);
  EXPECT_GT(outcomes_["equal values"], pairs_ / 10);
  EXPECT_GT(outcomes_["!22003"] + outcomes_["!22012"] + outcomes_["!22P02"], pairs_ / 100);
  EXPECT_LT(refused_ * kRows, pairs_ / 10);
}

// The SQL that is written for the source means what the text means: values, and errors with their SQLSTATE.
TEST_F(DifferentialTest, WritesConditionsThatMeanTheSame) {
  new_rows();
  std::vector<Question> texts, written;
  const RuleTable table = sample_columns_table();
  while (texts.size() < kConditions) {
    const std::string text = maker_.condition(kDepth);
    if (!Condition::compile(text, table)) continue;
    texts.push_back({text, Type::boolean});
    written.push_back({to_sql(*parse(text), {.schema = "rules", .table = "t", .source = "here"}), Type::boolean});
  }
  const auto meant = ask(texts);
  const auto found = ask(written);
  ASSERT_EQ(meant.size(), texts.size());
  ASSERT_EQ(found.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(found[i], meant[i]) << texts[i].text << "\n" << written[i].text;
}

// Each literal reads as at the server, for each type: the same value, or an error at both, or refused because it might
// be another value elsewhere.
TEST_F(DifferentialTest, ReadsLiteralsAsPostgres) {
  if (connection_->server_version() / 10'000 != 15) GTEST_SKIP() << "the catalogue is PostgreSQL 15's";
  constexpr std::array kLiterals{"",
                                 " ",
                                 "1",
                                 "0",
                                 "-1",
                                 "+1",
                                 " 12 ",
                                 "1 2",
                                 "--1",
                                 "32768",
                                 "-32768",
                                 "2147483648",
                                 "-2147483648",
                                 "9223372036854775808",
                                 "-9223372036854775808",
                                 "99999999999999999999x",
                                 "1.",
                                 ".5",
                                 ".",
                                 "1.5",
                                 "1e3",
                                 "1e 3",
                                 "1e",
                                 "1e+",
                                 "1e-400",
                                 "1e400",
                                 "1e131072",
                                 "1e131071",
                                 "1e-16384",
                                 "1_000",
                                 "0x1A",
                                 "nan",
                                 "NaN",
                                 "-nan",
                                 "inf",
                                 "-Infinity",
                                 "+infinity",
                                 "infinit",
                                 "t",
                                 "TRUE",
                                 "fal",
                                 "o",
                                 "on",
                                 "of",
                                 "yes",
                                 "nope",
                                 "\\x",
                                 "\\x0g",
                                 "\\x0",
                                 "\\xDEADbeef",
                                 "abc",
                                 "größe",
                                 "a0eebc999c0b4ef8bb6d6bb9bd380a11",
                                 "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
                                 "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
                                 "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
                                 "2026-01-31",
                                 "2026-02-29",
                                 "2024-02-29",
                                 "2026-13-01",
                                 "2026-1-31",
                                 "10000-01-01",
                                 "5874897-12-31",
                                 "5874898-01-01",
                                 "0044-03-15 BC",
                                 "4714-11-24 BC",
                                 "4714-11-23 BC",
                                 "0000-01-01",
                                 "0001-01-01",
                                 "294276-12-31 23:59:59.999999",
                                 "294277-01-01",
                                 "2026-01-31 13:45",
                                 "2026-01-31T13:45:10.5",
                                 "2026-01-31 24:00:00",
                                 "2026-01-31 25:00",
                                 "2026-01-31 13:60",
                                 "2026-01-31 13:45:10.123456",
                                 "2026-01-31 13:45:10.1234567",
                                 "2026-01-31 13:45Z",
                                 "2026-01-31 13:45+02",
                                 "2026-01-31 13:45:00 -05:30",
                                 "2026-01-31 13:45+02:00:30",
                                 "2026-01-31 13:45+16",
                                 "2026-01-31 10:00:00+00 BC",
                                 "13:45",
                                 "13:45:10.5",
                                 "24:00:00",
                                 "24:00:01",
                                 "1:30",
                                 "13:45:60",
                                 "100:00:00",
                                 "-03:04:05.000006",
                                 "999999999:00",
                                 "1 day",
                                 "1day",
                                 "1 day 2 hours",
                                 "1day 2hours",
                                 "1day2hours",
                                 "1 day2 hours",
                                 "1 year -2 days +03:04",
                                 "-1 year 2 days",
                                 "-1 years +2 days",
                                 "1 mon",
                                 "2 mons",
                                 "2 months 1 mon",
                                 "1 week 1 day",
                                 "1 day 1 day",
                                 "1 hour 02:00",
                                 "1 second 500 milliseconds 7 microseconds",
                                 "1.5 hours",
                                 "9999 years",
                                 "+1 day",
                                 "1 day -02:00",
                                 "- 1 day",
                                 "1",
                                 "day",
                                 "1 fortnight",
                                 "epoch",
                                 "now",
                                 "today",
                                 "low",
                                 "lower"};
  run("INSERT INTO t (k) VALUES (1)");
  for (const SampleColumn& column : kSampleColumns) {
    if (column.type == Type::any_enum || column.type == Type::jsonb || &column != &sample_column(column.type)) continue;
    std::vector<Question> questions;
    for (const char* literal : kLiterals) {
      questions.push_back({std::string(name_of(column.type)) + " '" + literal + "'", column.type});
    }
    const auto answers = ask(questions);
    ASSERT_EQ(answers.size(), questions.size());
    for (size_t i = 0; i < questions.size(); ++i) compare_literal(questions[i], answers[i].front());
  }
}

// Ends of ranges, and what generated conditions seldom hold.
TEST_F(DifferentialTest, ComputesRareExpressionsAsPostgres) {
  if (connection_->server_version() / 10'000 != 15) GTEST_SKIP() << "the catalogue is PostgreSQL 15's";
  run("INSERT INTO t (k) VALUES (1)");
  std::vector<Question> questions;
  for (const auto& [text, type] : kRareExpressions) questions.push_back({text, type});
  const auto answers = ask(questions);
  ASSERT_EQ(answers.size(), questions.size());
  for (size_t i = 0; i < questions.size(); ++i) compare_literal(questions[i], answers[i].front());
}

TEST_F(DifferentialTest, EveryTypeHasAColumn) {
  for (uint32_t oid = 1; oid < 10'000; ++oid) {
    const auto type = static_cast<Type>(oid);
    const bool has_column = std::ranges::find(kSampleColumns, type, &SampleColumn::type) != kSampleColumns.end();
    EXPECT_EQ(has_column, is_supported(type)) << oid;
  }
}

}  // namespace
}  // namespace thalweg::rules
