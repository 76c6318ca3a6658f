#include "capture/logical/slot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "capture/logical/capture_harness.h"

namespace thalweg::capture {
namespace {

using base::ErrorCode;
using namespace std::chrono_literals;

class SlotTest : public CaptureHarness {
 protected:
  base::Result<SlotState> check(const SlotExpectation& expected) {
    auto stream = pg::ReplicationStream::open(conninfo_, "check");
    const auto identity = stream->identify();
    return check_slot(*stream, *identity, expected);
  }
  SlotExpectation expectation() const {
    return {.slot = kSlotName,
            .application_name = capture_application_name(kStreamId),
            .low_watermark = {},
            .system_identifier = {},
            .patience = 200ms};
  }
};

TEST_F(SlotTest, ExportsItsSnapshot) {
  run("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
  auto made = create_slot(conninfo_, kSlotName, {.application_name = capture_application_name(kStreamId)},
                          SourcePlugin::pgoutput);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->identity.database, database_);
  run("INSERT INTO t VALUES (2)");
  auto reader = connect_to(conninfo_);
  sql(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '" + made->slot.snapshot_name + "'");
  EXPECT_EQ(value(reader, "SELECT count(*) FROM t"), "1");
  EXPECT_EQ(create_slot(conninfo_, kSlotName, {.application_name = "x"}, SourcePlugin::pgoutput).error().sqlstate,
            "42710");
}

TEST_F(SlotTest, IsCompared) {
  auto expected = expectation();
  EXPECT_EQ(check(expected).error().code, ErrorCode::slot_lost);
  make_slot({});
  const auto good = check(expected);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->confirmed_flush, start_lsn_);

  expected.low_watermark = start_lsn_;
  EXPECT_TRUE(check(expected));
  expected.low_watermark = {start_lsn_.value - 24};
  const auto gap = check(expected);
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, ErrorCode::position_gap);
  EXPECT_NE(gap.error().message.find("24 bytes"), std::string::npos) << gap.error().message;

  expected = expectation();
  expected.system_identifier = "1";
  EXPECT_EQ(check(expected).error().code, ErrorCode::source_changed);

  auto other = pg::ReplicationStream::open(cluster().conninfo(), "check");
  const auto identity = other->identify();
  EXPECT_EQ(check_slot(*other, *identity, expectation()).error().code, ErrorCode::source_changed);
}

class PromotedSlotTest : public SlotTest {
 protected:
  test::TestCluster& cluster() override {
    static test::TestCluster own;
    return own;
  }
  // Restarts the server as a standby, as a failover would find one, without a second server: the slot stays where it
  // is.
  void become_standby() {
    source_.reset();
    admin_.reset();
    cluster().stop();
    const std::string signal = cluster().directory() + "/data/standby.signal";
    const std::ofstream created(signal);
    struct stat owner{};
    ASSERT_EQ(::stat((cluster().directory() + "/data/PG_VERSION").c_str(), &owner), 0);
    ASSERT_EQ(::chown(signal.c_str(), owner.st_uid, owner.st_gid), 0);
    cluster().start();
    source_.emplace(connect_to(conninfo_));
  }
};

TEST_F(PromotedSlotTest, GoesOnAlongTheNewTimeline) {
  run("CREATE TABLE t (id int)");
  make_slot({});
  become_standby();
  EXPECT_EQ(check(expectation()).error().code, ErrorCode::source_read_only);
  const std::string replayed = value("SELECT pg_last_wal_replay_lsn()");
  ASSERT_EQ(value("SELECT pg_promote()"), "t");
  run("INSERT INTO t VALUES (1)");

  auto stream = pg::ReplicationStream::open(conninfo_, "check");
  const auto identity = stream->identify();
  ASSERT_EQ(identity->timeline, 2);
  const auto good = check_slot(*stream, *identity, expectation());
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->confirmed_flush, start_lsn_);
  const auto end = end_of_timeline(*stream, *identity, 1);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(base::to_string(*end), replayed);
  const auto never = end_of_timeline(*stream, *identity, 9);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, ErrorCode::source_diverged);
  EXPECT_TRUE(never.error().message.contains("left behind")) << never.error().message;
  auto older = *identity;
  older.timeline = 7;  // whose history the server does not have
  const auto untold = end_of_timeline(*stream, older, 1);
  ASSERT_FALSE(untold);
  EXPECT_EQ(untold.error().code, ErrorCode::source_diverged) << untold.error().message;
}

