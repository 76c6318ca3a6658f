#include "capture/wal/mined_tables.h"

#include <gtest/gtest.h>

#include <fstream>

#include "dictionary/mined_source.h"

namespace thalweg::capture {
namespace {

using dictionary::MinedSource;
using mining::Wanted;

class MinedTablesTest : public testing::Test {
 protected:
  MinedTablesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-mined-tables-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    file_ = folder_ / "tables.json";
    run("CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE log (line text); CREATE TABLE later (line text);"
        "CREATE PUBLICATION changes FOR TABLE orders, log;"
        "CREATE PUBLICATION inserts WITH (publish = 'insert, truncate')");
    log_ = oid("log");
  }
  ~MinedTablesTest() override { std::filesystem::remove_all(folder_); }

  void run(const std::string& sql) { MinedSource::value(session_, sql); }
  uint32_t oid(const std::string& table) {
    return static_cast<uint32_t>(std::stoul(MinedSource::value(session_, "SELECT '" + table + "'::regclass::oid")));
  }
  base::Lsn now() { return *base::parse_lsn(MinedSource::value(session_, "SELECT pg_current_wal_insert_lsn()")); }
  // As a session that goes on from there.
  MinedTables begin(base::Lsn needed_from) {
    auto tables = MinedTables::read(session_, {"changes", "inserts"});
    EXPECT_TRUE(tables) << tables.error().message;
    const auto recalled = tables->recall(file_, needed_from);
    EXPECT_TRUE(recalled) << recalled.error().message;
    return std::move(*tables);
  }
  void give_up(const std::string& table) {
    run("ALTER PUBLICATION changes DROP TABLE " + table + "; ALTER PUBLICATION inserts ADD TABLE " + table);
  }

  MinedSource source_;
  pg::Connection session_ = source_.connect();
  std::filesystem::path folder_, file_;
  uint32_t log_ = 0;
};

TEST_F(MinedTablesTest, AReaderWithoutASourceKnowsWhatTheStreamHadThen) {
  EXPECT_EQ(MinedTables::recalled(file_, {1})->oids(), std::vector<uint32_t>{});
  const base::Lsn start = now();
  begin(start);
  run("ALTER PUBLICATION changes ADD TABLE later");
  begin(start);
  const base::Lsn end = now();
  auto tables = MinedTables::recalled(file_, start);
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_TRUE(tables->had(log_));
  EXPECT_FALSE(tables->had(oid("later"))) << "it came later";
  EXPECT_TRUE(tables->go_to({end.value + 1}));
  EXPECT_TRUE(tables->had(oid("later")));
  EXPECT_EQ(tables->wanted(oid("later")), Wanted::everything);
}

TEST_F(MinedTablesTest, UpdatesFromBeforeTheyWereGivenUpCount) {
  const base::Lsn start = now();
  EXPECT_EQ(begin(start).wanted(log_), Wanted::everything);
  give_up("log");
  for (int session = 0; session < 2; ++session) {
    MinedTables tables = begin(start);
    EXPECT_EQ(tables.wanted(log_), Wanted::identified) << "the source may have had some without identity by then";
    EXPECT_EQ(tables.wanted(oid("orders")), Wanted::everything);
    EXPECT_EQ(tables.wanted(oid("later")), Wanted::nothing);
    EXPECT_FALSE(tables.go_to(start));
    const base::Lsn behind = now();
    EXPECT_TRUE(tables.go_to(behind));
    EXPECT_EQ(tables.wanted(log_), Wanted::inserts);
    EXPECT_FALSE(tables.go_to({behind.value + 1'000'000})) << "nothing changes behind the last read";
  }
  EXPECT_EQ(begin(now()).wanted(log_), Wanted::inserts);
  EXPECT_EQ(begin(start).wanted(log_), Wanted::inserts) << "earlier rows are not needed any more";
}

// Its rows before that are from before its copy.
TEST_F(MinedTablesTest, ATableIsAsItCame) {
  const base::Lsn start = now();
  begin(start);
  run("ALTER PUBLICATION inserts ADD TABLE later");
  EXPECT_EQ(begin(start).wanted(oid("later")), Wanted::inserts);
}

// The copy that this needs has a snapshot from before the read.
TEST_F(MinedTablesTest, WhatWasTakenBackComesFromBeforeTheRead) {
  const base::Lsn start = now();
  begin(start);
  give_up("log");
  begin(start);
  const base::Lsn given_up = now();
  run("ALTER TABLE log REPLICA IDENTITY FULL; ALTER PUBLICATION inserts DROP TABLE log;"
      "ALTER PUBLICATION changes ADD TABLE log");
  MinedTables tables = begin(start);
  const base::Lsn taken_back = now();
  EXPECT_EQ(tables.wanted(log_), Wanted::identified);
  EXPECT_TRUE(tables.go_to(given_up));
  EXPECT_EQ(tables.wanted(log_), Wanted::identified);
  EXPECT_TRUE(tables.go_to(taken_back));
  EXPECT_EQ(tables.wanted(log_), Wanted::everything);
}

TEST_F(MinedTablesTest, ADamagedFileIsAnError) {
  std::ofstream(file_) << "[{";
  auto tables = MinedTables::read(session_, {"changes"});
  ASSERT_TRUE(tables);
  EXPECT_EQ(tables->recall(file_, now()).error().code, base::ErrorCode::file_error);
}

}  // namespace
}  // namespace thalweg::capture
