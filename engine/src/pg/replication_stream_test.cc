#include "pg/replication_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using base::ErrorCode;
using namespace std::chrono_literals;

class ReplicationStreamTest : public testing::Test {
 protected:
  ReplicationStreamTest() : connection_(*Connection::open(conninfo_, {.search_path = "public"})) {}
  void SetUp() override {
    ASSERT_TRUE(connection_.script("CREATE TABLE s (id int PRIMARY KEY); CREATE PUBLICATION s_pub FOR TABLE s"));
  }
  void TearDown() override {
    // The sender notices only after a moment that its client has gone.
    while (connection_.query("SELECT 1 FROM pg_replication_slots WHERE active AND pg_sleep(0.01) IS NOT NULL")->size() >
           0) {
    }
    EXPECT_TRUE(connection_.script("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"));
    EXPECT_TRUE(connection_.script("DROP PUBLICATION IF EXISTS s_pub; DROP TABLE IF EXISTS s"));
  }
  ReplicationStream open() {
    auto stream = ReplicationStream::open(conninfo_, "stream_test");
    EXPECT_TRUE(stream);
    return *std::move(stream);
  }
  // The next XLogData, answering keepalives.
  static base::Result<StreamMessage> next_data(ReplicationStream& stream) {
    while (true) {
      THALWEG_ASSIGN(const auto message, stream.receive(10s));
      if (!message) return base::fail(ErrorCode::connection_lost, "no data for 10 s");
      if (!message->is_keepalive) return *message;
      THALWEG_TRY(stream.send_feedback({.written = message->wal_end, .flushed = {}, .applied = {}}));
    }
  }
  std::string conninfo_ = test::shared_cluster().conninfo();
  Connection connection_;
};

TEST_F(ReplicationStreamTest, Identifies) {
  auto stream = open();
  const auto identity = stream.identify();
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->database, "postgres");
  EXPECT_EQ(identity->timeline, 1);
  EXPECT_TRUE(identity->flushed);
  EXPECT_EQ(identity->system_identifier,
            connection_.query("SELECT system_identifier FROM pg_control_system()")->text(0, 0));
  EXPECT_FALSE(identity->standby);
  const auto history = stream.timeline_history(identity->timeline);
  ASSERT_TRUE(history) << history.error().message;
  EXPECT_EQ(history->timeline(), 1);
  EXPECT_EQ(stream.timeline_history(7).error().sqlstate, "58P01");
  EXPECT_TRUE(stream.identify());  // the connection stays usable
}

TEST_F(ReplicationStreamTest, ExportsASnapshotThenStreams) {
  auto stream = open();
  const auto slot = stream.create_slot("s_slot", false);
  ASSERT_TRUE(slot) << slot.error().message;
  EXPECT_TRUE(slot->consistent_point);
  ASSERT_TRUE(connection_.script("INSERT INTO s VALUES (1)"));
  auto reader = Connection::open(conninfo_, {.search_path = "public"});
  ASSERT_TRUE(
      reader->script("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '" + slot->snapshot_name + "'"));
  EXPECT_EQ(reader->query("SELECT count(*) FROM s")->integer(0, 0), 0);

  ASSERT_TRUE(stream.start("s_slot", slot->consistent_point, {"s_pub"}, {}));
  std::string kinds;
  for (int i = 0; i < 4; ++i) {
    const auto message = next_data(stream);
    ASSERT_TRUE(message) << message.error().message;
    kinds += static_cast<char>(message->payload[0]);
    EXPECT_GE(message->wal_end, message->wal_start);
  }
  EXPECT_EQ(kinds, "BRIC");
  auto second = open();
  const auto refused = second.start("s_slot", {}, {"s_pub"}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::slot_in_use) << refused.error().message;
}

