#include "apply/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "apply/error_queue.h"
#include "apply/progress_recovery.h"
#include "pg/connection.h"
#include "support/test_cluster.h"

namespace thalweg::apply {
namespace {

pg::Connection open(const std::string& database) {
  auto connection = pg::Connection::open(test::shared_cluster().conninfo(database), {.search_path = "public"});
  if (!connection) throw std::runtime_error(connection.error().message);
  return std::move(*connection);
}

std::string value(pg::Connection& connection, const std::string& sql) {
  const auto rows = connection.script(sql);
  if (!rows) throw std::runtime_error(sql + ": " + rows.error().message);
  return rows->size() == 0 ? "" : std::string(rows->text(0, 0));
}

// Two streams begin at one new destination. One has looked for the schema and waits for the lock; the other makes it.
TEST(Schema, IsMadeOnceByStreamsThatBeginTogether) {
  pg::Connection admin = open("postgres");
  value(admin, "CREATE DATABASE schema_of_two");
  pg::Connection first = open("schema_of_two");
  pg::Connection second = open("schema_of_two");
  const auto unknown = find_stream(second, "secondstream");
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_FALSE(*unknown);

  value(first, "BEGIN; SELECT pg_advisory_xact_lock(7520113906284133)");
  const std::string blocked = "SELECT cardinality(pg_blocking_pids(" + std::to_string(second.backend_pid()) + "))";
  base::Result<void> made_by_second;
  std::thread waits([&] { made_by_second = ensure_schema(second); });
  while (value(admin, blocked) == "0") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto made_by_first = ensure_schema(first);  // within its transaction, and commits it
  waits.join();
  EXPECT_TRUE(made_by_first) << made_by_first.error().message;
  EXPECT_TRUE(made_by_second) << made_by_second.error().message;
}

TEST(Schema, OfSomebodyElseIsLeftAlone) {
  pg::Connection admin = open("postgres");
  value(admin, "CREATE ROLE schema_stranger");
  value(admin, "CREATE DATABASE schema_of_a_stranger");
  pg::Connection connection = open("schema_of_a_stranger");
  value(connection,
        "CREATE SCHEMA thalweg AUTHORIZATION schema_stranger; CREATE TABLE thalweg.schema_version (version int); "
        "CREATE TABLE thalweg.error_queue (id int)");
  const auto code = [](const auto& result) { return result ? std::nullopt : std::optional(result.error().code); };
  EXPECT_EQ(code(ensure_schema(connection)), base::ErrorCode::bookkeeping_not_trusted);
  EXPECT_EQ(code(find_stream(connection, "teststream")), base::ErrorCode::bookkeeping_not_trusted);
  EXPECT_EQ(code(forget_stream(connection, "teststream")), base::ErrorCode::bookkeeping_not_trusted);
  EXPECT_EQ(code(count_parked(connection, "teststream")), base::ErrorCode::bookkeeping_not_trusted);
  EXPECT_EQ(value(connection, "SELECT count(*) FROM pg_class WHERE relnamespace = 'thalweg'::regnamespace"), "2");
}

// A destination of a stream on timeline 1, with progress up to 0/2000 and one transaction in [0/2800, 0/3000).
class Failover : public testing::Test {
 protected:
  void SetUp() override {
    pg::Connection admin = open("postgres");
    value(admin, "CREATE DATABASE failover_" + std::to_string(++databases_));
    connection_.emplace(open("failover_" + std::to_string(databases_)));
    ASSERT_TRUE(ensure_schema(*connection_));
    ASSERT_TRUE(register_stream(*connection_, {.stream_id = "failover01",
                                               .source_system_identifier = "7000",
                                               .source_timeline = 1,
                                               .source_database = "shop",
                                               .slot = "thalweg_failover01",
                                               .start_lsn = {0x1000},
                                               .low_watermark = {0x1000}}));
    const auto recovered = recover_progress(*connection_, "failover01");
    ASSERT_TRUE(recovered) << recovered.error().message;
    LsnRanges ahead;
    ahead.add({{0x2800}, {0x3000}});
    std::string hex;
    for (const std::byte byte : ahead.encode()) hex += fmt::format("{:02x}", std::to_integer<int>(byte));
    value(*connection_,
          "UPDATE thalweg.stream SET low_watermark = '0/2000'; UPDATE thalweg.apply_progress SET "
          "low_watermark = '0/1F00', ranges = '\\x" +
              hex + "' RETURNING 1");
  }
  base::Result<void> follow(TimelineSwitch turn) { return follow_timeline(*connection_, "failover01", turn); }
  std::string timeline() { return value(*connection_, "SELECT source_timeline FROM thalweg.stream"); }
  std::string epoch() { return value(*connection_, "SELECT epoch FROM thalweg.stream"); }