TEST_F(SlotTest, IsNotReadOnAnotherTimelineThanTheStartHasCompared) {
  make_slot({});
  timeline_ = 9;
  start();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (capture_->status().running && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(5ms);
  const auto error = capture_->status().error;
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::connection_lost) << error->message;
}

TEST_F(SlotTest, OfAnotherPluginIsNotOurs) {
  run("SELECT pg_create_logical_replication_slot('thalweg_harness1', 'test_decoding')");
  EXPECT_EQ(check(expectation()).error().code, ErrorCode::slot_lost);
}

TEST_F(SlotTest, GetsThePluginThatTheServerOffers) {
  const auto plugin_in_catalog = [&] { return value("SELECT plugin FROM pg_replication_slots"); };
  const auto drop = [&] { ASSERT_TRUE(drop_slot(*source_, kSlotName, "x", 1s)); };
  for (const auto wanted : {SourcePlugin::automatic, SourcePlugin::thalweg}) {
    const auto made = create_slot(conninfo_, kSlotName, {.application_name = "x"}, wanted);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->plugin, pg::OutputPlugin::thalweg_output);
    EXPECT_EQ(plugin_in_catalog(), "thalweg_output");
    EXPECT_EQ(check(expectation())->plugin, pg::OutputPlugin::thalweg_output);
    drop();
  }
  EXPECT_EQ(create_slot(conninfo_, kSlotName, {.application_name = "x"}, SourcePlugin::pgoutput)->plugin,
            pg::OutputPlugin::pgoutput);
  EXPECT_EQ(check(expectation())->plugin, pg::OutputPlugin::pgoutput);
  drop();
  if (value("SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'") == "0") {
    GTEST_SKIP() << "this server lets every library be used";
  }
  run("ALTER SYSTEM SET output_plugin_libraries = 'pgoutput'");
  run("SELECT pg_reload_conf()");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (value("SHOW output_plugin_libraries") != "pgoutput" && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
  }
  const auto refused = create_slot(conninfo_, kSlotName, {.application_name = "x"}, SourcePlugin::thalweg);
  const auto fallen_back = create_slot(conninfo_, kSlotName, {.application_name = "x"}, SourcePlugin::automatic);
  run("ALTER SYSTEM RESET output_plugin_libraries");
  run("SELECT pg_reload_conf()");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::output_plugin_unavailable) << refused.error().message;
  ASSERT_TRUE(fallen_back) << fallen_back.error().message;
  EXPECT_EQ(fallen_back->plugin, pg::OutputPlugin::pgoutput);
}

TEST_F(SlotTest, InUseElsewhere) {
  make_slot({});
  {
    auto stranger = pg::ReplicationStream::open(conninfo_, "somebody else");
    ASSERT_TRUE(stranger->start(kSlotName, {}, {kSlotName}, {}));
    auto expected = expectation();
    const auto used = check(expected);
    ASSERT_FALSE(used);
    EXPECT_EQ(used.error().code, ErrorCode::slot_in_use);
    EXPECT_NE(used.error().message.find("somebody else"), std::string::npos) << used.error().message;
    EXPECT_EQ(drop_slot(*source_, kSlotName, capture_application_name(kStreamId), 100ms).error().code,
              ErrorCode::slot_in_use);
  }
  // Ours: waited for until the server has missed it.
  std::optional<pg::ReplicationStream> ours =
      *pg::ReplicationStream::open(conninfo_, capture_application_name(kStreamId));
  auto started = ours->start(kSlotName, {}, {kSlotName}, {});
  while (!started && started.error().code == ErrorCode::slot_in_use)
    started = ours->start(kSlotName, {}, {kSlotName}, {});
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(check(expectation()).error().code, ErrorCode::slot_in_use);
  ours.reset();
  auto patient = expectation();
  patient.patience = kPatience;
  EXPECT_TRUE(check(patient));
}

