#include "instantiation/instantiation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "instantiation/bookkeeping.h"
#include "instantiation/instantiation_harness.h"

// Resumption of an interrupted copy: the parts that it keeps, and those that it starts anew.

namespace thalweg::instantiation {
namespace {

// A copy that a crash of the destination interrupts; then the source changes, and the next start copies the rest.
class ResumedCopy : public InstantiationTest {
 protected:
  void interrupt_copy(const std::string& table);
  base::Result<void> resume();
  // As after a copy from one snapshot, which apply does not have to repair.
  void expect_copied_anew();
  base::Lsn first_point_;
  base::Lsn second_point_;
  std::vector<CopiedTable> tables_;
};

void ResumedCopy::interrupt_copy(const std::string& table) {
  run(*source_, table);
  InstantiationOptions with = options({{"public", "t"}});
  with.copy_range_rows = 1000;
  with.copy_workers = 1;
  Instantiation first(with, progress_, stop_);
  const auto assessed = first.assess(true);
  ASSERT_TRUE(assessed) << assessed.error().message;
  const NamedSnapshot taken = snapshot();
  first_point_ = taken.slot.consistent_point;
  ASSERT_TRUE(first.prepare());
  run(*destination_, "ALTER TABLE t ADD CONSTRAINT boom CHECK (id < 3000)");
  ASSERT_FALSE(first.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
  run(*destination_, "ALTER TABLE t DROP CONSTRAINT boom");
  ASSERT_NE(value(*destination_, "SELECT count(*) FROM t"), "0");
}

base::Result<void> ResumedCopy::resume() {
  InstantiationOptions with = options({{"public", "t"}});
  with.copy_range_rows = 1000;
  Instantiation second(with, progress_, stop_);
  THALWEG_TRY(second.assess(false));
  const NamedSnapshot taken = snapshot();
  second_point_ = taken.slot.consistent_point;
  THALWEG_TRY(second.prepare());
  THALWEG_TRY(second.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
  THALWEG_ASSIGN(tables_, second.copied_tables());
  return {};
}

void ResumedCopy::expect_copied_anew() {
  const auto resumed = resume();
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(tables_[0].copied_from, second_point_);
  EXPECT_EQ(tables_[0].copied_to, second_point_);
  expect_same_content("t");
  EXPECT_EQ(progress_.report().tables[0].rows_copied, std::stoll(value(*source_, "SELECT count(*) FROM t")));
}

TEST_F(ResumedCopy, AnewWhereAChangeMayComeWithoutAToastedValue) {
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL; "
      "INSERT INTO t SELECT g, repeat('v', CASE WHEN g > 4990 THEN 5000 ELSE 5 END) FROM generate_series(1, 5000) g; "
      "ANALYZE t");
  run(*source_, "UPDATE t SET id = -id WHERE id IN (4992, 4999)");
  expect_copied_anew();
}

TEST_F(ResumedCopy, AnewWhereAPartitionMayComeWithoutAToastedValue) {
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); "
      "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (-9999) TO (9999); "
      "INSERT INTO t SELECT g, 'v' FROM generate_series(1, 5000) g; ANALYZE t");
  run(*source_, "UPDATE t SET id = -id WHERE id IN (4992, 4999)");
  expect_copied_anew();
}

TEST_F(ResumedCopy, AnewWhereOtherColumnsAreTheKey) {
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY, code int NOT NULL UNIQUE); "
      "INSERT INTO t SELECT g, 5001 - g FROM generate_series(1, 5000) g; ANALYZE t");
  run(*source_, "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (code)");
  expect_copied_anew();
}

TEST_F(ResumedCopy, AnewWhereTheKeyHasMoreColumns) {
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY, code int NOT NULL); "
      "INSERT INTO t SELECT g, g FROM generate_series(1, 5000) g; ANALYZE t");
  run(*source_, "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (id, code)");
  expect_copied_anew();
}

