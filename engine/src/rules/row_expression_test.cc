#include "rules/row_expression.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <optional>

#include "pg/connection.h"
#include "rules/condition_maker.h"
#include "rules/encode.h"
#include "rules/rule_samples.h"
#include "rules/sql_text.h"
#include "support/sanitized.h"
#include "support/test_cluster.h"

namespace thalweg::rules {
namespace {

struct Target {
  std::string_view type;
  std::string_view send;
};
// Types that a column can get.
constexpr std::array kTargets{Target{"int2", "int2send"},
                              Target{"int4", "int4send"},
                              Target{"int8", "int8send"},
                              Target{"bool", "boolsend"},
                              Target{"float8", "float8send"},
                              Target{"numeric", "numeric_send"},
                              Target{"text", "textsend"},
                              Target{"varchar", "varcharsend"},
                              Target{"uuid", "uuid_send"},
                              Target{"date", "date_send"},
                              Target{"timestamp", "timestamp_send"},
                              Target{"timestamptz", "timestamptz_send"}};

constexpr std::array kExpressions{"i + j",
                                  "i / nullif(j, 0)",
                                  "i % j",
                                  "m * n",
                                  "m / n",
                                  "round(m, 2)",
                                  "f + g",
                                  "x || v",
                                  "x || ' ' || i::text",
                                  "upper(x collate \"C\")",
                                  "length(x) + octet_length(v)",
                                  "substr(x, 2, s)",
                                  "split_part(v, 'b', 1)",
                                  "coalesce(x, v, 'none')",
                                  "case when i > 0 then 'plus' when i < 0 then 'minus' end",
                                  "b and i > j",
                                  "x like 'a%' or b",
                                  "c || '|'",
                                  "d + 1",
                                  "d - date '2026-01-31'",
                                  "extract(year from p)",
                                  "p + w",
                                  "date_trunc('month', p)",
                                  "z",
                                  "u",
                                  "i between j and 7",
                                  "x is distinct from v",
                                  "greatest(i, l, 7)",
                                  "least(x collate \"C\", v)",
                                  "i & 255 | s",
                                  "q->'a'",
                                  "q->>'a'",
                                  "(q->>0)::numeric",
                                  "jsonb_array_length(q)",
                                  "md5(x)",
                                  "encode(sha256(y), 'hex')",
                                  "overlay(x placing v from 2)",
                                  "gcd(m, n)",
                                  "make_date(2026, s, 1)",
                                  "make_timestamp(2026, 1, 31, s, 0, 1.5)",
                                  "date_bin('1 hour', p, timestamp '2026-01-31')",
                                  "date_part('epoch', p)",
                                  "nullif(x, v)",
                                  "x::int",
                                  "'7'",
                                  "null",
                                  "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
                                  "schema || '.' || table",
                                  "source",
                                  "1 / 0"};
constexpr size_t kRows = THALWEG_SANITIZED ? 10 : 40;
constexpr std::string_view kSource = "here";

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// The scale of an infinite numeric means nothing: PostgreSQL's own constants have other ones than its input.
std::string without_scale_of_infinity(std::string numeric) {
  constexpr size_t kSign = 8, kScale = 12, kHeader = 16;
  const std::string sign = numeric.size() == kHeader ? numeric.substr(kSign, 4) : "";
  if (sign == "d000" || sign == "f000") numeric.replace(kScale, 4, "0000");
  return numeric;
}

std::string refusal(std::string_view text, std::string_view type = "text") {
  const auto parsed = parse_row_expression(text);
  if (!parsed) return std::to_string(parsed.error().column) + ": " + parsed.error().message;
  const auto compiled = RowExpression::compile(as_type(*parsed, type), sample_rule_table(), kSource);
  return compiled ? "" : std::to_string(compiled.error().offset + 1) + ": " + compiled.error().message;
}

// A table with a column of every type at a server, and expressions over its rows, which the server computes, too.
class ServedExpressionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = "expressions"});
    ASSERT_TRUE(opened) << opened.error().message;
    source_.emplace(*std::move(opened));
    if (source_->server_version() / 10'000 != 15) GTEST_SKIP() << "the catalogue is PostgreSQL 15's";
    std::string columns = "k integer PRIMARY KEY", rows, sent;
    for (const SampleColumn& column : kSampleColumns) {
      columns += ", " + std::string(column.name) + " " + std::string(column.sql_type);
      sent += (sent.empty() ? "encode(" : ", encode(") + std::string(column.send) + "(" + std::string(column.name) +
              "), 'hex')";
    }
    ConditionMaker maker(20'261'128);
    for (size_t k = 1; k <= kRows; ++k) rows += (k > 1 ? ", (" : "(") + std::to_string(k) + ", " + maker.row() + ")";
    const auto made = source_->script(
        "DROP SCHEMA IF EXISTS expressions CASCADE; CREATE SCHEMA expressions; "
        "CREATE TYPE mood AS ENUM ('low', 'middle', 'high'); CREATE TABLE t (" +
        columns + "); INSERT INTO t VALUES " + rows);
    ASSERT_TRUE(made) << made.error().message;
    const auto read = source_->query("SELECT " + sent + " FROM t ORDER BY k");
    ASSERT_TRUE(read) << read.error().message;
    for (size_t row = 0; row < kRows; ++row) {
      SampleRow& values = rows_.emplace_back();
      for (size_t column = 0; column < kSampleColumns.size(); ++column) {
        values.push_back(read->is_null(row, column) ? SampleValue::null()
                                                    : SampleValue::of(bytes_of(read->text(row, column))));
      }
    }
  }

  std::string ours(RowExpression& expression, const SampleRow& row) {
    std::vector<lcr::Value> values;
    for (const SampleValue& value : row) {
      values.push_back({.mark = value.mark, .bytes = std::as_bytes(std::span(value.bytes))});
    }
    Datum value;
    if (const Failure failure = expression.evaluate(values, scratch_, value); failure != Failure::none) {
      return "!" + std::string(sqlstate_of(failure));
    }
    if (value.state != State::value) return value.state == State::null ? "null" : "undecidable";
    std::string sent;
    encode(expression.type(), value, sent);
    return hex_of(sent);
  }

  // As the copy has it computed. At once, or row by row where a row fails.
  std::vector<std::string> the_servers(const std::string& sql, std::string_view send) {
    const std::string value = "coalesce(encode(pg_catalog." + std::string(send) + "(" + sql + "), 'hex'), 'null')";
    std::vector<std::string> answers;
    const auto all = source_->query("SELECT " + value + " FROM t ORDER BY k");
    for (size_t row = 0; row < kRows; ++row) {
      if (all) {
        answers.emplace_back(all->text(row, 0));
        continue;
      }
      const auto one = source_->query("SELECT " + value + " FROM t WHERE k = " + std::to_string(row + 1));
      answers.push_back(one ? std::string(one->text(0, 0)) : "!" + one.error().sqlstate);
    }
    return answers;
  }

  // False: it is refused where it is typed.
  bool compare(const Expression& tree, const Target& target, const std::string& shown) {
    const Expression whole = as_type(tree, target.type);
    auto compiled = RowExpression::compile(whole, sample_columns_table(), kSource);
    if (!compiled) {
      return false;
    }
    const auto answers = the_servers(to_sql(whole, {.schema = "rules", .table = "t", .source = kSource}), target.send);
    for (size_t row = 0; row < kRows; ++row) {
      const bool is_numeric = target.type == "numeric";
      const std::string own = ours(*compiled, rows_[row]);
      ++(own == "null" ? nulls_ : own.starts_with('!') ? failures_ : values_);
      const std::string wanted = is_numeric ? without_scale_of_infinity(answers[row]) : answers[row];
      EXPECT_EQ(is_numeric ? without_scale_of_infinity(own) : own, wanted)
          << shown << " as " << target.type << ", row " << row + 1;
    }
    return true;
  }

  std::optional<pg::Connection> source_;
  Scratch scratch_;
  std::vector<SampleRow> rows_;
  size_t values_ = 0, nulls_ = 0, failures_ = 0;
};

