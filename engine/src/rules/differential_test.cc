#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "pg/connection.h"
#include "rules/condition_samples.h"
#include "rules/rule_samples.h"
#include "support/test_cluster.h"

// Generated conditions over generated rows: PostgreSQL evaluates the same expression over the same rows, and every
// verdict has to be the same, errors with their SQLSTATE included.

namespace thalweg::rules {
namespace {

constexpr uint64_t kSeed = 20'261'126;
constexpr int kRows = 200;
constexpr int kConditions = 500;  // that both can evaluate: 100 000 pairs
constexpr int kBatch = 100;
constexpr int kDepth = 3;

// The server's verdicts over all rows: at once, or row by row where one fails.
constexpr const char* kVerdicts = R"(
  CREATE FUNCTION verdicts(condition text, rows integer) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    verdicts text[];
    verdict text;
  BEGIN
    BEGIN
      EXECUTE 'SELECT array_agg(coalesce(verdict::text, ''null'') ORDER BY k)
               FROM (SELECT k, (' || condition || ') AS verdict FROM t AS new) AS judged' INTO verdicts;
      RETURN array_to_string(verdicts, ',');
    EXCEPTION WHEN others THEN verdicts := '{}';
    END;
    FOR k IN 1..rows LOOP
      BEGIN
        EXECUTE 'SELECT coalesce((' || condition || ')::text, ''null'') FROM t AS new WHERE k = $1' USING k INTO verdict;
      EXCEPTION WHEN others THEN verdict := SQLSTATE;
      END;
      verdicts := verdicts || verdict;
    END LOOP;
    RETURN array_to_string(verdicts, ',');
  END $$)";

std::string shown(const Verdict& verdict) {
  switch (verdict.outcome) {
    case Outcome::is_true:
      return "true";
    case Outcome::is_false:
      return "false";
    case Outcome::is_null:
      return "null";
    case Outcome::undecidable:
      return "undecidable";
    case Outcome::failed:
      return std::string(sqlstate_of(verdict.failure));
  }
  return "?";
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  for (size_t comma = 0; comma != std::string_view::npos; list.remove_prefix(std::min(comma + 1, list.size()))) {
    comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
  }
  return parts;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

class DifferentialTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = "rules, pg_catalog"});
    ASSERT_TRUE(opened) << opened.error().message;
    connection_.emplace(*std::move(opened));
    std::string columns = "k integer PRIMARY KEY";
    for (const SampleColumn& column : kSampleColumns) {
      columns += ", " + std::string(column.name) + " " + std::string(column.sql_type);
      table_.columns.push_back(
          {.name = std::string(column.name), .type = {static_cast<uint32_t>(column.type)}, .enum_labels = {}});
    }
    std::string rows;
    for (int k = 1; k <= kRows; ++k) {
      rows += (k > 1 ? ", (" : "(") + std::to_string(k) + ", " + maker_.row() + ")";
    }
    run("DROP SCHEMA IF EXISTS rules CASCADE; CREATE SCHEMA rules; CREATE TABLE t (" + columns + "); " +
        "INSERT INTO t VALUES " + rows + "; " + kVerdicts);
    read_rows();
  }

  void run(const std::string& sql) {
    const auto done = connection_->script(sql);
    ASSERT_TRUE(done) << done.error().message;
  }

  void read_rows() {
    std::string sent;
    for (const SampleColumn& column : kSampleColumns) {
      sent += (sent.empty() ? "encode(" : ", encode(") + std::string(column.send) + "(" + std::string(column.name) +
              "), 'hex')";
    }
    const auto rows = connection_->query("SELECT " + sent + " FROM t ORDER BY k");
    ASSERT_TRUE(rows) << rows.error().message;
    for (size_t row = 0; row < rows->size(); ++row) {
      SampleRow values;
      for (size_t column = 0; column < kSampleColumns.size(); ++column) {
        values.push_back(rows->is_null(row, column) ? SampleValue::null()
                                                    : SampleValue::of(from_hex(rows->text(row, column))));
      }
      frames_.push_back(SampleFrame::insert(values));
    }
    ASSERT_EQ(frames_.size(), size_t{kRows});
  }

  // The server's answer to each condition.
  std::vector<std::vector<std::string>> ask(const std::vector<std::string>& conditions) {
    std::string list;
    for (const std::string& condition : conditions)
      list += (list.empty() ? "" : ", ") + connection_->quote_literal(condition);
    const auto rows = connection_->query("SELECT verdicts(c, " + std::to_string(kRows) + ") FROM unnest(ARRAY[" + list +
                                         "]) WITH ORDINALITY AS u(c, o) ORDER BY o");
    EXPECT_TRUE(rows) << rows.error().message;
    std::vector<std::vector<std::string>> answers;
    for (size_t row = 0; rows && row < rows->size(); ++row) answers.push_back(split(rows->text(row, 0)));
    return answers;
  }

  ConditionMaker maker_{kSeed};
  std::optional<pg::Connection> connection_;
  RuleTable table_{.schema = "rules", .name = "t", .columns = {}};
  std::vector<SampleFrame> frames_;
};

TEST_F(DifferentialTest, JudgesAsPostgresOnAHundredThousandPairs) {
  Scratch scratch;
  int evaluated = 0;
  int refused = 0;
  int differences = 0;
  std::map<std::string, int> outcomes;
  std::map<std::string, int> refusals;
  while (evaluated < kConditions && !HasFatalFailure()) {
    std::vector<std::string> texts;
    std::vector<Ruled<Condition>> compiled;
    for (int i = 0; i < kBatch; ++i) {
      texts.push_back(maker_.condition(kDepth));
      compiled.push_back(Condition::compile(texts.back(), table_));
    }
    const auto answers = ask(texts);
    ASSERT_EQ(answers.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(answers[i].size(), size_t{kRows}) << texts[i];
      if (!compiled[i]) {
        const std::string& message = compiled[i].error().message;
        const std::set<std::string> states(answers[i].begin(), answers[i].end());
        if (message.starts_with("this fails for every row")) {
          // What we refuse because it always fails does so at the server, too, with that error.
          EXPECT_TRUE(states.size() == 1 && message.contains(*states.begin()))
              << texts[i] << ": " << message << "; the server: " << *states.begin();
        } else if (!states.contains("42601") && !states.contains("42883") && !states.contains("42725") &&
                   !states.contains("42804") && !states.contains("42846")) {
          ++refusals[message];
        }
        ++refused;
        continue;
      }
      ++evaluated;
      for (size_t row = 0; row < frames_.size(); ++row) {
        const std::string ours =
            shown(compiled[i]->evaluate(frames_[row].view(), {.source = "", .tag = {}, .commit_time = {}}, scratch));
        ++outcomes[ours];
        if (ours == answers[i][row]) continue;
        if (++differences <= 20)
          ADD_FAILURE() << texts[i] << "\nrow " << row + 1 << ": " << ours << ", the server: " << answers[i][row];
      }
    }
  }
  EXPECT_EQ(differences, 0);
  for (const auto& [message, count] : refusals) std::printf("refused %d times: %s\n", count, message.c_str());
  for (const auto& [outcome, count] : outcomes) std::printf("%s: %d\n", outcome.c_str(), count);
  // A comparison of nothing but NULLs, or of errors only, would show little.
  EXPECT_GT(outcomes["true"], kRows * kConditions / 10);
  EXPECT_GT(outcomes["false"], kRows * kConditions / 10);
  EXPECT_GT(outcomes["22003"] + outcomes["22012"] + outcomes["22P02"], kRows);
  EXPECT_LT(refused, evaluated / 2);
}

}  // namespace
}  // namespace thalweg::rules