TEST_F(SlotTest, InvalidatedIsLost) {
  make_slot({});
  run("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'");
  run("ALTER SYSTEM SET max_wal_size = '32MB'");
  run("SELECT pg_reload_conf()");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (value("SHOW max_slot_wal_keep_size") != "1MB" && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
  }
  for (int i = 0; i < 12; ++i) {
    run("SELECT pg_switch_wal()");
    run("CREATE TABLE w" + std::to_string(i) + " AS SELECT generate_series(1, 1000)");
  }
  run("CHECKPOINT");
  const auto lost = check(expectation());
  run("ALTER SYSTEM RESET max_slot_wal_keep_size");
  run("ALTER SYSTEM RESET max_wal_size");
  run("SELECT pg_reload_conf()");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::slot_lost) << lost.error().message;
  EXPECT_NE(lost.error().message.find("max_slot_wal_keep_size"), std::string::npos) << lost.error().message;
}

// Of servers that say why, from PostgreSQL 17 on.
TEST(LostSlotTest, NamesWhatTookIt) {
  EXPECT_NE(lost_in_words("thalweg_s", "idle_timeout").find("idle_replication_slot_timeout"), std::string::npos);
  EXPECT_NE(lost_in_words("thalweg_s", "wal_removed").find("max_slot_wal_keep_size"), std::string::npos);
  EXPECT_NE(lost_in_words("thalweg_s", "").find("max_slot_wal_keep_size"), std::string::npos);
  EXPECT_NE(lost_in_words("thalweg_s", "wal_level_insufficient").find("wal_level"), std::string::npos);
}

TEST_F(SlotTest, DropsWhatIsThereOrNot) {
  make_slot({});
  EXPECT_TRUE(drop_slot(*source_, kSlotName, "x", 1s));
  EXPECT_TRUE(drop_slot(*source_, kSlotName, "x", 1s));
  EXPECT_EQ(check(expectation()).error().code, ErrorCode::slot_lost);
}

class PublicationTest : public CaptureHarness {
 protected:
  std::string published() {
    return value(
        "SELECT string_agg(format('%s.%s', schemaname, tablename), ' ' ORDER BY schemaname, tablename)"
        " FROM pg_publication_tables WHERE pubname = 'p'");
  }
};

TEST_F(PublicationTest, FollowsTheListOfTables) {
  run("CREATE SCHEMA \"ö\"; CREATE TABLE a (i int); CREATE TABLE \"ö\".b (i int); CREATE TABLE child () INHERITS (a);"
      "CREATE TABLE part (i int) PARTITION BY LIST (i); CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1)");
  ASSERT_TRUE(ensure_publication(*source_, "p", {{"public", "a"}, {"ö", "b"}}));
  EXPECT_EQ(published(), "public.a ö.b");
  ASSERT_TRUE(ensure_publication(*source_, "p", {{"public", "a"}, {"public", "part"}}));
  EXPECT_EQ(published(), "public.a public.part");
  const std::string before = value("SELECT xmin::text FROM pg_publication_rel ORDER BY 1");
  ASSERT_TRUE(ensure_publication(*source_, "p", {{"public", "part"}, {"public", "a"}, {"public", "a"}}));
  EXPECT_EQ(value("SELECT xmin::text FROM pg_publication_rel ORDER BY 1"), before);
  ASSERT_TRUE(ensure_publication(*source_, "p", {}));
  EXPECT_EQ(published(), "");
  EXPECT_EQ(ensure_publication(*source_, "p", {{"public", "nowhere"}}).error().code, ErrorCode::missing_table);
  run("ALTER PUBLICATION p SET (publish = 'insert')");
  ASSERT_TRUE(ensure_publication(*source_, "p", {{"public", "a"}}));
  EXPECT_EQ(value("SELECT pubdelete AND pubtruncate FROM pg_publication"), "t");
  ASSERT_TRUE(drop_publication(*source_, "p"));
  ASSERT_TRUE(drop_publication(*source_, "p"));
  run("CREATE PUBLICATION p FOR ALL TABLES");
  ASSERT_TRUE(ensure_publication(*source_, "p", {{"public", "a"}}));
  EXPECT_EQ(published(), "public.a");
}

