#include <gtest/gtest.h>

#include <array>
#include <string>

#include "pg/connection.h"
#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using base::ErrorCode;

class PipelineTest : public testing::Test {
 protected:
  PipelineTest() : connection_(*Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"})) {}
  void SetUp() override { ASSERT_TRUE(connection_.script("CREATE TEMP TABLE p (id int PRIMARY KEY, v text)")); }
  Connection connection_;
};

std::array<std::byte, 4> int4(uint32_t value) {
  return {std::byte(value >> 24), std::byte(value >> 16), std::byte(value >> 8), std::byte(value)};
}

TEST_F(PipelineTest, CountsRowsOfEachStatement) {
  Pipeline pipeline(connection_);
  const std::array types{base::TypeId{23}, base::TypeId{25}};
  ASSERT_TRUE(pipeline.prepare("ins", "INSERT INTO p VALUES ($1, $2)", types));
  for (uint32_t i = 0; i < 3; ++i) {
    const auto id = int4(i);
    const std::array parameters{Parameter{.bytes = id, .type = {}, .is_null = false, .is_binary = true},
                                text_parameter("x")};
    ASSERT_TRUE(pipeline.execute_prepared("ins", parameters));
  }
  ASSERT_TRUE(pipeline.execute("UPDATE p SET v = 'y' WHERE id > 0"));
  ASSERT_TRUE(pipeline.execute("DELETE FROM p WHERE id = 77"));
  auto outcome = pipeline.sync();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->error);
  EXPECT_EQ(outcome->affected, (std::vector<uint64_t>{0, 1, 1, 1, 2, 0}));
  auto empty = pipeline.sync();
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->affected.empty());
}

TEST_F(PipelineTest, SyncsBehindOneAnotherAreTransactionsOfTheirOwn) {
  Pipeline pipeline(connection_);
  for (const char* sql : {"INSERT INTO p VALUES (1), (2)", "INSERT INTO p VALUES (1)", "INSERT INTO p VALUES (3)"}) {
    ASSERT_TRUE(pipeline.execute(sql));
    ASSERT_TRUE(pipeline.send_sync());
  }
  std::vector<std::optional<Pipeline::Outcome>> outcomes;
  while (outcomes.size() < 2) {
    auto outcome = pipeline.outcome();
    ASSERT_TRUE(outcome) << outcome.error().message;
    if (*outcome) {
      outcomes.push_back(std::move(*outcome));
      continue;
    }
    pollfd polled = pipeline.polled();
    ASSERT_EQ(poll(&polled, 1, 10'000), 1);
  }
  auto last = pipeline.await_outcome();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_FALSE(outcomes[0]->error);
  EXPECT_EQ(outcomes[0]->affected, (std::vector<uint64_t>{2}));
  ASSERT_TRUE(outcomes[1]->error);
  EXPECT_EQ(outcomes[1]->error->sqlstate, "23505");
  EXPECT_FALSE(last->error);
  EXPECT_EQ(last->affected, (std::vector<uint64_t>{1}));
  const auto none = pipeline.outcome();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

// An applier that gives up in the middle relies on this: the sync alone would commit.
TEST_F(PipelineTest, ARollbackUndoesWhatWasSentWithoutBegin) {
  Pipeline pipeline(connection_);
  ASSERT_TRUE(pipeline.execute("INSERT INTO p VALUES (1)"));
  ASSERT_TRUE(pipeline.execute("ROLLBACK"));
  const auto undone = pipeline.sync();
  ASSERT_TRUE(undone);
  EXPECT_FALSE(undone->error);
  ASSERT_TRUE(pipeline.execute("INSERT INTO p VALUES (1)"));
  const auto again = pipeline.sync();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->error) << again->error->message;
}

TEST_F(PipelineTest, NamesTheFailedStatementAndGoesOn) {
  Pipeline pipeline(connection_);
  ASSERT_TRUE(pipeline.execute("INSERT INTO p VALUES (1)"));
  ASSERT_TRUE(pipeline.execute("INSERT INTO p VALUES (1)"));
  ASSERT_TRUE(pipeline.execute("INSERT INTO p VALUES (2)"));
  auto outcome = pipeline.sync();
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->sqlstate, "23505");
  EXPECT_EQ(outcome->failed_statement, 1u);
  EXPECT_EQ(outcome->affected.size(), 3u);
  ASSERT_TRUE(pipeline.execute("INSERT INTO p VALUES (3)"));
  outcome = pipeline.sync();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->error);
  EXPECT_EQ(outcome->affected, (std::vector<uint64_t>{1}));
}