TEST_F(ReplicationStreamTest, FeedbackMovesTheSlot) {
  auto stream = open();
  const auto slot = stream.create_slot("s_slot", false);
  ASSERT_TRUE(slot);
  ASSERT_TRUE(stream.start("s_slot", slot->consistent_point, {"s_pub"}, {}));
  ASSERT_TRUE(connection_.script("INSERT INTO s VALUES (1)"));
  base::Lsn end;
  while (true) {
    const auto message = next_data(stream);
    ASSERT_TRUE(message);
    end = std::max(end, message->wal_start);
    if (static_cast<char>(message->payload[0]) == 'C') break;
  }
  ASSERT_TRUE(stream.send_feedback({.written = end, .flushed = end, .applied = end, .reply_requested = true}));
  // Keepalives that were on their way come first; the answer to ours is among them.
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  base::Lsn confirmed;
  bool answered = false;
  while (confirmed != end && std::chrono::steady_clock::now() < deadline) {
    const auto reply = stream.receive(20ms);
    ASSERT_TRUE(reply) << reply.error().message;
    answered = answered || (*reply && (*reply)->is_keepalive);
    const auto rows =
        connection_.query("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 's_slot'");
    ASSERT_TRUE(rows);
    confirmed = base::parse_lsn(rows->text(0, 0)).value_or(base::Lsn{});
  }
  EXPECT_EQ(confirmed, end);
  EXPECT_TRUE(answered);
}

TEST_F(ReplicationStreamTest, AnIdleStreamTimesOut) {
  auto stream = open();
  const auto slot = stream.create_slot("s_slot", true);
  ASSERT_TRUE(slot);
  ASSERT_TRUE(stream.start("s_slot", slot->consistent_point, {"s_pub"}, {}));
  bool silent = false;
  for (int i = 0; i < 100 && !silent; ++i) {
    const auto message = stream.receive(1ms);
    ASSERT_TRUE(message) << message.error().message;
    silent = !message->has_value();
  }
  EXPECT_TRUE(silent);
}

TEST_F(ReplicationStreamTest, TroubleHasAName) {
  auto stream = open();
  EXPECT_EQ(stream.start("nowhere", {}, {"s_pub"}, {}).error().code, ErrorCode::slot_lost);
  ASSERT_TRUE(stream.create_slot("s_slot", false));
  ASSERT_TRUE(stream.start("s_slot", {}, {"no_such_publication"}, {}));
  ASSERT_TRUE(connection_.script("INSERT INTO s VALUES (1)"));
  const auto message = next_data(stream);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, ErrorCode::publication_lost) << message.error().message;
}

TEST(ReplicationLimits, AreNamed) {
  test::TestCluster few{{.settings = {{"max_replication_slots", "1"}, {"max_wal_senders", "2"}}, .hba_lines = {}}};
  auto first = ReplicationStream::open(few.conninfo(), "a");
  auto second = ReplicationStream::open(few.conninfo(), "b");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(ReplicationStream::open(few.conninfo(), "c").error().code, ErrorCode::slot_limit_reached);
  ASSERT_TRUE(first->create_slot("one", false));
  EXPECT_EQ(second->create_slot("two", false).error().code, ErrorCode::slot_limit_reached);

  test::TestCluster physical{{.settings = {{"wal_level", "replica"}}, .hba_lines = {}}};
  auto stream = ReplicationStream::open(physical.conninfo(), "a");
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->create_slot("one", false).error().code, ErrorCode::wal_level_too_low);
}

TEST(CreateSlotSql, AsksForFailoverWhereTheServerHasIt) {
  const auto sql = [](int version, bool temporary, bool standby) {
    return create_slot_sql("s", temporary, OutputPlugin::pgoutput, {.server_version = version, .standby = standby});
  };
  EXPECT_EQ(sql(140'000, false, false), "CREATE_REPLICATION_SLOT \"s\" LOGICAL pgoutput EXPORT_SNAPSHOT");
  EXPECT_EQ(sql(160'000, false, false), "CREATE_REPLICATION_SLOT \"s\" LOGICAL pgoutput (SNAPSHOT 'export')");
  EXPECT_NE(sql(170'000, false, false).find("FAILOVER true"), std::string::npos);
  EXPECT_EQ(sql(170'000, true, false).find("FAILOVER"), std::string::npos);
  EXPECT_EQ(sql(170'000, false, true).find("FAILOVER"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::pg
