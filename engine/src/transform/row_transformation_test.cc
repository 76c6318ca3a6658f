#include "transform/row_transformation.h"

#include <gtest/gtest.h>

#include "lcr/frame_samples.h"

namespace thalweg::transform {
namespace {

using lcr::make_tuple_bytes;
using lcr::SampleColumns;

constexpr base::TypeId kInteger{23};
constexpr base::TypeId kText{25};

lcr::TableDescription people(char identity = 'd') {
  const auto column = [&](std::string name, base::TypeId type, bool is_key = false) {
    return lcr::ColumnDescription{
        .name = std::move(name), .type = type, .type_modifier = -1, .is_key = is_key || identity == 'f'};
  };
  return {.relation = {16'400},
          .version = 2,
          .schema_name = "public",
          .table_name = "people",
          .replica_identity = identity,
          .columns = {column("id", kInteger, true), column("mail", kText), column("born", kInteger),
                      column("notes", kText)}};
}

Step drop(std::string column) {
  return {.kind = StepKind::drop_column, .column = std::move(column), .to = {}, .mask = {}};
}
Step rename(std::string column, std::string to) {
  return {.kind = StepKind::rename_column, .column = std::move(column), .to = std::move(to), .mask = {}};
}
Step keep(std::vector<std::string> columns) {
  return {.kind = StepKind::keep_columns, .column = {}, .to = {}, .mask = {}, .columns = std::move(columns)};
}
Step add(std::string column, std::string type, std::string value) {
  return {.kind = StepKind::add_column,
          .column = std::move(column),
          .to = {},
          .mask = {},
          .type = std::move(type),
          .value = std::move(value)};
}
Step mask(std::string column, Mask with) {
  return {.kind = StepKind::mask_column, .column = std::move(column), .to = {}, .mask = std::move(with)};
}
const Mask kNull;
const Mask kZero{.kind = MaskKind::constant, .value = "0"};
const Mask kEnds{.kind = MaskKind::partial, .value = {}, .keep_first = 1, .keep_last = 2};

const Mask kHash{.kind = MaskKind::hash, .value = {}, .key = "a key"};

// With `length` as that of the type of "mail".
lcr::TableDescription people_with_mail_of(int32_t length) {
  lcr::TableDescription table = people();
  table.columns[1].type = {1043};
  table.columns[1].type_modifier = length + 4;
  return table;
}

std::string refusal(const Steps& steps, const lcr::TableDescription& table = people()) {
  const auto made = RowTransformation::make(steps, table);
  if (made) return "";
  EXPECT_EQ(made.error().code, base::ErrorCode::transformation_refused);
  EXPECT_EQ(made.error().table, R"("public"."people")");
  return made.error().message;
}

std::string partly(std::string_view text, uint32_t first, uint32_t last) {
  std::string out = "of another value";
  mask_part(text, {.kind = MaskKind::partial, .value = {}, .keep_first = first, .keep_last = last}, out);
  return out;
}

// "-" NULL, "?" unchanged, "t:" text.
std::string words(std::span<const std::byte> tuple) {
  if (tuple.empty()) return "none";
  const auto length = lcr::check_tuple(tuple);
  EXPECT_TRUE(length && *length == tuple.size());
  std::vector<lcr::Value> values;
  lcr::TupleView(tuple).read(values);
  std::string out;
  for (const lcr::Value& value : values) {
    if (!out.empty()) out += ',';
    const std::string text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    out += value.mark == lcr::ValueMark::null        ? "-"
           : value.mark == lcr::ValueMark::unchanged ? "?"
           : value.mark == lcr::ValueMark::text      ? "t:" + text
                                                     : text;
  }
  return out;
}

TEST(RowTransformation, DescribesTheTableAsItIsSent) {
  const auto made = RowTransformation::make({drop("notes"), rename("mail", "email"), rename("id", "number")}, people());
  ASSERT_TRUE(made) << made.error().message;
  const lcr::TableDescription& sent = made->sent_table();
  EXPECT_EQ(sent.version, 2U);
  ASSERT_EQ(sent.columns.size(), 3U);
  EXPECT_EQ(sent.columns[0].name, "number");
  EXPECT_TRUE(sent.columns[0].is_key);
  EXPECT_EQ(sent.columns[1].name, "email");
  EXPECT_EQ(sent.columns[2].name, "born");
}

TEST(RowTransformation, MasksNewRowsAndWholeOldOnes) {
  auto made = RowTransformation::make(
      {rename("mail", "email"), mask("email", kEnds), mask("born", kZero), mask("notes", kNull)}, people());
  ASSERT_TRUE(made) << made.error().message;
  const auto before = make_tuple_bytes({{'b', "7"}, {'b', "anna@x.org"}, {'n', ""}, {'b', "secret"}});
  const auto after = make_tuple_bytes({{'b', "7"}, {'n', ""}, {'b', "1984"}, {'u', ""}});
  lcr::RowFrame change{.kind = lcr::FrameKind::update,
                       .flags = lcr::kOldRow,
                       .xid = {7},
                       .subxid = {},
                       .relation = {16'400},
                       .table_version = 2,
                       .lsn = {},
                       .old_tuple = before,
                       .new_tuple = after};
  lcr::RowFrame sent = *made->apply(change);
  EXPECT_EQ(words(sent.old_tuple), "7,a*******rg,t:0,-");
  EXPECT_EQ(words(sent.new_tuple), "7,-,t:0,?");
  // Of an old key the other columns are not told, and are not to look like values.
  const auto key = make_tuple_bytes({{'b', "7"}, {'n', ""}, {'n', ""}, {'n', ""}});
  change.flags = lcr::kOldKey;
  change.old_tuple = key;
  EXPECT_EQ(words(made->apply(change)->old_tuple), "7,-,-,-");
  // A partition with REPLICA IDENTITY FULL under a table that has a key brings its whole row as one.
  change.old_tuple = before;
  EXPECT_EQ(words(made->apply(change)->old_tuple), "7,-,-,-");
  change.kind = lcr::FrameKind::remove;
  change.new_tuple = {};
  EXPECT_EQ(words(made->apply(change)->new_tuple), "none");
}

TEST(RowTransformation, KeepsSomeColumnsAndAddsOthers) {
  auto made = RowTransformation::make(
      {rename("mail", "email"), add("site", "text", "north"), keep({"id", "email", "site"}), rename("site", "of_site")},
      people());
  ASSERT_TRUE(made) << made.error().message;
  const lcr::TableDescription& sent = made->sent_table();
  ASSERT_EQ(sent.columns.size(), 3U);
  EXPECT_EQ(sent.columns[1].name, "email");
  EXPECT_EQ(sent.columns[2].name, "of_site");
  EXPECT_EQ(sent.columns[2].type, kText);
  EXPECT_TRUE(sent.columns[2].is_key) << "the destination's key may have it";
  const auto key = make_tuple_bytes({{'b', "6"}, {'n', ""}, {'n', ""}, {'n', ""}});
  const auto row = make_tuple_bytes({{'b', "7"}, {'u', ""}, {'b', "1984"}, {'b', "secret"}});
  const auto sent_row = made->apply({.kind = lcr::FrameKind::update,
                                     .flags = lcr::kOldKey,
                                     .xid = {7},
                                     .subxid = {},
                                     .relation = {16'400},
                                     .table_version = 2,
                                     .lsn = {},
                                     .old_tuple = key,
                                     .new_tuple = row});
  EXPECT_EQ(words(sent_row->old_tuple), "6,-,t:north");
  EXPECT_EQ(words(sent_row->new_tuple), "7,?,t:north");
  // A table whose rows nothing identifies does not get a key by it.
  lcr::TableDescription keyless = people('n');
  for (lcr::ColumnDescription& column : keyless.columns) column.is_key = false;
  EXPECT_FALSE(RowTransformation::make({add("site", "text", "north")}, keyless)->sent_table().columns.back().is_key);
}

TEST(RowTransformation, HashesWhatIsThere) {
  auto made = RowTransformation::make({mask("mail", kHash), mask("notes", kHash)}, people_with_mail_of(20));
  ASSERT_TRUE(made) << made.error().message;
  std::string of_anna;
  KeyedHash("a key").write("anna", 64, of_anna);
  const auto row = make_tuple_bytes({{'b', "7"}, {'b', "anna"}, {'n', ""}, {'t', "anna"}});
  const auto rest = make_tuple_bytes({{'b', "7"}, {'n', ""}, {'n', ""}, {'u', ""}});
  lcr::RowFrame change{.kind = lcr::FrameKind::update,
                       .flags = lcr::kOldRow,
                       .xid = {7},
                       .subxid = {},
                       .relation = {16'400},
                       .table_version = 2,
                       .lsn = {},
                       .old_tuple = row,
                       .new_tuple = rest};
  lcr::RowFrame sent = *made->apply(change);
  EXPECT_EQ(words(sent.old_tuple), "7," + of_anna.substr(0, 20) + ",-,t:" + of_anna);
  EXPECT_EQ(words(sent.new_tuple), "7,-,-,?");
}

TEST(RowTransformation, KeepsOnlyWhatAPartialMaskMayKeep) {
  EXPECT_EQ(partly("Größe", 1, 2), "G**ße");
  EXPECT_EQ(partly("Größe", 0, 0), "*****");
  EXPECT_EQ(partly("Größe", 4, 1), "*****");  // nothing would be hidden
  EXPECT_EQ(partly("Größe", 3, 1), "Grö*e");
  EXPECT_EQ(partly("", 3, 1), "");
}

TEST(RowTransformation, RefusesWhatDoesNotFitTheTable) {
  EXPECT_EQ(refusal({mask("born", kZero), drop("notes")}), "");
  EXPECT_NE(refusal({drop("note")}).find("\"note\""), std::string::npos);
  EXPECT_NE(refusal({drop("notes"), mask("notes", kNull)}), "");
  EXPECT_NE(refusal({rename("mail", "notes")}), "");
  EXPECT_EQ(refusal({drop("notes"), rename("mail", "notes")}), "");
  EXPECT_NE(refusal({drop("id")}), "");
  EXPECT_NE(refusal({mask("id", kNull)}), "");
  EXPECT_NE(refusal({rename("id", "number"), mask("number", kZero)}), "");
  EXPECT_NE(refusal({mask("mail", kNull), mask("mail", kZero)}), "");
  EXPECT_NE(refusal({mask("born", kEnds)}), "");
  EXPECT_NE(refusal({mask("born", kHash)}), "");
  EXPECT_NE(refusal({mask("born", {.kind = MaskKind::digits, .value = {}})}), "");
  EXPECT_EQ(refusal({mask("mail", kHash)}, people_with_mail_of(16)), "");
  EXPECT_NE(refusal({mask("mail", kHash)}, people_with_mail_of(15)).find("holds 15 characters"), std::string::npos);
  EXPECT_NE(refusal({keep({"id", "email"})}).find("\"email\""), std::string::npos);
  EXPECT_NE(refusal({keep({"mail"})}).find("\"id\""), std::string::npos) << "it is the key";
  EXPECT_NE(refusal({keep({"id"}), mask("mail", kNull)}), "");
  EXPECT_NE(refusal({add("mail", "text", "x")}), "");
  EXPECT_EQ(refusal({drop("mail"), add("mail", "text", "x"), drop("mail")}), "");
  EXPECT_NE(refusal({add("site", "inet", "x")}).find("jsonb, numeric"), std::string::npos);
  EXPECT_NE(refusal({add("site", "text", "x"), mask("site", kNull)}), "");
  // A whole row identifies itself by what is left of it.
  EXPECT_EQ(refusal({drop("id"), mask("mail", kNull)}, people('f')), "");
  EXPECT_NE(refusal({drop("id"), drop("mail"), drop("born"), drop("notes")}, people('f')), "");
}

}  // namespace
}  // namespace thalweg::transform
