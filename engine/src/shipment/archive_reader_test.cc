#include "shipment/archive_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "shipment/segment_name.h"
#include "wal/wal_bytes.h"

// An archive without its source: what it has behind, or instead of, what is staged.

namespace thalweg::shipment {
namespace {

using wal::WalBytes;

constexpr uint64_t kSegmentBytes = WalBytes::kSegmentBytes;
constexpr base::Lsn kFirst{kSegmentBytes * 3};

class ArchiveReaderTest : public ::testing::Test {
 protected:
  ArchiveReaderTest()
      : folder_(make_folder()),
        archive_({.directory = folder_ / "place", .name = "main"}, folder_ / "fetched", &stop_),
        options_({.source = base::Conninfo{""},
                  .slot = "shipped",
                  .directory = folder_ / "staging",
                  .clock = clock_,
                  .stop = &stop_,
                  .on_staged = [this](const StagingReport& report) { report_ = report; },
                  .archive = &archive_,
                  .identity = {.system_identifier = WalBytes::kSystem, .history = pg::TimelineHistory(1)}}),
        wal_(kFirst) {}
  ~ArchiveReaderTest() override { std::filesystem::remove_all(folder_); }

  static std::filesystem::path make_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-reader-XXXXXX").string();
    const std::filesystem::path folder = mkdtemp(pattern.data());
    std::filesystem::create_directory(folder / "place");
    return folder;
  }
  // One record of that many bytes goes on from the first segment into later ones, of which there are so many.
  void write(size_t bytes, uint64_t segments) {
    while (wal_.end().value < kFirst.value + kSegmentBytes - 200'000) wal_.record(std::string(100'000, 'a'));
    whole_ = wal_.end();
    wal_.record(std::string(bytes, 'b'));
    while (wal_.end().value < kFirst.value + segments * kSegmentBytes) wal_.record(std::string(50'000, 'c'));
    for (uint64_t n = 0; n < segments; ++n) put(n);
  }
  std::string name(uint64_t n) const { return options_.identity.name_of({kFirst.value + n * kSegmentBytes}); }
  std::string segment(uint64_t n) const {
    return {reinterpret_cast<const char*>(wal_.bytes().data()) + n * kSegmentBytes, kSegmentBytes};
  }
  void put(uint64_t n) const { put(n, segment(n)); }
  void put(uint64_t n, const std::string& content) const {
    std::ofstream(folder_ / "place" / name(n), std::ios::binary) << content;
  }
  // A byte of a record that does not end there: the segment alone looks whole.
  void put_damaged(uint64_t n, uint64_t offset) const {
    std::string content = segment(n);
    content[offset] ^= 1;
    put(n, content);
  }
  std::string staged(uint64_t n) const {
    std::ifstream file(folder_ / "staging" / name(n), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Staging open() const {
    auto staging = Staging::open({.directory = options_.directory, .identity = options_.identity});
    EXPECT_TRUE(staging) << staging.error().message;
    return *std::move(staging);
  }
  Staging begun() const {
    Staging staging = open();
    staging.begin_at(kFirst);
    return staging;
  }
  bool run(Staging& staging) {
    const auto came = ArchiveReader(options_, staging).run();
    EXPECT_TRUE(came) << came.error().message;
    return came.value_or(false);
  }
  void expect_refused(Staging& staging, uint64_t n) {
    const auto came = ArchiveReader(options_, staging).run();
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, base::ErrorCode::wal_archive_failed) << came.error().message;
    EXPECT_NE(came.error().message.find("archive main has in " + name(n)), std::string::npos) << came.error().message;
  }
  void expect_all(Staging& staging, uint64_t segments) {
    EXPECT_EQ(staging.end().value, kFirst.value + segments * kSegmentBytes);
    for (uint64_t n = 0; n < segments; ++n) EXPECT_TRUE(staged(n) == segment(n)) << n;
  }

  const std::filesystem::path folder_;
  const base::SystemClock clock_;
  std::atomic<bool> stop_{false};
  const Archive archive_;
  StagingReport report_;
  WalReceiverOptions options_;
  WalBytes wal_;
  base::Lsn whole_;  // before the record that goes on
};

TEST_F(ArchiveReaderTest, OtherBytesThanWereStagedAreTheArchives) {
  write(300'000, 2);
  Staging staging = begun();
  ASSERT_TRUE(staging.append(wal_.bytes().first(whole_.value - kFirst.value)));
  ASSERT_TRUE(staging.sync());
  WalBytes other(kFirst);
  while (other.end().value < whole_.value - 200'000) other.record(std::string(100'000, 'a'));
  while (other.end().value < kFirst.value + kSegmentBytes) other.record(std::string(1000, 'z'));
  put(0, std::string(reinterpret_cast<const char*>(other.bytes().data()), kSegmentBytes));
  expect_refused(staging, 0);
  expect_refused(staging, 0);
  put(0);
  EXPECT_TRUE(run(staging));
  expect_all(staging, 2);
}

TEST_F(ArchiveReaderTest, ADamagedBeginOfARecordIsReadAgainOnceItIsMended) {
  write(25'000'000, 3);
  put_damaged(0, kSegmentBytes - 5000);
  for (const bool is_restarted : {false, true}) {
    std::filesystem::remove_all(folder_ / "staging");
    Staging staging = begun();
    EXPECT_TRUE(run(staging));
    EXPECT_EQ(report_.whole, whole_) << "what may come again is read by nobody";
    expect_refused(staging, 2);
    expect_refused(staging, 2);
    EXPECT_EQ(staging.end().value, kFirst.value + 2 * kSegmentBytes);
    if (is_restarted) staging = open();
    EXPECT_EQ(staging.whole(), whole_);
    put(0);
    EXPECT_TRUE(run(staging));
    expect_all(staging, 3);
    put_damaged(0, kSegmentBytes - 5000);
  }
}

TEST_F(ArchiveReaderTest, ADamagedEndOfARecordIsReadAgainOnceItIsMended) {
  write(5'000'000, 2);
  put_damaged(1, 1000);
  Staging staging = begun();
  EXPECT_TRUE(run(staging));
  expect_refused(staging, 1);
  staging = open();
  expect_refused(staging, 1);
  EXPECT_TRUE(staged(0) == segment(0)) << "the archive has the same";
  put(1);
  EXPECT_TRUE(run(staging));
  expect_all(staging, 2);
}

// The source's WAL cannot go on with it either.
TEST_F(ArchiveReaderTest, WhatIsDamagedIsGivenUpWhereTheArchiveHasItOtherwise) {
  write(300'000, 2);
  put_damaged(0, kSegmentBytes - 5000);
  Staging staging = begun();
  std::filesystem::remove(folder_ / "place" / name(1));
  EXPECT_TRUE(run(staging));
  const auto rest = wal_.bytes().subspan(kSegmentBytes);
  ASSERT_FALSE(staging.append(rest));
  EXPECT_FALSE(*give_up_damaged(archive_, staging));
  put(0);
  EXPECT_TRUE(*give_up_damaged(archive_, staging));
  EXPECT_EQ(staging.end(), whole_);
  EXPECT_TRUE(run(staging));
  ASSERT_TRUE(staging.append(rest.first(kSegmentBytes)));
  expect_all(staging, 2);
}

TEST_F(ArchiveReaderTest, AtTheLimitOtherBytesAreTheArchives) {
  write(300'000, 2);
  Staging staging = begun();
  EXPECT_TRUE(run(staging));
  put_damaged(0, kSegmentBytes - 5000);
  const std::atomic<uint64_t> read_to{UINT64_MAX};
  StagingRoom room(
      staging,
      {.read_to = &read_to, .bytes_max = 1, .archive = &archive_, .identity = options_.identity, .clock = &clock_});
  const auto made = room.make();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, base::ErrorCode::wal_archive_failed);
  EXPECT_NE(made.error().message.find(name(0)), std::string::npos) << made.error().message;
}

// Segments may be as large as a limit, which then would be reached for good.
TEST_F(ArchiveReaderTest, ThereIsRoomForThreeSegmentsAtLeast) {
  options_.bytes_max = kSegmentBytes;
  EXPECT_EQ(room_options(options_, options_.identity).bytes_max, 3 * kSegmentBytes);
  options_.bytes_max = 10 * kSegmentBytes;
  EXPECT_EQ(room_options(options_, options_.identity).bytes_max, 10 * kSegmentBytes);
}

}  // namespace
}  // namespace thalweg::shipment
