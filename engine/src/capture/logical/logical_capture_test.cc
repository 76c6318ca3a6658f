#include "capture/logical/logical_capture.h"

#include <signal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "capture/logical/capture_harness.h"

namespace thalweg::capture {
namespace {

using base::ErrorCode;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

// Everything holds with either output plugin.
class LogicalCaptureTest : public CaptureHarness, public testing::WithParamInterface<SourcePlugin> {
 protected:
  LogicalCaptureTest() { plugin_ = GetParam(); }

  static size_t count(const Words& words, std::string_view prefix) {
    return static_cast<size_t>(std::ranges::count_if(words, [&](const auto& w) { return w.starts_with(prefix); }));
  }
  // Only thalweg_output says which subtransactions committed: only with it do transactions come before their commit.
  static bool streams() { return GetParam() == SourcePlugin::thalweg; }
  static std::string committed() { return streams() ? "COMMIT streamed" : "COMMIT"; }
  static std::string inserted() { return streams() ? "INSERT streamed t v1 " : "INSERT t v1 "; }
  int64_t gauge(std::string_view name) const {
    for (const auto& [known, value] : capture_->sample().gauges) {
      if (known == name) return value;
    }
    return -1;
  }
  // Consumes frames in between.
  bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      if (const std::byte* bytes = queue_->browse(0, 20ms); bytes != nullptr) {
        const auto frame = lcr::FrameView::decode({bytes, *reinterpret_cast<const uint32_t*>(bytes)});
        EXPECT_TRUE(frame);
        if (frame) describe(*frame);
        queue_->dequeue(0);
      }
    }
    return false;
  }
};

TEST_P(LogicalCaptureTest, CapturesEveryKindOfChange) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text, n int)");
  make_slot({{"public", "t"}});
  start();
  run("BEGIN; INSERT INTO t VALUES (1, 'one', NULL), (2, 'zwei €', 5); UPDATE t SET v = 'uno' WHERE id = 1;"
      "DELETE FROM t WHERE id = 2; COMMIT");
  run("UPDATE t SET id = 10 WHERE id = 1");
  run("TRUNCATE t RESTART IDENTITY CASCADE");
  EXPECT_EQ(transactions(3),
            (Words{"BEGIN", "TABLE public.t v1 d *id v n", "INSERT t v1 (1,one,null)", "INSERT t v1 (2,zwei €,5)",
                   "UPDATE t v1 (1,uno,null)", "DELETE t v1 key (2,null,null)", "COMMIT", "BEGIN",
                   "UPDATE t v1 key (1,null,null) (10,uno,null)", "COMMIT", "BEGIN", "TABLE public.t v1 d *id v n",
                   "TRUNCATE 1 cascade restart", "COMMIT"}));
  const auto sample = capture_->sample();
  EXPECT_TRUE(eventually([&] { return capture_->sample().counters[1].second == 3; }));
  EXPECT_EQ(capture_->sample().counters[0], (std::pair<std::string_view, uint64_t>{"lcrs", 6}));
  EXPECT_EQ(capture_->sample().counters[4],
            (std::pair<std::string_view, uint64_t>{"batches", GetParam() == SourcePlugin::thalweg ? 3 : 0}));
  EXPECT_EQ(sample.type, "CAPTURE");
}

