#include <gtest/gtest.h>

#include "lcr/frame_samples.h"
#include "transform/row_transformation.h"

// Columns that are added with an expression, or cast.

namespace thalweg::transform {
namespace {

using lcr::make_tuple_bytes;

constexpr base::TypeId kInteger{23};
constexpr base::TypeId kText{25};
const std::string kOne("\0\0\0\1", 4);
const std::string kTwo("\0\0\0\2", 4);
const std::string kZero(4, '\0');

// id is the key; note may be long.
lcr::TableDescription orders(char identity = 'd') {
  const auto column = [&](std::string name, base::TypeId type, bool is_key = false) {
    return lcr::ColumnDescription{
        .name = std::move(name), .type = type, .type_modifier = -1, .is_key = is_key || identity == 'f'};
  };
  return {
      .relation = {16'400},
      .version = 2,
      .schema_name = "public",
      .table_name = "orders",
      .replica_identity = identity,
      .columns = {column("id", kInteger, true), column("n", kInteger), column("mail", kText), column("note", kText)}};
}

Step add(std::string column, std::string type, std::string expression) {
  return {.kind = StepKind::add_column,
          .column = std::move(column),
          .to = {},
          .mask = {},
          .type = std::move(type),
          .expression = std::move(expression)};
}
Step cast(std::string column, std::string type) {
  return {.kind = StepKind::cast_column, .column = std::move(column), .to = {}, .mask = {}, .type = std::move(type)};
}
Step drop(std::string column) {
  return {.kind = StepKind::drop_column, .column = std::move(column), .to = {}, .mask = {}};
}
Step rename(std::string column, std::string to) {
  return {.kind = StepKind::rename_column, .column = std::move(column), .to = std::move(to), .mask = {}};
}
Step mask(std::string column) {
  return {.kind = StepKind::mask_column, .column = std::move(column), .to = {}, .mask = {}};
}

class ComputedColumnsTest : public testing::Test {
 protected:
  base::Result<RowTransformation> made(const Steps& steps, char identity = 'd') {
    const lcr::TableDescription table = orders(identity);
    ComputeContext context{.table = rules::table_of(table), .source = "here", .scratch = &scratch_};
    context.table.columns[3].may_be_long = true;
    return RowTransformation::make(steps, table, std::move(context));
  }
  void use(const Steps& steps, char identity = 'd') {
    auto transformation = made(steps, identity);
    ASSERT_TRUE(transformation) << transformation.error().message;
    transformation_.emplace(*std::move(transformation));
  }
  std::string refusal(const Steps& steps, char identity = 'd') {
    const auto transformation = made(steps, identity);
    if (transformation) return "";
    EXPECT_EQ(transformation.error().code, base::ErrorCode::transformation_refused);
    EXPECT_EQ(transformation.error().table, R"("public"."orders")");
    return transformation.error().message;
  }

  // Old tuple and new one in words: "-" NULL, "?" unchanged, numbers as digits.
  std::string sent(lcr::FrameKind kind, uint16_t flags, const std::vector<std::byte>& before,
                   const std::vector<std::byte>& after) {
    const lcr::RowFrame change{.kind = kind,
                               .flags = flags,
                               .xid = {7},
                               .subxid = {},
                               .relation = {16'400},
                               .table_version = 2,
                               .lsn = {},
                               .old_tuple = before,
                               .new_tuple = after};
    const auto frame = transformation_->apply(change);
    if (frame) return words(frame->old_tuple) + "|" + words(frame->new_tuple);
    EXPECT_EQ(frame.error().code, base::ErrorCode::transformation_refused);
    EXPECT_EQ(frame.error().table, R"("public"."orders")");
    return frame.error().sqlstate + " " + frame.error().message;
  }
  static std::string words(std::span<const std::byte> tuple) {
    if (tuple.empty()) return "";
    std::vector<lcr::Value> values;
    lcr::TupleView(tuple).read(values);
    std::string out;
    for (const lcr::Value& value : values) {
      if (!out.empty()) out += ',';
      const std::string text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
      out += value.mark == lcr::ValueMark::null        ? "-"
             : value.mark == lcr::ValueMark::unchanged ? "?"
             : text.size() == 4 && text[0] == '\0'     ? std::to_string(text[3])
                                                       : text;
    }
    return out;
  }

  rules::Scratch scratch_;
  std::optional<RowTransformation> transformation_;
};

constexpr auto kInsert = lcr::FrameKind::insert;
constexpr auto kUpdate = lcr::FrameKind::update;
constexpr auto kRemove = lcr::FrameKind::remove;

TEST_F(ComputedColumnsTest, ReadsTheSourcesColumnsUnderTheirNamesAtTheStep) {
  use({rename("mail", "email"), add("greeting", "text", "'to ' || email || ' from ' || source"), drop("email"),
       add("next", "integer", "n + 1"), cast("n", "text")});
  const lcr::TableDescription& table = transformation_->sent_table();
  ASSERT_EQ(table.columns.size(), 5U);
  EXPECT_EQ(table.columns[1].name, "n");
  EXPECT_EQ(table.columns[1].type, kText);
  EXPECT_EQ(table.columns[3].name, "greeting");
  EXPECT_EQ(table.columns[4].type, kInteger);
  EXPECT_FALSE(table.columns[4].is_key);
  const auto row = make_tuple_bytes({{'b', kOne}, {'b', kOne}, {'b', "anna"}, {'n', ""}});
  EXPECT_EQ(sent(kInsert, 0, {}, row), "|1,1,-,to anna from here,2");
  const auto nothing = make_tuple_bytes({{'b', kOne}, {'n', ""}, {'n', ""}, {'t', "x"}});
  EXPECT_EQ(sent(kInsert, 0, {}, nothing), "|1,-,x,-,-");
}

TEST_F(ComputedColumnsTest, AValueThatDidNotComeIsTheOldRowsOrUnchangedOrStopsTheStream) {
  use({add("what", "text", "note || n::text"), add("size", "integer", "length(note)")});
  const auto before = make_tuple_bytes({{'b', kOne}, {'b', kTwo}, {'n', ""}, {'b', "long"}});
  const auto after = make_tuple_bytes({{'b', kOne}, {'b', kOne}, {'n', ""}, {'u', ""}});
  EXPECT_EQ(sent(kUpdate, lcr::kOldRow, before, after), "1,2,-,long,long2,4|1,1,-,?,long1,4");
  const std::string refused = sent(kUpdate, 0, {}, after);
  EXPECT_EQ(refused,
            " The expression of column \"what\" of \"public\".\"orders\" needs a value that this UPDATE did not bring. "
            "ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY FULL makes later changes bring the whole old row.");
  // Nothing that the size is made of has changed.
  use({add("size", "integer", "length(note)"), add("key_too", "text", "note || id::text")});
  EXPECT_EQ(sent(kUpdate, 0, {}, after), "|1,1,-,?,?,?");
  // Another key is another value.
  const auto key = make_tuple_bytes({{'b', kTwo}, {'n', ""}, {'n', ""}, {'n', ""}});
  EXPECT_NE(sent(kUpdate, lcr::kOldKey, key, after).find("key_too"), std::string::npos);
  // A partition that brings its whole row as a key has the value.
  EXPECT_EQ(sent(kUpdate, lcr::kOldKey, before, after), "1,2,-,long,-,-|1,1,-,?,4,long1");
  // Where it decides nothing, it is not missed.
  use({add("what", "text", "case n when 1 then 'one' else note end"), cast("note", "character varying")});
  EXPECT_EQ(sent(kUpdate, 0, {}, after), "|1,1,-,?,one");
}

TEST_F(ComputedColumnsTest, AnOldKeyTellsWhatIsMadeOfTheKeyAlone) {
  use({add("bucket", "integer", "id % 2"), add("more", "integer", "n + 1"), cast("n", "bigint")});
  EXPECT_TRUE(transformation_->sent_table().columns[4].is_key) << "the destination's key may have it";
  EXPECT_FALSE(transformation_->sent_table().columns[5].is_key);
  const auto key = make_tuple_bytes({{'b', kOne}, {'n', ""}, {'n', ""}, {'n', ""}});
  EXPECT_EQ(sent(kRemove, lcr::kOldKey, key, {}), "1,-,-,-,1,-|");
  // The whole row identifies itself by all of its columns.
  use({add("more", "integer", "n + 1"), cast("id", "text")}, 'f');
  EXPECT_TRUE(transformation_->sent_table().columns[4].is_key);
  const auto row = make_tuple_bytes({{'b', kOne}, {'b', kTwo}, {'n', ""}, {'n', ""}});
  EXPECT_EQ(sent(kRemove, lcr::kOldRow, row, {}), "1,2,-,-,3|");
}

TEST_F(ComputedColumnsTest, AFailureNamesTheColumnAndPostgresState) {
  use({add("share", "integer", "100 / n"), cast("mail", "integer")});
  const auto by_zero = make_tuple_bytes({{'b', kOne}, {'b', kZero}, {'n', ""}, {'n', ""}});
  EXPECT_EQ(
      sent(kInsert, 0, {}, by_zero),
      "22012 The expression of column \"share\" of \"public\".\"orders\" failed on this INSERT: division by zero.");
  const auto no_number = make_tuple_bytes({{'b', kOne}, {'b', kOne}, {'b', "secret"}, {'n', ""}});
  const std::string message = sent(kInsert, 0, {}, no_number);
  EXPECT_TRUE(message.starts_with("22P02 The cast of column \"mail\"")) << message;
  EXPECT_EQ(message.find("secret"), std::string::npos);
}

TEST_F(ComputedColumnsTest, WhatIsMaskedIsNotRead) {
  EXPECT_NE(refusal({mask("mail"), add("copy", "text", "mail")}).find("which is masked"), std::string::npos);
  EXPECT_NE(refusal({add("copy", "text", "upper(mail collate \"C\")"), mask("mail")}).find("\"copy\" reads it"),
            std::string::npos);
  EXPECT_NE(refusal({rename("mail", "m"), add("copy", "text", "m"), rename("m", "mail"), mask("mail")}), "");
  EXPECT_NE(refusal({mask("mail"), cast("mail", "character varying")}), "");
  EXPECT_NE(refusal({cast("note", "character varying"), mask("note")}), "");
  EXPECT_EQ(refusal({mask("mail"), add("copy", "text", "note"), drop("note")}), "");
}

TEST_F(ComputedColumnsTest, RefusesWithThePlace) {
  EXPECT_NE(refusal({add("x", "integer", "n +\n nn")})
                .find("of column \"x\", the expression reads \"nn\": there is none of this name"),
            std::string::npos);
  EXPECT_NE(refusal({add("x", "text", "n || mail || now()")}).find("refused at line 1, column 14"), std::string::npos);
  EXPECT_NE(refusal({add("x", "text", "n ||\n lower(mail)")}).find("refused at line 2, column 2"), std::string::npos);
  EXPECT_NE(refusal({add("x", "jsonb", "n")}).find("no expression has the type jsonb"), std::string::npos);
  EXPECT_NE(refusal({add("x", "integer", "n"), add("y", "integer", "x")}).find("which is added"), std::string::npos);
  EXPECT_NE(refusal({cast("n", "text"), add("y", "integer", "n")}).find("which is cast"), std::string::npos);
  EXPECT_NE(refusal({add("x", "integer", "n"), cast("x", "text")}).find("it is added"), std::string::npos);
  EXPECT_NE(refusal({cast("n", "text"), cast("n", "bigint")}).find("it is cast already"), std::string::npos);
  EXPECT_NE(refusal({cast("id", "text")}).find("part of the key"), std::string::npos);
  EXPECT_NE(refusal({cast("n", "jsonb")}).find("uuid"), std::string::npos);
  EXPECT_NE(refusal({cast("n", "uuid")}).find("the cast is refused: the rule language cannot cast int4 to uuid"),
            std::string::npos);
}

TEST_F(ComputedColumnsTest, ForeseesValuesThatAnUpdateMayNotBring) {
  const auto may_lack = [&](const std::string& text, char identity, bool is_partitioned = false) {
    rules::RuleTable table = rules::table_of(orders(identity));
    table.columns[3].may_be_long = true;
    table.is_partitioned = is_partitioned;
    if (is_partitioned) {  // as rules::complete() leaves them
      for (rules::RuleColumn& column : table.columns) column.is_key = false;
    }
    const auto expression =
        rules::RowExpression::compile(rules::as_type(*rules::parse_row_expression(text), "text"), table, "here");
    EXPECT_TRUE(expression) << expression.error().message;
    return may_lack_value(*expression, table);
  };
  EXPECT_TRUE(may_lack("note || n::text", 'd'));
  EXPECT_TRUE(may_lack("note || id::text", 'd')) << "the key may change";
  EXPECT_FALSE(may_lack("note || note", 'd'));
  EXPECT_FALSE(may_lack("mail || n::text", 'd'));
  EXPECT_FALSE(may_lack("note || n::text", 'f'));
  EXPECT_TRUE(may_lack("note || n::text", 'f', true));
}

}  // namespace
}  // namespace thalweg::transform