// No statement fails then. A caller that took the error for one's result would wait for that of the sync for ever.
TEST_F(PipelineTest, WhatIsDeferredFailsAtTheSync) {
  ASSERT_TRUE(connection_.query("CREATE TEMP TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"));
  Pipeline pipeline(connection_);
  ASSERT_TRUE(pipeline.execute("INSERT INTO late VALUES (1)"));
  ASSERT_TRUE(pipeline.execute("INSERT INTO late VALUES (1)"));
  const auto refused = pipeline.sync();
  ASSERT_TRUE(refused) << refused.error().message;
  ASSERT_TRUE(refused->error);
  EXPECT_EQ(refused->error->sqlstate, "23505");
  EXPECT_EQ(refused->affected, (std::vector<uint64_t>{1, 1}));
  ASSERT_TRUE(pipeline.execute("INSERT INTO late VALUES (1)"));
  const auto again = pipeline.sync();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->error) << again->error->message;
  EXPECT_EQ(again->affected, (std::vector<uint64_t>{1}));
}

// Both directions far beyond what the sockets hold: each row goes out as 1 kB and comes back as a NOTICE or a row.
TEST_F(PipelineTest, LargeBatchesDoNotStall) {
  Pipeline pipeline(connection_);
  const std::string value(1000, 'v');
  const std::array types{base::TypeId{25}};
  ASSERT_TRUE(pipeline.prepare("echo", "SELECT $1 || $1", types));
  const std::array parameters{text_parameter(value)};
  for (int i = 0; i < 40'000; ++i) ASSERT_TRUE(pipeline.execute_prepared("echo", parameters));
  auto outcome = pipeline.sync();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->error);
  EXPECT_EQ(outcome->affected.size(), 40'001u);
}

TEST_F(PipelineTest, HoldsTheConnectionUntilItIsGone) {
  {
    Pipeline pipeline(connection_);
    EXPECT_EQ(connection_.query("SELECT 1").error().code, ErrorCode::invalid_request);
    ASSERT_TRUE(pipeline.execute("SELECT 1"));  // never synced: the destructor does
  }
  EXPECT_TRUE(connection_.query("SELECT 1"));
  {
    Pipeline pipeline(connection_);
    ASSERT_TRUE(pipeline.execute("INSERT INTO nowhere VALUES (1)"));
  }
  EXPECT_TRUE(connection_.query("SELECT 1"));
}

TEST_F(PipelineTest, NullsAndEmptyValues) {
  {
    Pipeline pipeline(connection_);
    const std::array parameters{Parameter{.bytes = {}, .type = {25}, .is_null = true, .is_binary = true},
                                Parameter{.bytes = {}, .type = {25}, .is_null = false, .is_binary = true},
                                text_parameter("")};
    ASSERT_TRUE(pipeline.execute(
        "INSERT INTO p VALUES (1, coalesce($1, 'null') || '[' || $2 || ']' || '[' || $3 || ']')", parameters));
    ASSERT_TRUE(pipeline.sync());
  }
  EXPECT_EQ(connection_.query("SELECT v FROM p")->text(0, 0), "null[][]");
}

TEST_F(PipelineTest, ALostBackendIsTold) {
  auto other = Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
  ASSERT_TRUE(other);
  Pipeline pipeline(connection_);
  ASSERT_TRUE(pipeline.execute("SELECT 1"));
  ASSERT_TRUE(other->query("SELECT pg_terminate_backend($1::int, 10000)", {std::to_string(connection_.backend_pid())}));
  const auto sent = pipeline.execute("SELECT 2");
  const auto outcome = pipeline.sync();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::connection_lost);
  EXPECT_TRUE(connection_.broken());
}

}  // namespace
}  // namespace thalweg::pg