TEST_F(PublicationTest, ATableGoesFromOneToTheOther) {
  run("CREATE TABLE a (i int); CREATE TABLE b (i int)");
  const pg::PublicationNames names{.changes = "p", .inserts = "p_inserts"};
  const auto both = [&] {
    return value(
        "SELECT string_agg(pubname || '.' || tablename, ' ' ORDER BY pubname, tablename) FROM pg_publication_tables");
  };
  const StreamTables without{.changes = {{"public", "a"}}, .inserts = {}};
  const StreamTables with{.changes = {{"public", "a"}}, .inserts = {{"public", "b"}}};
  // Decoding could not go past changes that are older than it.
  ASSERT_TRUE(ensure_publications(*source_, names, without, false));
  EXPECT_EQ(ensure_publications(*source_, names, with, false).error().code, ErrorCode::publication_lost);
  EXPECT_EQ(both(), "p.a");

  ASSERT_TRUE(ensure_publications(*source_, names, with, true));
  EXPECT_EQ(both(), "p.a p_inserts.b");
  run("INSERT INTO b VALUES (1); UPDATE b SET i = 2; DELETE FROM b");
  EXPECT_EQ(value("SELECT pubinsert AND pubtruncate AND pubviaroot AND NOT pubupdate AND NOT pubdelete "
                  "FROM pg_publication WHERE pubname = 'p_inserts'"),
            "t");
  run("ALTER PUBLICATION p_inserts SET (publish = 'insert, update')");
  ASSERT_TRUE(
      ensure_publications(*source_, names, {.changes = {{"public", "b"}}, .inserts = {{"public", "a"}}}, false));
  EXPECT_EQ(both(), "p.b p_inserts.a");
  EXPECT_EQ(value("SELECT pubupdate FROM pg_publication WHERE pubname = 'p_inserts'"), "f");
  // Both or none.
  EXPECT_EQ(
      ensure_publications(*source_, names, {.changes = {}, .inserts = {{"public", "nowhere"}}}, false).error().code,
      ErrorCode::missing_table);
  EXPECT_EQ(both(), "p.b p_inserts.a");
  ASSERT_TRUE(drop_publications(*source_, names));
  ASSERT_TRUE(drop_publications(*source_, names));
  EXPECT_EQ(value("SELECT count(*) FROM pg_publication"), "0");
}

TEST_F(PublicationTest, NeedsThePrivilege) {
  run("CREATE TABLE a (i int); DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN duplicate_object THEN END $$");
  auto plain = connect_to(cluster().conninfo(database_, "plain"));
  EXPECT_EQ(ensure_publication(plain, "p", {{"public", "a"}}).error().code, ErrorCode::insufficient_privilege);
  EXPECT_EQ(
      create_slot(cluster().conninfo(database_, "plain"), kSlotName, {.application_name = "x"}, SourcePlugin::automatic)
          .error()
          .code,
      ErrorCode::insufficient_privilege);
}

}  // namespace
}  // namespace thalweg::capture