TEST_F(ResumedCopy, AnewWhereTheKeyIsGone) {
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY, code int NOT NULL); "
      "INSERT INTO t SELECT g, g FROM generate_series(1, 5000) g; ANALYZE t");
  run(*source_, "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t REPLICA IDENTITY FULL");
  expect_copied_anew();
}

TEST_F(ResumedCopy, AnewWhereTheDestinationHasOtherUniqueKeys) {
  run(*destination_, "CREATE TABLE t (id int PRIMARY KEY, code int UNIQUE)");
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY, code int UNIQUE); "
      "INSERT INTO t SELECT g, g FROM generate_series(1, 5000) g; ANALYZE t");
  run(*source_, "UPDATE t SET code = -1 WHERE id = 10; UPDATE t SET code = 10 WHERE id = 4999");
  expect_copied_anew();
}

TEST_F(ResumedCopy, PartitionsThatCameMeanwhileAreMade) {
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); "
      "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (9999); "
      "INSERT INTO t SELECT generate_series(1, 5000); ANALYZE t");
  run(*source_,
      "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (9999) TO (99999); INSERT INTO t SELECT generate_series(9999, "
      "10100)");
  const auto resumed = resume();
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(tables_[0].copied_from, first_point_);
  expect_same_content("t");
}