TEST_F(ServedExpressionTest, EveryCastGivesThePostgresValueOrIsRefused) {
  size_t casts = 0;
  for (const SampleColumn& column : kSampleColumns) {
    for (const Target& target : kTargets) {
      const std::string name(column.name);
      if (compare(column_expression(name), target, name)) ++casts;
    }
  }
  std::printf("%zu casts: %zu values, %zu NULLs, %zu failures\n", casts, values_, nulls_, failures_);
  EXPECT_GT(casts, 80U);
  EXPECT_GT(values_, 20 * kRows);
  EXPECT_GT(failures_, kRows);
}

TEST_F(ServedExpressionTest, ExpressionsGiveThePostgresValue) {
  size_t compared = 0;
  for (const char* const text : kExpressions) {
    const auto tree = parse_row_expression(text);
    ASSERT_TRUE(tree) << text << ": " << tree.error().message;
    for (const Target& target : kTargets) {
      if (compare(*tree, target, text)) ++compared;
    }
  }
  std::printf("%zu expressions: %zu values, %zu NULLs, %zu failures\n", compared, values_, nulls_, failures_);
  EXPECT_GT(compared, 100U);
  EXPECT_GT(values_, 40 * kRows);
  EXPECT_GT(failures_, kRows);
}

TEST(RowExpressionTest, RefusesWhatACopiedRowDoesNotHave) {
  EXPECT_EQ(refusal("label || id::text"), "");
  EXPECT_TRUE(refusal("old.n + 1", "int4").starts_with("1: an expression reads the row's columns without old"));
  EXPECT_TRUE(refusal("n + new.n", "int4").starts_with("5: "));
  for (const std::string attribute : {"tag", "operation", "commit_time"}) {
    EXPECT_EQ(refusal("coalesce(label, " + attribute + ")"),
              "17: an expression cannot read " + attribute + ": a row that is copied has none");
  }
  EXPECT_TRUE(refusal("1 +", "int4").starts_with("4: "));
  EXPECT_NE(refusal("1 / 0", "int4"), "") << "it fails for every row";
  EXPECT_NE(refusal("lower(label)").find("COLLATE \"C\""), std::string::npos);
  EXPECT_NE(refusal("missing").find("has no column \"missing\""), std::string::npos);
  EXPECT_NE(refusal("n", "uuid").find("cannot cast int4 to uuid"), std::string::npos);
  EXPECT_NE(refusal("n", "bytea"), "");
}

