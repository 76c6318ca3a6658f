#include "shipment/staging.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "shipment/archive.h"
#include "shipment/segment_name.h"
#include "shipment/staged_wal.h"
#include "wal/wal_bytes.h"

namespace thalweg::shipment {
namespace {

using wal::kPageBytes;
using wal::WalBytes;

constexpr base::Lsn kSegment{uint64_t{WalBytes::kSegmentBytes} * 2};

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() : wal_(kSegment) {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-staging-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    for (int i = 0; i < 100; ++i) wal_.record(std::string(static_cast<size_t>(i) * 50, 'a'));
  }
  ~StagingTest() override { std::filesystem::remove_all(directory_); }

  base::Result<Staging> open(uint64_t system = WalBytes::kSystem) const {
    return Staging::open(
        {.directory = directory_, .identity = {.system_identifier = system, .history = pg::TimelineHistory(1)}});
  }
  Staging filled() {
    auto staging = open();
    EXPECT_TRUE(staging);
    staging->begin_at(kSegment);
    EXPECT_TRUE(staging->append(wal_.bytes()));
    EXPECT_TRUE(staging->sync());
    return *std::move(staging);
  }
  std::filesystem::path file(base::Lsn segment = kSegment) const {
    return directory_ / SegmentName{.timeline = 1, .begin = segment}.text(WalBytes::kSegmentBytes);
  }
  std::string staged(base::Lsn segment = kSegment) const {
    std::ifstream content(file(segment), std::ios::binary);
    return {std::istreambuf_iterator<char>(content), {}};
  }
  std::string written(base::Lsn from, base::Lsn to) const {
    const auto part = wal_.bytes().subspan(from.value - kSegment.value, to.value - from.value);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  std::filesystem::path directory_;
  WalBytes wal_;
};

TEST_F(StagingTest, NamesAreThoseOfTheSource) {
  const SegmentName name{.timeline = 3, .begin = {0x12'3400'0000}};
  EXPECT_EQ(name.text(16U << 20), "000000030000001200000034");
  EXPECT_EQ(SegmentName::parse("000000030000001200000034", 16U << 20)->begin, name.begin);
  EXPECT_EQ((SegmentName{.timeline = 1, .begin = {uint64_t{5} << 30}}.text(1U << 30)), "000000010000000100000001");
  EXPECT_FALSE(SegmentName::parse("000000030000001200000134", 16U << 20)) << "no such segment";
  EXPECT_FALSE(SegmentName::parse("00000003000000120000003g", 16U << 20));
}

TEST_F(StagingTest, HasTheSourcesBytes) {
  auto staging = open();
  ASSERT_TRUE(staging);
  EXPECT_EQ(staging->end(), base::Lsn{});
  staging->begin_at(kSegment);
  auto rest = wal_.bytes();
  while (!rest.empty()) {
    const auto part = rest.first(std::min<size_t>(rest.size(), 1000));
    ASSERT_TRUE(staging->append(part));
    rest = rest.subspan(part.size());
  }
  EXPECT_EQ(staging->end(), wal_.end());
  EXPECT_EQ(staging->durable(), kSegment);
  ASSERT_TRUE(staging->sync());
  EXPECT_EQ(staging->durable(), wal_.end());
  EXPECT_TRUE(staged() == written(kSegment, wal_.end()));
}

TEST_F(StagingTest, GoesOnFromThePageOfTheLastWholeRecord) {
  filled();
  const std::string before = staged();
  std::ofstream(file(), std::ios::app | std::ios::binary) << std::string(300, '\0');  // of a page that is not whole
  auto staging = open();
  ASSERT_TRUE(staging) << staging.error().message;
  EXPECT_EQ(staging->end(), wal_.end());
  EXPECT_EQ(staging->next().value, wal_.end().value / kPageBytes * kPageBytes);
  EXPECT_EQ(staging->durable(), staging->end());
  const base::Lsn again = staging->next();
  wal_.record("more");
  const auto rest = wal_.bytes().subspan(again.value - kSegment.value);
  ASSERT_TRUE(staging->append(rest));
  EXPECT_TRUE(staged() == written(kSegment, wal_.end()));
}

TEST_F(StagingTest, ADamagedEndIsReceivedAgain) {
  filled();
  std::string content = staged();
  content[content.size() - 100] ^= 1;  // in the last record
  std::ofstream(file(), std::ios::binary) << content;
  auto staging = open();
  ASSERT_TRUE(staging);
  EXPECT_LT(staging->end(), wal_.end());
  ASSERT_TRUE(staging->append(wal_.bytes().subspan(staging->next().value - kSegment.value)));
  EXPECT_TRUE(staged() == written(kSegment, wal_.end()));
}

TEST_F(StagingTest, ASourceThatSendsOtherBytesHasDiverged) {
  wal_.record("the last one, on a page of its own or not");
  filled();
  auto staging = open();
  ASSERT_TRUE(staging);
  ASSERT_LT(staging->next(), wal_.end());
  WalBytes other(kSegment);
  for (int i = 0; i < 100; ++i) other.record(std::string(static_cast<size_t>(i) * 50, 'a'));
  other.record("the last one, on a page of its own, or not");
  const auto appended = staging->append(other.bytes().subspan(staging->next().value - kSegment.value));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, base::ErrorCode::source_diverged);
}

TEST_F(StagingTest, SegmentsFollowEachOtherAndGoFromTheFront) {
  wal_.switch_segment();
  const base::Lsn second{kSegment.value + WalBytes::kSegmentBytes};
  ASSERT_EQ(wal_.end(), second);
  wal_.record("in the second");
  auto staging = filled();
  EXPECT_EQ(staging.bytes(), wal_.bytes().size());
  EXPECT_EQ(std::filesystem::file_size(file()), WalBytes::kSegmentBytes);
  EXPECT_TRUE(staged(second) == written(second, wal_.end()));
  ASSERT_TRUE(staging.drop_before({second.value - 1}));
  EXPECT_EQ(staging.begin(), kSegment);
  ASSERT_TRUE(staging.drop_before(second));
  EXPECT_EQ(staging.begin(), second);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(StagingTest, ASwitchWhoseSegmentIsNotWholeIsReceivedAgain) {
  const base::Lsn change = wal_.switch_segment();
  {
    auto staging = open();
    ASSERT_TRUE(staging);
    staging->begin_at(kSegment);
    ASSERT_TRUE(staging->append(wal_.bytes().first(change.value - kSegment.value + 3 * kPageBytes)));
  }
  auto staging = open();
  ASSERT_TRUE(staging);
  EXPECT_EQ(staging->next().value, change.value / kPageBytes * kPageBytes);
  ASSERT_TRUE(staging->append(wal_.bytes().subspan(staging->next().value - kSegment.value)));
  EXPECT_TRUE(staged() == written(kSegment, wal_.end()));
}

TEST_F(StagingTest, AnotherConnectionGoesOnWithThePage) {
  auto staging = filled();
  wal_.record("more");
  EXPECT_EQ(staging.next(), staging.end());
  ASSERT_TRUE(staging.compare_page());
  EXPECT_LT(staging.next(), staging.end());
  // In portions that end anywhere, before the known end too.
  for (auto rest = wal_.bytes().subspan(staging.next().value - kSegment.value); !rest.empty();) {
    const auto part = rest.first(std::min<size_t>(rest.size(), 100));
    ASSERT_TRUE(staging.append(part));
    rest = rest.subspan(part.size());
  }
  EXPECT_EQ(staging.next(), staging.end());
  EXPECT_TRUE(staged() == written(kSegment, wal_.end()));
  ASSERT_TRUE(staging.compare_page());
  WalBytes other(kSegment);
  for (int i = 0; i < 100; ++i) other.record(std::string(static_cast<size_t>(i) * 50, 'a'));
  other.record("less");
  const auto appended = staging.append(other.bytes().subspan(staging.next().value - kSegment.value));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, base::ErrorCode::source_diverged);
}

TEST_F(StagingTest, AnotherConnectionGoesOnBehindASwitch) {
  const base::Lsn change = wal_.switch_segment();
  const uint64_t page = (change.value / kPageBytes + 3) * kPageBytes;
  for (const uint64_t cut : {page, page + 100}) {
    std::filesystem::remove(file());
    auto staging = open();
    ASSERT_TRUE(staging);
    staging->begin_at(kSegment);
    ASSERT_TRUE(staging->append(wal_.bytes().first(cut - kSegment.value)));
    ASSERT_TRUE(staging->compare_page());
    const auto appended = staging->append(wal_.bytes().subspan(staging->next().value - kSegment.value));
    ASSERT_TRUE(appended) << cut << appended.error().message;
    EXPECT_TRUE(staged() == written(kSegment, wal_.end()));
  }
}

// The source may have forgotten it: all of it was durable, and the source was told.
TEST_F(StagingTest, AWholeSegmentIsNotReceivedAgain) {
  const base::Lsn second{kSegment.value + WalBytes::kSegmentBytes};
  while (wal_.end() < second) wal_.record(std::string(100'000, 'b'));  // the last one goes on in the second segment
  {
    auto staging = open();
    ASSERT_TRUE(staging);
    staging->begin_at(kSegment);
    ASSERT_TRUE(staging->append(wal_.bytes().first(WalBytes::kSegmentBytes)));
    ASSERT_EQ(staging->durable(), second);
  }
  auto staging = open();
  ASSERT_TRUE(staging);
  EXPECT_EQ(staging->end(), second);
  ASSERT_TRUE(staging->append(wal_.bytes().subspan(WalBytes::kSegmentBytes)));
  EXPECT_TRUE(staged(second) == written(second, wal_.end()));
}

TEST_F(StagingTest, AGapBetweenSegmentsIsTold) {
  wal_.switch_segment();
  wal_.record("in the second");
  filled();
  std::filesystem::resize_file(file(), 1000);
  const auto staging = open();
  ASSERT_FALSE(staging);
  EXPECT_NE(staging.error().message.find("has a gap"), std::string::npos) << staging.error().message;
}

TEST_F(StagingTest, WalOfAnotherSystemIsNotStaged) {
  auto staging = open(42);
  ASSERT_TRUE(staging);
  staging->begin_at(kSegment);
  const auto appended = staging->append(wal_.bytes());
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, base::ErrorCode::protocol_violation);
  EXPECT_EQ(staging->end(), kSegment);
}

TEST_F(StagingTest, IsReadWhileItGrowsAndOverTheEndsOfSegments) {
  while (wal_.bytes().size() < WalBytes::kSegmentBytes + kPageBytes) wal_.record(std::string(7000, 'b'));
  auto staging = open();
  staging->begin_at(kSegment);
  StagedWal reader({.directory = directory_,
                    .identity = {.history = pg::TimelineHistory(1), .segment_bytes = WalBytes::kSegmentBytes}},
                   kSegment);
  std::string read;
  constexpr size_t kPart = 3'000'017;
  for (size_t at = 0; at < wal_.bytes().size(); at += kPart) {
    ASSERT_TRUE(staging->append(wal_.bytes().subspan(at, std::min(kPart, wal_.bytes().size() - at))));
    while (true) {
      const auto bytes = reader.read(staging->end());
      ASSERT_TRUE(bytes) << bytes.error().message;
      if (bytes->empty()) break;
      read.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
    EXPECT_EQ(reader.position(), staging->end());
  }
  EXPECT_TRUE(read == written(kSegment, staging->end()));
  ASSERT_TRUE(staging->sync());
  ASSERT_TRUE(staging->drop_before({kSegment.value + WalBytes::kSegmentBytes}));
  StagedWal late({.directory = directory_,
                  .identity = {.history = pg::TimelineHistory(1), .segment_bytes = WalBytes::kSegmentBytes}},
                 kSegment);
  const auto bytes = late.read(staging->end());
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, base::ErrorCode::position_gap);

  // An archive may have it later.
  const Archive archive({.directory = directory_, .name = "main"}, directory_ / "fetched", nullptr);
  StagedWal again({.directory = directory_ / "staging", .identity = staging->identity(), .archive = &archive},
                  kSegment);
  const auto archived = again.read(staging->end());
  ASSERT_FALSE(archived);
  EXPECT_EQ(archived.error().code, base::ErrorCode::wal_archive_failed);
  EXPECT_NE(archived.error().message.find("the archive main does not have " + file().filename().string()),
            std::string::npos)
      << archived.error().message;
}

// A source that has left timeline 1 at `end`, for timeline 2.
pg::TimelineHistory switched(base::Lsn end) { return pg::TimelineHistory(2, {{.timeline = 1, .end = end}}); }

class SwitchTest : public StagingTest {
 protected:
  SwitchTest() {
    // The switch is in the third segment; the fourth has begun.
    while (wal_.end() < kThird) wal_.record(std::string(100'000, 'b'));
    wal_.record("shared");
    end_ = wal_.end();
    theirs_.emplace(wal_);
    theirs_->set_timeline(2);
    for (int i = 0; i < 10; ++i) theirs_->record(std::string(5000, 'c'));
    while (wal_.end().value < kThird.value + WalBytes::kSegmentBytes) wal_.record(std::string(100'000, 'd'));
    wal_.record("the fourth segment has a whole one");
    filled();
  }
  base::Result<Staging> follow(const pg::TimelineHistory& history) const {
    return Staging::open(
        {.directory = directory_, .identity = {.system_identifier = WalBytes::kSystem, .history = history}});
  }
  std::string name(uint32_t timeline, base::Lsn segment) const {
    return SegmentName{.timeline = timeline, .begin = segment}.text(WalBytes::kSegmentBytes);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) all.insert(entry.path().filename());
    return all;
  }
  // All of it is there, under the names that the source has.
  void expect_followed() const {
    EXPECT_EQ(names(), (std::set{name(1, kSegment), name(1, kSecond), name(2, kThird)}));
    const auto all = theirs_->bytes();
    const std::string whole(reinterpret_cast<const char*>(all.data()), all.size());
    EXPECT_TRUE(content(name(1, kSegment)) + content(name(1, kSecond)) + content(name(2, kThird)) == whole);
  }

  static constexpr base::Lsn kSecond{kSegment.value + WalBytes::kSegmentBytes};
  static constexpr base::Lsn kThird{kSecond.value + WalBytes::kSegmentBytes};
  base::Lsn end_;
  std::optional<WalBytes> theirs_;
};

TEST_F(SwitchTest, WhatIsBeyondGoesAndTheRestGoesOnUnderTheNewName) {
  auto staging = follow(switched(end_));
  ASSERT_TRUE(staging) << staging.error().message;
  EXPECT_EQ(staging->end(), end_);
  EXPECT_EQ(staging->durable(), end_);
  ASSERT_TRUE(staging->append(theirs_->bytes().subspan(staging->next().value - kSegment.value)));
  ASSERT_TRUE(staging->sync());
  expect_followed();
  auto again = follow(switched(end_));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->end(), theirs_->end());
  StagedWal reader({.directory = directory_, .identity = again->identity()}, kSegment);
  std::string read;
  while (reader.position() < again->end()) {
    const auto bytes = reader.read(again->end());
    ASSERT_TRUE(bytes) << bytes.error().message;
    read.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  EXPECT_EQ(read.size(), theirs_->bytes().size());
  ASSERT_TRUE(again->drop_before(kThird));
  EXPECT_EQ(names(), (std::set{name(2, kThird)}));
}

// As a kill leaves it: nothing done yet, the newest segment gone, the shared one cut and not renamed.
TEST_F(SwitchTest, AKillInTheMidstIsMadeGood) {
  const base::Lsn fourth{kThird.value + WalBytes::kSegmentBytes};
  std::filesystem::remove(directory_ / name(1, fourth));
  std::filesystem::resize_file(directory_ / name(1, kThird), end_.value - kThird.value);
  auto staging = follow(switched(end_));
  ASSERT_TRUE(staging) << staging.error().message;
  EXPECT_EQ(staging->end(), end_);
  ASSERT_TRUE(staging->append(theirs_->bytes().subspan(staging->next().value - kSegment.value)));
  ASSERT_TRUE(staging->sync());
  expect_followed();
}

TEST_F(SwitchTest, ASwitchBehindWhatIsStaged) {
  const base::Lsn later{kThird.value + 3 * uint64_t{WalBytes::kSegmentBytes} + 800};
  auto staging = follow(switched(later));
  ASSERT_TRUE(staging) << staging.error().message;
  EXPECT_EQ(staging->end(), wal_.end()) << "timeline 1 goes on";
  EXPECT_EQ(names().count(name(1, kThird)), 1U);
}

TEST_F(SwitchTest, ASwitchAtTheEndOfASegment) {
  auto staging = follow(switched(kThird));
  ASSERT_TRUE(staging) << staging.error().message;
  EXPECT_EQ(staging->end(), kThird);
  EXPECT_EQ(names(), (std::set{name(1, kSegment), name(1, kSecond)}));
  EXPECT_EQ(staging->path_of(kThird).filename(), name(2, kThird));
}

TEST_F(SwitchTest, OtherBytesBeforeTheSwitchAreRefused) {
  auto staging = follow(switched(end_));
  ASSERT_TRUE(staging);
  theirs_->at({end_.value - 8}) ^= 1;
  const auto appended = staging->append(theirs_->bytes().subspan(staging->next().value - kSegment.value));
  ASSERT_FALSE(appended);
  ASSERT_TRUE(follow(switched(end_)));
}

TEST_F(SwitchTest, ATimelineThatTheSourceWasNeverOn) {
  const auto staging = follow(pg::TimelineHistory(3, {{.timeline = 2, .end = end_}}));
  ASSERT_FALSE(staging);
  EXPECT_EQ(staging.error().code, base::ErrorCode::source_diverged);
  EXPECT_EQ(names().count(name(1, kThird)), 1U) << "nothing goes";
}

}  // namespace
}  // namespace thalweg::shipment