// It came behind the look at the tables: it is copied, and may be gone before the next look.
TEST_F(InstantiationTest, APartitionThatTheSnapshotHasAndNoLookIsNoted) {
  for (pg::Connection* const side : {&*source_, &*destination_}) {
    run(*side,
        "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (10)");
  }
  run(*destination_, "CREATE TABLE t_rest PARTITION OF t DEFAULT");
  Instantiation instantiation(options({{"public", "t"}}), progress_, stop_);
  ASSERT_TRUE(instantiation.assess(true));
  ASSERT_TRUE(instantiation.identify());
  run(*source_, "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (10) TO (20); INSERT INTO t VALUES (1), (11)");
  const NamedSnapshot taken = snapshot();
  run(*source_, "CREATE TABLE t_3 PARTITION OF t FOR VALUES FROM (20) TO (30); INSERT INTO t VALUES (21)");
  ASSERT_TRUE(instantiation.prepare());
  const auto copied = instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(value(*destination_, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"), "1 11");
  const auto tables = Bookkeeping(*destination_, "teststream").tables();
  ASSERT_TRUE(tables) << tables.error().message;
  ASSERT_EQ(tables->size(), 1U);
  const std::vector<WrittenLeaf>& written = tables->front().written;
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(std::to_string(written[0].relation), value(*source_, "SELECT 't_2'::regclass::oid"));
  EXPECT_EQ(written[0].name, (TableName{"public", "t_2"}));
  EXPECT_EQ(written[0].commit_lsn, taken.slot.consistent_point);
  EXPECT_FALSE(written[0].truncated);
  SourceTables gone{.tables = {},
                    .running_from = static_cast<uint32_t>(
                        std::stoul(value(*source_, "SELECT pg_snapshot_xmin(pg_current_snapshot())"))),
                    .applied = {taken.slot.consistent_point.value + 1}};
  EXPECT_TRUE(gone.tells_of(written[0]));
}

TEST_F(ResumedCopy, PartitionsOfATableThatIsPartitionedOtherwiseAreNotMade) {
  run(*destination_,
      "CREATE TABLE t (id int, p int, PRIMARY KEY (id, p)) PARTITION BY HASH (id); "
      "CREATE TABLE t_all PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0)");
  interrupt_copy(
      "CREATE TABLE t (id int, p int, PRIMARY KEY (id, p)) PARTITION BY RANGE (p); "
      "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (10) PARTITION BY LIST (p); "
      "CREATE TABLE t_11 PARTITION OF t_1 DEFAULT; "
      "INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 5000) g; ANALYZE t");
  const auto resumed = resume();
  ASSERT_TRUE(resumed) << resumed.error().message;
  expect_same_content("t");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_partition_tree('t')"), "2");
}

TEST_F(ResumedCopy, PartitionsOfATableThatIsPartitionedAlikeAreMade) {
  run(*destination_,
      "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); "
      "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (9999)");
  interrupt_copy(
      "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); "
      "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (9999); "
      "INSERT INTO t SELECT generate_series(1, 5000); ANALYZE t");
  run(*source_, "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (9999) TO (99999); INSERT INTO t VALUES (9999)");
  const auto resumed = resume();
  ASSERT_TRUE(resumed) << resumed.error().message;
  expect_same_content("t");
}

// Rows that a snapshot should show are gone with the file that a table had then.
class OldSnapshot : public ResumedCopy {
 protected:
  void copy_after(const std::string& change);
};

void OldSnapshot::copy_after(const std::string& change) {
  run(*source_,
      "CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id); "
      "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (2500); "
      "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (2500) TO (9999) PARTITION BY RANGE (id); "
      "CREATE TABLE t_21 PARTITION OF t_2 DEFAULT; "
      "CREATE TABLE u (id int PRIMARY KEY); CREATE INDEX ON u (id); INSERT INTO u VALUES (1); "
      "INSERT INTO t SELECT g, 0 FROM generate_series(1, 5000) g; ANALYZE");
  InstantiationOptions with = options({{"public", "t"}, {"public", "u"}});
  with.copy_range_rows = 1000;
  {
    Instantiation first(with, progress_, stop_);
    ASSERT_TRUE(first.assess(true));
    ASSERT_TRUE(first.identify());
    const NamedSnapshot taken = snapshot();
    first_point_ = taken.slot.consistent_point;
    ASSERT_TRUE(first.prepare());
    run(*source_, change);
    const auto copied = first.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_FALSE(*copied);
    EXPECT_EQ(value(*destination_, "SELECT count(*) FROM t"), "0");
    EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"), "0");
  }
  expect_same_content("u");
  Instantiation second(with, progress_, stop_);
  const auto assessed = second.assess(false);
  ASSERT_TRUE(assessed) << assessed.error().message;
  EXPECT_TRUE(assessed->needs_snapshot);
  ASSERT_TRUE(second.identify());
  const NamedSnapshot taken = snapshot();
  ASSERT_TRUE(second.prepare());
  const auto copied = second.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_TRUE(*copied);
  const auto tables = second.copied_tables();
  ASSERT_TRUE(tables);
  EXPECT_EQ((*tables)[0].copied_from, taken.slot.consistent_point);
  EXPECT_EQ((*tables)[0].copied_to, taken.slot.consistent_point);
  EXPECT_EQ((*tables)[1].copied_from, first_point_);
  ASSERT_TRUE(second.add_constraints(taken.slot.consistent_point));
  expect_same_content("t");
  expect_same_shape({"public", "t"});
  // Otherwise the partitions would be taken for ones that were truncated after the copy.
  EXPECT_EQ(value(*destination_,
                  "SELECT string_agg(l->>1, ',' ORDER BY l->>3) FROM thalweg.stream_table, "
                  "jsonb_array_elements(identity->'leaves') l WHERE table_name = 't'"),
            value(*source_, "SELECT pg_relation_filenode('t_1') || ',' || pg_relation_filenode('t_21')"));
}

TEST_F(OldSnapshot, OfATableThatWasRewritten) {
  copy_after("ALTER TABLE t ALTER v TYPE int USING v + 1");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM t WHERE v = 1"), "5000");
}

TEST_F(OldSnapshot, OfATableThatWasTruncated) { copy_after("TRUNCATE t; INSERT INTO t VALUES (7, 7), (2507, 7)"); }

TEST_F(OldSnapshot, OfATableWithAPartitionThatWasTruncated) { copy_after("TRUNCATE t_21"); }

}  // namespace
}  // namespace thalweg::instantiation
