#include "shipment/shipper.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include "shipment/renewed_slot.h"
#include "shipment/segment_name.h"
#include "shipment/staged_wal.h"
#include "support/test_cluster.h"

// A real source with an archive that loses its slot and its WAL, goes away, or sends more than there is room for.

namespace thalweg::shipment {
namespace {

constexpr const char* kSlot = "shipped";
constexpr std::chrono::seconds kPatience{60};
constexpr uint32_t kSegmentBytes = 16U << 20;

class ShipperTest : public ::testing::Test {
 protected:
  ShipperTest()
      : folder_(make_folder()),
        cluster_({.settings = {{"archive_mode", "on"},
                               {"archive_command", "cp %p " + (folder_ / "place").string() + "/%f"},
                               {"max_wal_size", "64MB"},
                               {"min_wal_size", "32MB"},
                               {"restore_command", "false"},
                               {"wal_sender_timeout", "2s"}},
                  .hba_lines = {}}),
        archive_({.directory = folder_ / "place"}, folder_ / "fetched", &stop_) {
    run("CREATE TABLE public.rows (id bigserial PRIMARY KEY, content text)");
    const auto made = renew_slot(conninfo(), kSlot, {});
    EXPECT_TRUE(made) << made.error().message;
  }
  ~ShipperTest() override {
    stop();
    std::filesystem::remove_all(folder_);
  }

  static std::filesystem::path make_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-shipper-XXXXXX").string();
    const std::filesystem::path folder = mkdtemp(pattern.data());
    std::filesystem::create_directory(folder / "place");
    // The server writes there, as a user of its own.
    std::filesystem::permissions(folder, std::filesystem::perms{0755});
    std::filesystem::permissions(folder / "place", std::filesystem::perms{0777});
    return folder;
  }
  base::Conninfo conninfo() const { return base::Conninfo{cluster_.conninfo()}; }
  std::string run(const std::string& sql) {
    auto connection = pg::Connection::open(conninfo(), {});
    EXPECT_TRUE(connection) << connection.error().message;
    const auto rows = connection->script(sql);
    EXPECT_TRUE(rows) << sql << ": " << rows.error().message;
    return rows && rows->size() == 1 ? std::string{rows->text(0, 0)} : "";
  }
  // The server goes on along another timeline, as one that is promoted does.
  void promote() {
    cluster_.stop();
    run_command("touch " + data() + "/recovery.signal");
    run_command("chown --reference=" + data() + " " + data() + "/recovery.signal");
    cluster_.start();
    ASSERT_TRUE(wait_for([&] { return run("SELECT pg_is_in_recovery()") == "f"; })) << "it is not promoted";
  }
  std::string data() const { return cluster_.directory() + "/data"; }
  static void run_command(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }
  // About so many segments.
  void write(int segments) {
    for (int i = 0; i < segments; ++i) {
      run("INSERT INTO public.rows (content) SELECT repeat(md5(n::text), 40) FROM generate_series(1, 10000) n");
      run("SELECT pg_switch_wal()");
    }
  }
  base::Lsn source_end() { return *base::parse_lsn(run("SELECT pg_current_wal_flush_lsn()")); }
  std::string name_of(base::Lsn lsn) const {
    return SegmentName{.timeline = 1, .begin = {lsn.value - lsn.value % kSegmentBytes}}.text(kSegmentBytes);
  }
  // Returns once the source has forgotten the segment of this position: it is archived, and nobody keeps it.
  void forget(base::Lsn lsn) {
    const std::filesystem::path file = cluster_.directory() + "/data/pg_wal/" + name_of(lsn);
    // The archiver first: it gets nothing more to do while it is behind.
    const auto becomes = [](const std::filesystem::path& path, bool there) {
      const auto until = std::chrono::steady_clock::now() + kPatience;
      while (std::filesystem::exists(path) != there && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
      }
      return std::filesystem::exists(path) == there;
    };
    ASSERT_TRUE(becomes(folder_ / "place" / name_of(lsn), true)) << "not archived";
    for (int i = 0; i < 3; ++i) {
      run("INSERT INTO public.rows (content) VALUES ('a switch needs something to switch from')");
      run("SELECT pg_switch_wal()");
      run("CHECKPOINT");
    }
    ASSERT_TRUE(becomes(file, false)) << "not forgotten";
  }