TEST_P(LogicalCaptureTest, ValuesWithoutBinaryFormComeAsTextOfOneForm) {
  run("CREATE TABLE t (id int PRIMARY KEY, q tsquery, list aclitem[], named regclass, price money);"
      "ALTER DATABASE " +
      database_ + " SET search_path = public; ALTER DATABASE " + database_ + " SET lc_monetary = 'C.UTF-8'");
  make_slot({{"public", "t"}});
  start();
  run("INSERT INTO t VALUES (1, '', '{postgres=r/postgres}', 't', 1234.5)");
  // Names have their schemas, so that any search_path reads them.
  EXPECT_EQ(transactions(1), (Words{"BEGIN", "TABLE public.t v1 d *id q list named price",
                                    "INSERT t v1 (1,,{postgres=r/postgres},public.t,$1,234.50)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, OldRowsKeysAndToast) {
  run("CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY FULL;"
      "CREATE TABLE \"Straße \"\"x\"\"\" (\"größe\" int PRIMARY KEY, big text);"
      "ALTER TABLE \"Straße \"\"x\"\"\" ALTER big SET STORAGE EXTERNAL;"
      "CREATE TABLE u (id int NOT NULL, v text); CREATE UNIQUE INDEX u_id ON u (id);"
      "ALTER TABLE u REPLICA IDENTITY USING INDEX u_id");
  make_slot({{"public", "f"}, {"public", "Straße \"x\""}, {"public", "u"}});
  start();
  run("BEGIN; INSERT INTO f VALUES (1, 'x'); UPDATE f SET b = NULL; DELETE FROM f; COMMIT");
  run("INSERT INTO \"Straße \"\"x\"\"\" VALUES (1, repeat('y', 10000))");
  run("UPDATE \"Straße \"\"x\"\"\" SET \"größe\" = 2");
  run("BEGIN; INSERT INTO u VALUES (3, 'w'); DELETE FROM u; COMMIT");
  EXPECT_EQ(transactions(4),
            (Words{"BEGIN", "TABLE public.f v1 f *a *b", "INSERT f v1 (1,x)", "UPDATE f v1 old (1,x) (1,null)",
                   "DELETE f v1 old (1,null)", "COMMIT", "BEGIN", "TABLE public.Straße \"x\" v1 d *größe big",
                   "INSERT Straße \"x\" v1 (1,10000 bytes)", "COMMIT", "BEGIN",
                   "UPDATE Straße \"x\" v1 key (1,null) (2,unchanged)", "COMMIT", "BEGIN", "TABLE public.u v1 i *id v",
                   "INSERT u v1 (3,w)", "DELETE u v1 key (3,null)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, AChangedTableGetsANewVersion) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_slot({{"public", "t"}});
  start();
  run("INSERT INTO t VALUES (1)");
  run("ALTER TABLE t ADD v text");
  run("INSERT INTO t VALUES (2, 'x')");
  run("ANALYZE t");  // invalidates the source's caches: the same description comes again
  run("INSERT INTO t VALUES (3, 'y')");
  EXPECT_EQ(transactions(3), (Words{"BEGIN", "TABLE public.t v1 d *id", "INSERT t v1 (1)", "COMMIT", "BEGIN",
                                    "TABLE public.t v2 d *id v", "INSERT t v2 (2,x)", "COMMIT", "BEGIN",
                                    "TABLE public.t v2 d *id v", "INSERT t v2 (3,y)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, PartitionsComeAsTheirRoot) {
  run("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) "
      "TO (20)");
  make_slot({{"public", "p"}});
  start();
  run("INSERT INTO p VALUES (1), (11)");
  EXPECT_EQ(transactions(1), (Words{"BEGIN", "TABLE public.p v1 d *id", "PARTITION public.p1", "INSERT p v1 (1)",
                                    "TABLE public.p v1 d *id", "PARTITION public.p2", "INSERT p v1 (11)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, StreamsLargeTransactions) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  make_slot({{"public", "t"}});
  start();
  run("INSERT INTO t SELECT i, repeat('x', 20) FROM generate_series(1, 5000) i");
  auto words = transactions(1);
  EXPECT_EQ(words.back(), committed());
  EXPECT_EQ(count(words, inserted()), 5000u);
  EXPECT_EQ(count(words, "BEGIN"), streams() ? 0u : 1u);
  EXPECT_EQ(words[streams() ? 1 : 2], inserted() + "(1,xxxxxxxxxxxxxxxxxxxx)");
  EXPECT_EQ(gauge("streaming"), streams() ? 1 : 0);

  // A streamed transaction that is rolled back, with a small one beside it.
  auto other = connect_to(conninfo_);
  sql(other, "BEGIN; INSERT INTO t SELECT i, repeat('x', 20) FROM generate_series(10001, 13000) i");
  run("INSERT INTO t VALUES (9999, 'small')");
  sql(other, "ROLLBACK");
  run("INSERT INTO t VALUES (9998, 'after')");
  words = transactions(2);
  EXPECT_EQ(count(words, "INSERT streamed t v1 ") > 1000u, streams());
  EXPECT_EQ(count(words, "ABORT"), streams() ? 1u : 0u);
  EXPECT_EQ(count(words, "COMMIT streamed"), 0u);
  EXPECT_EQ(words[words.size() - 2], "INSERT t v1 (9998,after)");
}

TEST_P(LogicalCaptureTest, SubtransactionsKeepTheirName) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  make_slot({{"public", "t"}});
  start();
  run("BEGIN; INSERT INTO t SELECT i, repeat('x', 20) FROM generate_series(1, 3000) i; SAVEPOINT a;"
      "INSERT INTO t SELECT i, repeat('x', 20) FROM generate_series(5001, 8000) i; ROLLBACK TO a;"
      "INSERT INTO t VALUES (4000, 'kept'); COMMIT");
  const auto words = transactions(1);
  EXPECT_EQ(words.back(), committed());
  EXPECT_EQ(count(words, "ABORT sub"), streams() ? 1u : 0u);
  EXPECT_EQ(count(words, inserted()), streams() ? 3000u : 3001u);
  EXPECT_EQ(count(words, "INSERT streamed sub t v1 ") > 1000u, streams());
  EXPECT_EQ(count(words, "INSERT streamed sub t v1 (4000,kept)"), streams() ? 1u : 0u);
}

// PostgreSQL sends no abort of a subtransaction that it had spilled before it streamed it.
TEST_P(LogicalCaptureTest, WhatWasRolledBackIsAborted) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL");
  make_slot({{"public", "t"}});
  start();
  run("BEGIN; INSERT INTO t VALUES (1, 'kept'); SAVEPOINT a; INSERT INTO t VALUES (2, repeat('x', 12000000))");
  if (streams()) {
    EXPECT_EQ(next(), "TABLE public.t v1 d *id v");
    EXPECT_EQ(next(), "INSERT streamed t v1 (1,kept)");
    EXPECT_EQ(next(), "INSERT streamed sub t v1 (2,12000000 bytes)");
  }
  run("ROLLBACK TO a; INSERT INTO t VALUES (3, 'kept, too'); COMMIT");
  EXPECT_EQ(transactions(1), streams()
                                 ? (Words{"INSERT streamed sub t v1 (3,kept, too)", "ABORT sub", "COMMIT streamed"})
                                 : (Words{"BEGIN", "TABLE public.t v1 d *id v", "INSERT t v1 (1,kept)",
                                          "INSERT t v1 (3,kept, too)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, PreparedTransactionsComeWhenTheyCommit) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_slot({{"public", "t"}});
  start();
  run("BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'kept'");
  run("BEGIN; INSERT INTO t VALUES (2); PREPARE TRANSACTION 'dropped'");
  run("INSERT INTO t VALUES (3)");
  run("COMMIT PREPARED 'kept'");
  run("ROLLBACK PREPARED 'dropped'");
  run("INSERT INTO t VALUES (4)");
  EXPECT_EQ(transactions(3), (Words{"BEGIN", "TABLE public.t v1 d *id", "INSERT t v1 (3)", "COMMIT", "BEGIN",
                                    "INSERT t v1 (1)", "COMMIT", "BEGIN", "INSERT t v1 (4)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, AnIdleSourceReleasesItsWal) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_slot({{"public", "t"}});
  start();
  // WAL that is none of the stream's: another database's.
  sql(admin(), "CREATE TABLE IF NOT EXISTS noise (i int); INSERT INTO noise SELECT generate_series(1, 1000)");
  const auto end = base::parse_lsn(value("SELECT pg_current_wal_lsn()"));
  ASSERT_TRUE(end);
  EXPECT_TRUE(eventually([&] { return slot_position() >= *end; }));
  EXPECT_GE(progress_, *end);
  EXPECT_TRUE(eventually([&] { return std::string_view{capture_->status().state} == "WAITING FOR WAL"; }));
  EXPECT_GE(capture_->status().source_end, *end);
}

TEST_P(LogicalCaptureTest, OnlyWhatIsConfirmedIsForgotten) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_slot({{"public", "t"}});
  start();
  confirming_ = false;
  run("INSERT INTO t VALUES (1)");
  run("INSERT INTO t VALUES (2)");
  ASSERT_EQ(transactions(2).size(), 7u);
  const base::Lsn before = slot_position();
  EXPECT_EQ(before, start_lsn_);
  start();  // nothing was confirmed: everything comes again
  ASSERT_EQ(transactions(1), (Words{"BEGIN", "TABLE public.t v1 d *id", "INSERT t v1 (1)", "COMMIT"}));
  confirmed_.store(committed_.value);
  EXPECT_TRUE(eventually([&] { return slot_position() == base::Lsn{confirmed_.load()}; }));
  start_lsn_ = {confirmed_.load()};
  start();
  EXPECT_EQ(transactions(1), (Words{"BEGIN", "TABLE public.t v1 d *id", "INSERT t v1 (2)", "COMMIT"}));
}

TEST_P(LogicalCaptureTest, AGracefulEndConfirmsWhatIsDrained) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_slot({{"public", "t"}});
  start();
  run("INSERT INTO t VALUES (1)");
  while (queue_->gauges().depth < 4) std::this_thread::sleep_for(5ms);
  capture_->request_stop();
  capture_->await_quiet();
  EXPECT_FALSE(capture_->status().enqueuing);
  EXPECT_EQ(transactions(1).back(), "COMMIT");
  EXPECT_STREQ(capture_->status().state, "SHUTTING DOWN");
  capture_->join();
  EXPECT_FALSE(capture_->status().running);
  EXPECT_FALSE(capture_->status().error);
  EXPECT_EQ(capture_->status().confirmed, committed_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (slot_position() != committed_ && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(slot_position(), committed_);
}

TEST_P(LogicalCaptureTest, TroubleEndsItWithAName) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  start();
  EXPECT_TRUE(eventually([&] { return !capture_->status().running; }));
  ASSERT_TRUE(capture_->status().error);
  EXPECT_EQ(capture_->status().error->code, ErrorCode::slot_lost);

  make_slot({{"public", "t"}});
  start();
  run("INSERT INTO t VALUES (1)");
  ASSERT_EQ(transactions(1).back(), "COMMIT");
  sql(admin(), "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active");
  EXPECT_TRUE(eventually([&] { return !capture_->status().running; }));
  ASSERT_TRUE(capture_->status().error);
  EXPECT_EQ(capture_->status().error->code, ErrorCode::connection_lost) << capture_->status().error->message;
  EXPECT_STREQ(capture_->status().state, "ABORTING");
}

// As behind a path that was cut without a word: nothing comes, and nothing breaks.
TEST_P(LogicalCaptureTest, ASourceThatFallsSilentIsGivenUp) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_slot({{"public", "t"}});
  start();
  run("INSERT INTO t VALUES (1)");
  ASSERT_EQ(transactions(1).back(), "COMMIT");
  const pid_t walsender = std::stoi(value(admin(), "SELECT active_pid FROM pg_replication_slots WHERE active"));
  clock_.shift(40s);  // a source that answers may be silent
  std::this_thread::sleep_for(500ms);
  clock_.shift(40s);
  std::this_thread::sleep_for(500ms);
  ASSERT_FALSE(capture_->status().error) << capture_->status().error->message;
  ASSERT_EQ(kill(walsender, SIGSTOP), 0);
  clock_.shift(40s);
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(capture_->status().error);
  clock_.shift(40s);
  EXPECT_TRUE(eventually([&] { return !capture_->status().running; }));
  ASSERT_EQ(kill(walsender, SIGCONT), 0);
  ASSERT_TRUE(capture_->status().error);
  EXPECT_EQ(capture_->status().error->code, ErrorCode::connection_lost) << capture_->status().error->message;
}

// The consumer stands still for longer than wal_sender_timeout; memory stays within the queue's bounds.
class SlowConsumerTest : public LogicalCaptureTest {
 protected:
  test::TestCluster& cluster() override {
    // Two thirds of it are left to a machine that stands still between two feedbacks.
    static test::TestCluster impatient{{.settings = {{"wal_sender_timeout", "6s"}}, .hba_lines = {}}};
    return impatient;
  }
};

TEST_P(SlowConsumerTest, PausesAndKeepsTheConnection) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  make_slot({{"public", "t"}});
  start({.slots = 64, .memory_bytes = 64 * 1024, .consumers = 1});
  run("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i");
  const auto paused = [&] { return std::string_view{capture_->status().state} == "PAUSED FOR FLOW CONTROL"; };
  while (!paused() && !capture_->status().error) std::this_thread::sleep_for(5ms);
  const auto until = std::chrono::steady_clock::now() + 14s;  // longer than the server's patience: the point here
  while (std::chrono::steady_clock::now() < until) {
    ASSERT_FALSE(capture_->status().error) << capture_->status().error->message;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_TRUE(paused());
  EXPECT_LE(queue_->gauges().depth_bytes, 64u * 1024);
  EXPECT_GT((*capture_->sample().time_ns)[static_cast<size_t>(telemetry::Activity::flow_control)], 12'000'000'000u);
  const auto words = transactions(1);
  EXPECT_EQ(count(words, inserted()), 20'000u);
  EXPECT_EQ(words.back(), committed());
  EXPECT_FALSE(capture_->status().error);
}

std::string plugin_name(const testing::TestParamInfo<SourcePlugin>& plugin) {
  return plugin.param == SourcePlugin::thalweg ? "thalweg" : "pgoutput";
}
const auto kPlugins = testing::Values(SourcePlugin::pgoutput, SourcePlugin::thalweg);
INSTANTIATE_TEST_SUITE_P(Plugins, LogicalCaptureTest, kPlugins, plugin_name);
INSTANTIATE_TEST_SUITE_P(Plugins, SlowConsumerTest, kPlugins, plugin_name);

}  // namespace
}  // namespace thalweg::capture