TEST(RowExpressionTest, RefusesEnums) {
  const auto refused =
      RowExpression::compile(as_type(*parse_row_expression("i = 1 and e = 'low'"), "bool"), sample_columns_table(), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().offset, 10U);
  EXPECT_NE(refused.error().message.find("\"e\" is of an enum type"), std::string::npos);
}

TEST(RowExpressionTest, SaysWhatItReads) {
  auto tree = parse_row_expression("n + id * n");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(columns_read(*tree), (std::vector<std::string>{"n", "id"}));
  rename_columns(*tree, [](const std::string& name) { return name == "n" ? "label" : name; });
  EXPECT_EQ(columns_read(*tree), (std::vector<std::string>{"label", "id"}));
}

TEST(RowExpressionTest, IsUndecidableWhereAValueThatDidNotComeDecides) {
  auto compiled = RowExpression::compile(
      as_type(*parse_row_expression("case n when 1 then 'one' else label end"), "text"), sample_rule_table(), kSource);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const std::string one("\0\0\0\1", 4), two("\0\0\0\2", 4);
  const auto state = [&](const std::string& n) {
    const lcr::Value number{.mark = lcr::ValueMark::binary, .bytes = std::as_bytes(std::span(n))};
    const std::array row{number, number, lcr::Value{.mark = lcr::ValueMark::unchanged, .bytes = {}}};
    Scratch scratch;
    Datum value;
    EXPECT_EQ(compiled->evaluate(row, scratch, value), Failure::none);
    return value.state;
  };
  EXPECT_EQ(state(one), State::value);
  EXPECT_EQ(state(two), State::undecidable);
}

}  // namespace
}  // namespace thalweg::rules