  void begin(uint64_t bytes_max = UINT64_MAX, std::chrono::milliseconds patience = std::chrono::milliseconds{500}) {
    report_ = {};
    thread_ = std::thread([this, bytes_max, patience] {
      Shipper shipper({.receiver = {.source = conninfo(),
                                    .slot = kSlot,
                                    .directory = folder_ / "staging",
                                    .clock = clock_,
                                    .stop = &stop_,
                                    .on_staged =
                                        [this](const StagingReport& report) {
                                          const std::lock_guard lock(mutex_);
                                          was_archived_ = was_archived_ || report.is_archived;
                                          report_ = report;
                                        },
                                    .needed_from = &needed_from_,
                                    .read_to = &read_to_,
                                    .bytes_max = bytes_max,
                                    .archive = &archive_},
                       .on_trouble =
                           [this](std::optional<base::Error> trouble) {
                             const std::lock_guard lock(mutex_);
                             trouble_ = std::move(trouble);
                           },
                       .on_waiting =
                           [this](std::optional<std::chrono::steady_clock::time_point> archive_lacks_since) {
                             const std::lock_guard lock(mutex_);
                             archive_lacks_since_ = archive_lacks_since;
                           },
                       .patience = patience});
      const auto ran = shipper.run();
      const std::lock_guard lock(mutex_);
      if (!ran) failure_ = ran.error();
    });
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    stop_ = false;
  }
  StagingReport report() {
    const std::lock_guard lock(mutex_);
    return report_;
  }
  std::optional<base::Error> trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }
  std::optional<std::chrono::steady_clock::time_point> archive_lacks_since() {
    const std::lock_guard lock(mutex_);
    return archive_lacks_since_;
  }
  template <typename Condition>
  bool wait_for(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      if (condition()) return true;
      {
        const std::lock_guard lock(mutex_);
        if (failure_) {
          ADD_FAILURE() << failure_->message;
          return false;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return false;
  }
  bool wait_staged(base::Lsn end) {
    return wait_for([&] { return report().end >= end; });
  }
  // Reads all that was staged, with what went from the archive, as the source has written it.
  void compare(base::Lsn from, base::Lsn end) {
    StagedWal reader({.directory = folder_ / "staging", .identity = report().identity, .archive = &archive_}, from);
    wal::WalReader records({.start = from,
                            .segment_bytes = report().identity.segment_bytes,
                            .timeline_at = report().identity.timeline_at()});
    while (true) {
      const auto bytes = reader.read(end);
      ASSERT_TRUE(bytes) << bytes.error().message;
      if (bytes->empty()) break;
      records.feed(*bytes);
      while (true) {
        const auto record = records.next();
        ASSERT_TRUE(record) << record.error().message;
        if (*record == nullptr) break;
      }
    }
    EXPECT_EQ(reader.position(), end);
  }

  const std::filesystem::path folder_;
  test::TestCluster cluster_;
  const base::SystemClock clock_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> needed_from_{0}, read_to_{0};
  const Archive archive_;
  std::mutex mutex_;  // guards these
  StagingReport report_;
  bool was_archived_ = false;
  std::optional<base::Error> trouble_, failure_;
  std::optional<std::chrono::steady_clock::time_point> archive_lacks_since_;
  std::thread thread_;
};

TEST_F(ShipperTest, WhatTheSourceHasForgottenComesFromTheArchive) {
  begin();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  EXPECT_FALSE(was_archived_);
  stop();
  run("SELECT pg_drop_replication_slot('" + std::string{kSlot} + "')");
  const base::Lsn next = report().end;
  write(8);
  forget(next);
  begin();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  EXPECT_TRUE(was_archived_);
  EXPECT_EQ(run("SELECT count(*) FROM pg_replication_slots WHERE restart_lsn IS NOT NULL"), "1") << "made anew";
  ASSERT_TRUE(wait_for([&] { return !report().is_archived; })) << "it has not gone back to the source";
  compare(from, report().end);
}

TEST_F(ShipperTest, TheSourceGoesOnAlongAnotherTimeline) {
  begin();
  write(2);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  for (int round = 0; round < 3; ++round) {
    stop();
    write(2);  // on the old timeline, received over the new one's history
    run("INSERT INTO public.rows (content) VALUES ('and in the midst of a segment')");
    promote();
    write(1);
    begin();
    ASSERT_TRUE(wait_staged(source_end()));
  }
  EXPECT_EQ(report().identity.history.timeline(), 4);
  EXPECT_FALSE(was_archived_);
  compare(from, report().end);
}

TEST_F(ShipperTest, OldTimelinesComeFromTheArchive) {
  begin();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  stop();
  run("SELECT pg_drop_replication_slot('" + std::string{kSlot} + "')");
  const base::Lsn next = report().end;
  write(3);
  promote();
  write(3);
  promote();
  write(3);
  forget(next);
  begin();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  EXPECT_TRUE(was_archived_);
  EXPECT_EQ(report().identity.history.timeline(), 3);
  compare(from, report().end);
}

// A standby that had not got all of it was promoted, and nobody has taken what is staged beyond.
TEST_F(ShipperTest, WhatAPromotedServerNeverHadIsCutOff) {
  begin();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  stop();
  cluster_.stop();
  run_command("cp -a " + data() + " " + data() + ".standby");
  cluster_.start();
  begin();
  write(3);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn beyond = report().end;
  stop();
  cluster_.stop();
  run_command("rm -r " + data() + " && mv " + data() + ".standby " + data());
  promote();
  const base::Lsn before = source_end();
  ASSERT_LT(before, beyond);
  begin();
  ASSERT_TRUE(wait_staged(before));
  EXPECT_LT(report().end, beyond);
  write(5);
  ASSERT_TRUE(wait_staged(source_end()));
  compare(from, report().end);
}

TEST_F(ShipperTest, ASourceThatIsAwayIsReadInTheArchiveAndThenAgainDirectly) {
  begin();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  write(2);
  const base::Lsn end = source_end();
  cluster_.stop();
  // The rest comes from the source, once it is there again.
  EXPECT_TRUE(wait_for([&] { return trouble().has_value(); })) << "neither has more";
  cluster_.start();
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  EXPECT_GT(report().end, end);
  EXPECT_TRUE(wait_for([&] { return !trouble().has_value(); }));
  compare(from, report().end);
}

TEST_F(ShipperTest, AtTheLimitTheArchiveMakesRoom) {
  constexpr uint64_t kLimit = uint64_t{4} * kSegmentBytes;
  begin(kLimit);
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  write(8);
  // All of it is unread: nothing goes, and the source need not keep what the archive has.
  ASSERT_TRUE(wait_for([&] { return report().is_full; }));
  const auto kept = [&] {
    return *base::parse_lsn(run("SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 'shipped'"));
  };
  EXPECT_TRUE(wait_for([&] { return kept() > report().end; }));
  forget(report().end);
  EXPECT_EQ(report().begin, from);
  // It is read: the oldest go, the limit holds, and the end is reached.
  bool is_kept = true;
  ASSERT_TRUE(wait_for([&] {
    read_to_ = report().end.value;
    is_kept = is_kept && report().bytes <= kLimit + kSegmentBytes;
    return report().end >= source_end();
  }));
  EXPECT_TRUE(is_kept);
  EXPECT_GT(report().begin, from);
  compare(from, report().end);
}

TEST_F(ShipperTest, AnArchiveThatIsAwayAtTheLimitIsWaitedFor) {
  constexpr uint64_t kLimit = uint64_t{4} * kSegmentBytes;
  begin(kLimit);
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  const base::Lsn from = report().begin;
  std::filesystem::rename(folder_ / "place", folder_ / "elsewhere");
  write(6);
  ASSERT_TRUE(wait_for([&] { return report().is_full; }));
  read_to_ = report().end.value;
  ASSERT_TRUE(wait_for([&] { return trouble().has_value(); })) << "it makes no room, and nobody says why";
  EXPECT_NE(trouble()->message.find("is not there"), std::string::npos) << trouble()->message;
  std::filesystem::rename(folder_ / "elsewhere", folder_ / "place");
  ASSERT_TRUE(wait_for([&] {
    read_to_ = report().end.value;
    return report().end >= source_end();
  }));
  EXPECT_TRUE(wait_for([&] { return !trouble().has_value(); }));
  compare(from, report().end);
}

TEST_F(ShipperTest, AnArchiveThatIsAwayKeepsNothingThatNobodyNeeds) {
  constexpr uint64_t kLimit = uint64_t{4} * kSegmentBytes;
  begin(kLimit, std::chrono::hours{1});
  write(1);
  ASSERT_TRUE(wait_staged(source_end()));
  std::filesystem::rename(folder_ / "place", folder_ / "elsewhere");
  write(6);
  ASSERT_TRUE(wait_for([&] { return report().is_full; }));
  EXPECT_TRUE(wait_for([&] { return trouble().has_value(); })) << "the source keeps what the archive may have";
  EXPECT_EQ(trouble()->code, base::ErrorCode::wal_archive_failed);
  EXPECT_TRUE(wait_for([&] {
    needed_from_ = report().end.value;
    return report().end >= source_end();
  }));
  std::filesystem::rename(folder_ / "elsewhere", folder_ / "place");
}

TEST_F(ShipperTest, ASlotThatIsLostBeforeAnythingCameIsMadeAnew) {
  run("SELECT pg_drop_replication_slot('" + std::string{kSlot} + "')");
  begin();
  EXPECT_TRUE(wait_for([&] { return run("SELECT count(*) FROM pg_replication_slots") == "1"; }));
  write(1);
  EXPECT_TRUE(wait_staged(source_end()));
}

TEST_F(ShipperTest, AWaitForTheArchiveSaysWhatItLacks) {
  begin();
  write(1);
  const base::Lsn end = source_end();
  ASSERT_TRUE(wait_staged(end));
  stop();
  run("SELECT pg_drop_replication_slot('" + std::string{kSlot} + "')");
  write(6);
  forget(end);
  std::filesystem::rename(folder_ / "place" / name_of(end), folder_ / "hidden");
  run("SELECT count(pg_create_physical_replication_slot('other' || n)) FROM generate_series(1, "
      "current_setting('max_replication_slots')::int) n");
  begin();
  ASSERT_TRUE(wait_for([&] { return trouble().has_value(); }));
  EXPECT_EQ(trouble()->code, base::ErrorCode::wal_archive_failed);
  const std::string message = trouble()->message;
  EXPECT_NE(message.find(" does not have " + name_of(end) + " either. The slot could not be made anew: "),
            std::string::npos)
      << message;
  EXPECT_EQ(message.find(".."), std::string::npos) << message;
  const auto since = archive_lacks_since();
  EXPECT_TRUE(since);
  run("SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots");
  EXPECT_TRUE(wait_for([&] { return trouble() && trouble()->message.ends_with("either."); })) << "it has a slot";
  EXPECT_EQ(archive_lacks_since(), since) << "it is the same wait";
  std::filesystem::rename(folder_ / "hidden", folder_ / "place" / name_of(end));
  EXPECT_TRUE(wait_staged(source_end()));
  EXPECT_TRUE(wait_for([&] { return !trouble().has_value(); }));
  EXPECT_FALSE(archive_lacks_since());
}

TEST_F(ShipperTest, AnArchiveThatHasSomethingElseIsSaidAndNotTaken) {
  begin();
  write(1);
  const base::Lsn end = source_end();
  ASSERT_TRUE(wait_staged(end));
  stop();
  run("SELECT pg_drop_replication_slot('" + std::string{kSlot} + "')");
  write(6);
  forget(end);
  // Another source's WAL, as far as a directory knows.
  std::ofstream(folder_ / "place" / name_of(end), std::ios::binary) << std::string(kSegmentBytes, 'x');
  begin();
  EXPECT_TRUE(wait_for([&] { return trouble().has_value(); }));
  EXPECT_NE(trouble()->message.find("is not this source's WAL"), std::string::npos) << trouble()->message;
  EXPECT_EQ(trouble()->code, base::ErrorCode::wal_archive_failed);
}

}  // namespace
}  // namespace thalweg::shipment
