#include "apply/parked_tables.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apply/apply_harness.h"

namespace thalweg::apply {
namespace {

std::vector<std::byte> description(uint32_t version, const char* column) {
  return lcr::make_table_frame({.relation = {16500},
                                .version = version,
                                .schema_name = "public",
                                .table_name = "items",
                                .replica_identity = 'd',
                                .columns = {{.name = "id", .type = {23}, .type_modifier = -1, .is_key = true},
                                            {.name = column, .type = {25}, .type_modifier = -1, .is_key = false}}});
}

std::shared_ptr<const metadata::SourceTable> described(ParkedTables& tables, const std::vector<std::byte>& bytes) {
  const auto source = tables.described(*lcr::FrameView::decode(bytes));
  EXPECT_TRUE(source);
  return *source;
}

TEST(ParkedTables, AreLookedUpOnceUntilTheyChange) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  ParkedTables tables(h.connection(), {});
  const auto first = described(tables, description(1, "name"));
  EXPECT_EQ(described(tables, description(1, "name")), first) << "each transaction brings its own frame of the same";
  EXPECT_NE(described(tables, description(1, "other")), first) << "another capture counts versions from 1 again";
  EXPECT_FALSE(tables.has(*first));
  ASSERT_TRUE(tables.load(*first));
  EXPECT_EQ((*tables.find(*first))->quoted_name, "\"public\".\"items\"");
  ASSERT_TRUE(tables.forget_changed());
  EXPECT_TRUE(tables.has(*first));
  h.run("ALTER TABLE items ADD UNIQUE (name)");
  ASSERT_TRUE(tables.forget_changed());
  EXPECT_FALSE(tables.has(*first));
  ASSERT_TRUE(tables.load(*first));
  EXPECT_EQ((*tables.find(*first))->unique_keys.size(), 2U);
}

TEST(ParkedTables, AskAgainForOneThatCannotBeUsed) {
  ApplyHarness h;
  ParkedTables tables(h.connection(), {});
  const auto source = described(tables, description(1, "name"));
  ASSERT_TRUE(tables.load(*source));
  EXPECT_EQ(tables.find(*source).error().code, base::ErrorCode::missing_table);
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  ASSERT_TRUE(tables.forget_changed());
  EXPECT_FALSE(tables.has(*source));
  ASSERT_TRUE(tables.load(*source));
  EXPECT_TRUE(tables.find(*source));
}

TEST(ParkedTables, KnowWhatHasBeenCopied) {
  ApplyHarness h;
  h.run(
      "CREATE TABLE thalweg.stream_table (stream_id text, schema_name text, table_name text, copied_from pg_lsn, "
      "copied_to pg_lsn, copy_again boolean)");
  h.run("CREATE TABLE thalweg.copy_range (stream_id text, schema_name text, table_name text)");
  h.run("INSERT INTO thalweg.stream_table VALUES ('teststream', 'public', 'items', '0/100', '0/200', false)");
  const auto of = [&]() {
    ParkedTables tables(h.connection(), {});
    EXPECT_TRUE(tables.read_records("teststream"));
    const auto source = described(tables, description(1, "name"));
    return std::tuple(source->copied_from, source->copied_to, tables.is_being_copied(*source));
  };
  EXPECT_EQ(of(), std::tuple(base::Lsn{}, base::Lsn{}, false)) << "never copied: the stream began at its position";
  h.run("INSERT INTO thalweg.copy_range VALUES ('teststream', 'public', 'items')");
  EXPECT_EQ(of(), std::tuple(base::Lsn{0x100}, base::Lsn{0x200}, false));
  h.run("ALTER TABLE thalweg.stream_table ADD COLUMN identity jsonb DEFAULT '{\"relation\": 4711}'");
  EXPECT_EQ(of(), std::tuple(base::Lsn{}, base::Lsn{}, false)) << "another table has that name now";
  h.run("ALTER TABLE thalweg.stream_table DROP COLUMN identity");
  h.run("UPDATE thalweg.stream_table SET copy_again = true, copied_from = NULL, copied_to = NULL");
  h.run("DELETE FROM thalweg.copy_range");
  EXPECT_EQ(of(), std::tuple(base::Lsn{}, base::Lsn{}, true));
  h.run("DROP TABLE thalweg.stream_table, thalweg.copy_range");
}

TEST(ParkedTables, HaveTheNameOfNow) {
  ApplyHarness h;
  h.run(
      "CREATE TABLE thalweg.stream_table (stream_id text, schema_name text, table_name text, copied_from pg_lsn, "
      "copied_to pg_lsn, copy_again boolean, identity jsonb)");
  h.run("CREATE TABLE thalweg.copy_range (stream_id text, schema_name text, table_name text)");
  ParkedTables tables(h.connection(), {});
  ASSERT_TRUE(tables.read_records("teststream"));
  const auto before = described(tables, description(1, "name"));
  EXPECT_EQ(before->quoted_name, "\"public\".\"items\"");
  EXPECT_FALSE(tables.is_replaced(*before));
  const std::string relation = std::to_string(before->description.relation.value);
  h.run(
      "INSERT INTO thalweg.stream_table VALUES ('teststream', 'public', 'items', NULL, NULL, false, "
      "'{\"relation\": 4711}')");
  ASSERT_TRUE(tables.read_records("teststream"));
  EXPECT_TRUE(tables.is_replaced(*described(tables, description(1, "name"))));
  h.run(
      "INSERT INTO thalweg.stream_table VALUES ('teststream', 'sales', 'called', NULL, NULL, false, '{\"relation\": " +
      relation + "}')");
  ASSERT_TRUE(tables.read_records("teststream"));
  const auto after = described(tables, description(1, "name"));
  EXPECT_EQ(after->quoted_name, "\"sales\".\"called\"");
  EXPECT_FALSE(tables.is_replaced(*after));
  h.run("DROP TABLE thalweg.stream_table, thalweg.copy_range");
}

}  // namespace
}  // namespace thalweg::apply
