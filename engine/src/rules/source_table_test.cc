#include "rules/source_table.h"

#include <gtest/gtest.h>

#include "rules/condition.h"
#include "support/test_cluster.h"

namespace thalweg::rules {
namespace {

class SourceTableTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = pg::Connection::open(test::shared_cluster().conninfo(), {});
    ASSERT_TRUE(opened) << opened.error().message;
    source_.emplace(*std::move(opened));
    run("DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept");
  }
  void run(const std::string& sql) {
    const auto done = source_->script(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  RuleTable read(const std::string& name) {
    const auto table = read_table(*source_, "kept", name);
    EXPECT_TRUE(table) << table.error().message;
    return table && *table ? **table : RuleTable{};
  }
  std::optional<pg::Connection> source_;
};

TEST_F(SourceTableTest, ReadsWhatConditionsSeeOfATable) {
  run("CREATE TYPE kept.mood AS ENUM ('low', 'high'); "
      "ALTER TYPE kept.mood ADD VALUE 'middle' BEFORE 'high'; "
      "CREATE COLLATION kept.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "
      "CREATE TABLE kept.t (gone integer, id integer, note text COLLATE \"C\", free text COLLATE kept.loose, "
      "plain text, feeling kept.mood, twice integer GENERATED ALWAYS AS (id * 2) STORED, extra integer, "
      "PRIMARY KEY (id) INCLUDE (extra)); ALTER TABLE kept.t DROP COLUMN gone");
  const RuleTable table = read("t");
  ASSERT_EQ(table.columns.size(), 6U);
  EXPECT_EQ(table.schema, "kept");
  EXPECT_EQ(table.replica_identity, 'd');
  EXPECT_FALSE(table.is_partitioned);
  EXPECT_EQ(table.columns[0].name, "id");
  EXPECT_TRUE(table.columns[0].is_key);
  EXPECT_EQ(table.columns[1].collation, Collation::c);
  EXPECT_EQ(table.columns[2].collation, Collation::nondeterministic);
  EXPECT_EQ(table.columns[3].collation, table.database_collation);
  EXPECT_EQ(table.columns[4].enum_labels, (std::vector<std::string>{"low", "middle", "high"}));
  EXPECT_EQ(table.columns[5].name, "extra");
  EXPECT_FALSE(table.columns[5].is_key);
  const auto missing = read_table(*source_, "kept", "missing");
  ASSERT_TRUE(missing);
  EXPECT_FALSE(*missing);
}

TEST_F(SourceTableTest, KnowsTheKeyByTheReplicaIdentity) {
  run("CREATE TABLE kept.t (a integer NOT NULL, b integer PRIMARY KEY); CREATE UNIQUE INDEX t_a ON kept.t (a)");
  const auto keys = [&] {
    const RuleTable table = read("t");
    return std::pair(table.columns[0].is_key, table.columns[1].is_key);
  };
  EXPECT_EQ(keys(), std::pair(false, true));
  run("ALTER TABLE kept.t REPLICA IDENTITY USING INDEX t_a");
  EXPECT_EQ(keys(), std::pair(true, false));
  run("ALTER TABLE kept.t REPLICA IDENTITY FULL");
  EXPECT_EQ(keys(), std::pair(true, true));
  run("ALTER TABLE kept.t REPLICA IDENTITY NOTHING");
  EXPECT_EQ(keys(), std::pair(false, false));
}

TEST_F(SourceTableTest, KnowsWhichValuesMayBeStoredApart) {
  const auto found = [&] {
    std::string names;
    for (const RuleColumn& column : read("t").columns) names += column.may_be_long ? column.name + " " : "";
    return names;
  };
  run("CREATE TABLE kept.t (id bigint, at timestamptz, code varchar(5), name varchar(6), kind char(5), "
      "price numeric(12, 2), huge numeric, body text, bytes bytea, here text, PRIMARY KEY (id)); "
      "ALTER TABLE kept.t ALTER here SET STORAGE PLAIN");
  EXPECT_EQ(found(), "name huge body bytes ");
  run("DROP TABLE kept.t; CREATE TABLE kept.t (id bigint, name varchar(20))");
  EXPECT_EQ(found(), "") << "no row of it can be so long";
  run("DROP TABLE kept.t; CREATE TABLE kept.t (id bigint, body text) PARTITION BY RANGE (id)");
  EXPECT_EQ(found(), "");
  run("CREATE TABLE kept.low PARTITION OF kept.t FOR VALUES FROM (0) TO (10)");
  EXPECT_EQ(found(), "body ");
}

TEST_F(SourceTableTest, BelievesNoOldRowsOfPartitions) {
  run("CREATE TABLE kept.t (a integer PRIMARY KEY) PARTITION BY RANGE (a)");
  EXPECT_TRUE(read("t").is_partitioned);
  EXPECT_TRUE(read("t").columns[0].is_key);
  run("ALTER TABLE kept.t REPLICA IDENTITY FULL");
  EXPECT_FALSE(read("t").columns[0].is_key);
}

// The root's description says which columns identify a row, and the partition has decided which ones come.
TEST_F(SourceTableTest, BelievesKeysThatEveryPartitionHas) {
  run("CREATE TABLE kept.t (id integer NOT NULL, region text NOT NULL, PRIMARY KEY (id), UNIQUE (id, region)) "
      "PARTITION BY RANGE (id); CREATE TABLE kept.low PARTITION OF kept.t FOR VALUES FROM (0) TO (10); "
      "CREATE TABLE kept.high PARTITION OF kept.t FOR VALUES FROM (10) TO (20)");
  const auto keys = [&] {
    const RuleTable table = read("t");
    return std::pair(table.columns[0].is_key, table.columns[1].is_key);
  };
  EXPECT_EQ(keys(), std::pair(true, false));
  run("ALTER TABLE kept.t REPLICA IDENTITY USING INDEX t_id_region_key");
  EXPECT_EQ(keys(), std::pair(true, false)) << "the partitions have their primary key still";
  run("ALTER TABLE kept.low REPLICA IDENTITY USING INDEX low_id_region_key");
  EXPECT_EQ(keys(), std::pair(true, false));
  run("ALTER TABLE kept.high REPLICA IDENTITY FULL");
  EXPECT_EQ(keys(), std::pair(true, true));
  run("ALTER TABLE kept.high REPLICA IDENTITY NOTHING");
  EXPECT_EQ(keys(), std::pair(false, false));
}

// The copy's WHERE sees the server's bytes, the engine those of UTF-8.
TEST_F(SourceTableTest, RefusesWhatDependsOnAnotherEncoding) {
  run("CREATE DATABASE kept_latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
  {
    auto latin = pg::Connection::open(test::shared_cluster().conninfo("kept_latin"), {});
    ASSERT_TRUE(latin) << latin.error().message;
    ASSERT_TRUE(latin->script("CREATE TABLE public.t (id integer PRIMARY KEY, name text)"));
    const auto table = read_table(*latin, "public", "t");
    ASSERT_TRUE(table && *table);
    for (const char* refused : {"octet_length(name) = 1", "ascii(name) > 200", "name < 'b'", "upper(name) = 'B'"}) {
      const auto compiled = Condition::compile(refused, **table);
      ASSERT_FALSE(compiled) << refused;
      EXPECT_NE(compiled.error().message.find("encoding"), std::string::npos) << compiled.error().message;
    }
    EXPECT_TRUE(Condition::compile("name = 'b' and length(name) = 1 and name like 'b%'", **table));
  }
  run("DROP DATABASE kept_latin");
  run("CREATE TABLE kept.t (name text)");
  EXPECT_TRUE(Condition::compile("octet_length(name) = 1", read("t")));
}

// A description that is older than the catalogue: a column that is gone must not be taken for comparable.
TEST_F(SourceTableTest, AColumnThatIsGoneHasACollationThatNoConditionCanUse) {
  RuleTable table{.schema = "kept", .name = "t", .columns = {{.name = "a", .type = {25}, .enum_labels = {}}}};
  const auto exists = complete(*source_, {4'000'000'000}, table);
  ASSERT_TRUE(exists) << exists.error().message;
  EXPECT_FALSE(*exists);
  EXPECT_EQ(table.columns[0].collation, Collation::nondeterministic);
  EXPECT_TRUE(table.is_partitioned);
}

}  // namespace
}  // namespace thalweg::rules