  static inline int databases_ = 0;
  std::optional<pg::Connection> connection_;
};

TEST_F(Failover, IsFollowedWhereAllThatWasAppliedIsTheNewServersToo) {
  const auto followed = follow({.from = 1, .to = 2, .end = {0x3000}, .copied_to = {0x3000}});
  ASSERT_TRUE(followed) << followed.error().message;
  EXPECT_EQ(timeline(), "2");
  EXPECT_EQ(epoch(), "2");  // what a dead engine has not committed by now it never does
  const auto recovered = recover_progress(*connection_, "failover01");
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->low_watermark, base::Lsn{0x2000});
  EXPECT_TRUE(recovered->applied.contains({0x2800}));
  EXPECT_FALSE(recovered->applied.contains({0x3000}));
}

TEST_F(Failover, IsRefusedWhereTheDestinationHasMore) {
  struct Case {
    const char* what;
    TimelineSwitch turn;
    const char* reached;
    const char* bytes;
  };
  for (const Case& c : {Case{"an applier ahead", {1, 2, {0x2FFF}, {}}, "0/3000", " 1 bytes"},
                        Case{"the low watermark", {1, 2, {0x1FFF}, {}}, "0/3000", "4097 bytes"},
                        Case{"a copy", {1, 2, {0x3000}, {0x3001}}, "0/3001", " 1 bytes"}}) {
    const auto refused = follow(c.turn);
    ASSERT_FALSE(refused) << c.what;
    EXPECT_EQ(refused.error().code, base::ErrorCode::source_diverged) << c.what;
    EXPECT_EQ(refused.error().lsn, c.turn.end) << c.what;
    EXPECT_TRUE(refused.error().message.contains(c.reached)) << refused.error().message;
    EXPECT_TRUE(refused.error().message.contains(c.bytes)) << refused.error().message;
    EXPECT_EQ(timeline(), "1") << c.what;
    EXPECT_EQ(epoch(), "1") << c.what;
  }
  value(*connection_, "UPDATE thalweg.apply_progress SET ranges = '' RETURNING 1");
  EXPECT_FALSE(follow({.from = 1, .to = 2, .end = {0x1FFF}, .copied_to = {}}));
  EXPECT_TRUE(follow({.from = 1, .to = 2, .end = {0x2000}, .copied_to = {}}));
}

TEST_F(Failover, GoesBackWhereNothingOfWhatIsBeyondIsTheStreams) {
  base::Lsn asked;
  TimelineSwitch turn{
      .from = 1, .to = 2, .end = {0x2900}, .copied_to = {0x2901}, .check_beyond = [&](base::Lsn reached) {
        asked = reached;
        return base::Result<void>{};
      }};
  EXPECT_FALSE(follow(turn)) << "a copy of there";
  EXPECT_EQ(asked, base::Lsn{});
  turn.copied_to = {};
  ASSERT_TRUE(follow(turn));
  EXPECT_EQ(asked, base::Lsn{0x3000});
  auto recovered = recover_progress(*connection_, "failover01");
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->low_watermark, base::Lsn{0x2000});
  EXPECT_TRUE(recovered->applied.contains({0x28FF}));
  EXPECT_FALSE(recovered->applied.contains({0x2900}));

  turn.from = 2;
  turn.to = 3;
  turn.end = {0x1800};
  ASSERT_TRUE(follow(turn));
  recovered = recover_progress(*connection_, "failover01");
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->low_watermark, base::Lsn{0x1800});
  EXPECT_TRUE(recovered->applied.list().empty());
  EXPECT_EQ(timeline(), "3");
}

TEST_F(Failover, WhatIsBeyondAndTheStreamsIsNamed) {
  const auto refused =
      follow({.from = 1, .to = 2, .end = {0x2900}, .copied_to = {}, .check_beyond = [](base::Lsn) {
                return base::Result<void>(base::fail(base::ErrorCode::source_diverged, "these and those"));
              }});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "these and those");
  EXPECT_EQ(timeline(), "1");
  EXPECT_EQ(epoch(), "1");
}

TEST_F(Failover, WaitsForWhatADeadEngineIsCommitting) {
  pg::Connection dead = open("failover_" + std::to_string(databases_));
  pg::Connection admin = open("postgres");
  value(dead, "BEGIN; UPDATE thalweg.apply_progress SET low_watermark = '0/4000' RETURNING 1");
  const std::string blocked =
      "SELECT cardinality(pg_blocking_pids(" + std::to_string(connection_->backend_pid()) + "))";
  std::thread commits([&] {
    while (value(admin, blocked) == "0") std::this_thread::sleep_for(std::chrono::milliseconds(1));
    value(dead, "COMMIT");
  });
  const auto refused = follow({.from = 1, .to = 2, .end = {0x3000}, .copied_to = {}});
  commits.join();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("0/4000")) << refused.error().message;
  EXPECT_EQ(timeline(), "1");
}

}  // namespace
}  // namespace thalweg::apply
