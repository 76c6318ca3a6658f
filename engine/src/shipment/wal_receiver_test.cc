#include "shipment/wal_receiver.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "shipment/segment_name.h"
#include "shipment/source_identity.h"
#include "support/test_cluster.h"

// A real source under load, and a receiver in a process of its own; both are killed again and again.
// THALWEG_SHIPMENT_KILLS: how often (20).

namespace thalweg::shipment {
namespace {

constexpr uint32_t kSegmentBytes = 16U << 20;
constexpr const char* kSlot = "shipped";

class WalReceiverTest : public ::testing::Test {
 protected:
  WalReceiverTest()
      : cluster_({.settings = {{"fsync", "on"}, {"max_wal_size", "64MB"}, {"min_wal_size", "32MB"}}, .hba_lines = {}}) {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-shipment-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    void* const shared =
        mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    durable_ = new (shared) std::atomic<uint64_t>{0};
  }
  ~WalReceiverTest() override {
    end_receiver();
    std::filesystem::remove_all(directory_);
    munmap(durable_, sizeof(std::atomic<uint64_t>));
  }

  base::Conninfo conninfo() const { return base::Conninfo{cluster_.conninfo()}; }
  std::string value(const std::string& sql) {
    auto connection = pg::Connection::open(conninfo(), {});
    if (!connection) throw std::runtime_error(connection.error().message);
    const auto rows = connection->script(sql);
    if (!rows) throw std::runtime_error(rows.error().message);
    return rows->size() == 1 ? std::string{rows->text(0, 0)} : "";
  }
  base::Lsn lsn(const std::string& sql) { return base::parse_lsn(value(sql)).value_or(base::Lsn{}); }

  void begin_receiver() {
    receiver_ = fork();
    ASSERT_GE(receiver_, 0);
    if (receiver_ != 0) return;
    const base::SystemClock clock;
    const std::atomic<bool> stop{false};
    std::optional<Staging> staging;
    while (true) {  // until it is killed
      WalReceiver receiver({.source = conninfo(),
                            .slot = kSlot,
                            .directory = directory_,
                            .clock = clock,
                            .stop = &stop,
                            .on_durable = [this](base::Lsn lsn) { *durable_ = std::max(durable_->load(), lsn.value); }},
                           staging);
      const auto ran = receiver.run();
      // A source that is away comes back; its slot may still be the killed receiver's for a moment.
      if (base::class_of(ran.error().code) != base::ErrorClass::transient) {
        std::fprintf(stderr, "receiver: %s\n", ran.error().message.c_str());
        _exit(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }
  void end_receiver() {
    if (receiver_ <= 0) return;
    int status = 0;
    kill(receiver_, SIGKILL);
    waitpid(receiver_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    receiver_ = 0;
  }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The staged bytes of each segment that the source still has, up to `end`, beside the source's.
  void compare(base::Lsn end) {
    size_t compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      const auto segment = SegmentName::parse(name, kSegmentBytes);
      ASSERT_TRUE(segment) << name;
      const std::string theirs = content(cluster_.directory() + "/data/pg_wal/" + name);
      if (theirs.empty()) continue;
      const std::string ours = content(entry.path());
      const size_t bytes = std::min<uint64_t>(kSegmentBytes, end.value - segment->begin.value);
      ASSERT_GE(ours.size(), bytes) << name;
      EXPECT_TRUE(ours.substr(0, bytes) == theirs.substr(0, bytes)) << name;
      compared += bytes;
    }
    EXPECT_GT(compared, 0U);
  }

  test::TestCluster cluster_;
  std::filesystem::path directory_;
  std::atomic<uint64_t>* durable_;  // by the receiver's process, read by this one
  pid_t receiver_ = 0;
};

TEST_F(WalReceiverTest, StagesTheSourcesBytesThroughKillsOfBoth) {
  const char* const wanted = std::getenv("THALWEG_SHIPMENT_KILLS");
  const int kills = wanted == nullptr ? 20 : std::atoi(wanted);
  {
    auto stream = pg::ReplicationStream::open(conninfo(), "makes the slot");
    ASSERT_TRUE(stream) << stream.error().message;
    const auto restart = stream->create_physical_slot(kSlot, false);
    ASSERT_TRUE(restart) << restart.error().message;
    *durable_ = restart->value;
  }
  value("CREATE TABLE public.rows (id bigserial PRIMARY KEY, content text)");
  const auto insert = [&] {
    value("INSERT INTO public.rows (content) SELECT repeat(md5(n::text), 1 + n % 60) FROM generate_series(1, 1000) n");
  };
  std::mt19937 random(static_cast<unsigned>(kills));
  for (int round = 0; round < kills; ++round) {
    const uint64_t before = durable_->load();
    begin_receiver();
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (durable_->load() == before && std::chrono::steady_clock::now() < patience) insert();
    ASSERT_GT(durable_->load(), before) << "round " << round;
    for (unsigned more = random() % 20; more > 0; --more) insert();
    if (round % 5 == 4) {
      cluster_.crash();
      cluster_.start();
      value("INSERT INTO public.rows (content) SELECT repeat('x', 100000)");
    }
    end_receiver();
    // Told by the receiver itself, before the source heard of it.
    const base::Lsn restart =
        lsn("SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = '" + std::string{kSlot} + "'");
    EXPECT_LE(restart.value, durable_->load()) << "round " << round;
  }
  const base::Lsn end = lsn("SELECT pg_current_wal_flush_lsn()");
  begin_receiver();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (durable_->load() < end.value && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  ASSERT_GE(durable_->load(), end.value);
  end_receiver();
  compare(end);
}

// Everything is divided by it. A superuser of the source can have it say anything.
TEST_F(WalReceiverTest, ASegmentSizeThatCannotBeIsRefused) {
  for (const std::string size : {"'0'", "NULL", "'-16777216'", "'16777217'", "'2147483648'", "'17179869184'"}) {
    value(
        "SET allow_system_table_mods = on; CREATE OR REPLACE VIEW pg_catalog.pg_settings AS SELECT name, CASE name "
        "WHEN "
        "'wal_segment_size' THEN " +
        size +
        " ELSE setting END AS setting, unit, category, short_desc, extra_desc, context, vartype, source, min_val, "
        "max_val, enumvals, boot_val, reset_val, sourcefile, sourceline, pending_restart FROM "
        "pg_catalog.pg_show_all_settings()");
    auto stream = pg::ReplicationStream::open(conninfo(), kSlot);
    ASSERT_TRUE(stream) << stream.error().message;
    const auto found = identify(*stream);
    ASSERT_FALSE(found) << size;
    EXPECT_EQ(found.error().code, base::ErrorCode::protocol_violation) << size;
  }
}

}  // namespace
}  // namespace thalweg::shipment
