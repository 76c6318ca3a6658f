#include "search/kept_wal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "shipment/segment_name.h"

namespace thalweg::search {
namespace {

constexpr uint32_t kSegmentBytes = 1U << 20;

class KeptWalTest : public testing::Test {
 protected:
  KeptWalTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-kept-wal-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    folder_.emplace(path_);
    std::filesystem::create_directories(folder_->staging());
  }
  ~KeptWalTest() override { std::filesystem::remove_all(path_); }

  // Of megabytes, as all positions here.
  void stage(uint64_t segment, uint64_t bytes = kSegmentBytes) {
    const shipment::SegmentName name{.timeline = 1, .begin = {segment << 20}};
    const auto file = folder_->staging() / name.text(kSegmentBytes);
    std::ofstream(file) << "x";
    std::filesystem::resize_file(file, bytes);
  }
  void save(uint64_t at) { std::ofstream(folder_->dictionary_at({at << 20})) << "x"; }
  static capture::MiningPosition position(uint64_t confirmed, uint64_t restart, int64_t minute) {
    return {.confirmed = {confirmed << 20}, .restart = {restart << 20}, .time = {minute * 60'000'000}};
  }
  void note(std::vector<capture::MiningPosition> earlier, capture::MiningPosition at) {
    ASSERT_TRUE(folder_->write_state({.at = at, .earlier = std::move(earlier), .segment_bytes = kSegmentBytes}));
  }

  std::filesystem::path path_;
  std::optional<capture::WalFolder> folder_;
};

TEST_F(KeptWalTest, ASearchBeginsWhereTransactionsAreWhole) {
  EXPECT_EQ(find_kept(*folder_).error().code, base::ErrorCode::search_refused);
  for (const uint64_t segment : {10, 11, 12, 13, 14, 15, 16, 17}) stage(segment);
  stage(18, 5000);
  for (const uint64_t at : {9, 11, 14, 17}) save(at);
  note({position(10, 9, 1), position(12, 10, 2), position(13, 11, 3), position(15, 12, 10), position(16, 15, 20)},
       position(18, 17, 30));
  const auto kept = find_kept(*folder_);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->from, base::Lsn{uint64_t{13} << 20}) << "the WAL of the dictionary at 9 is gone";
  EXPECT_EQ(kept->from_time, base::UnixMicros{180'000'000});
  EXPECT_EQ(kept->until, base::Lsn{(uint64_t{18} << 20) + 5000});
  EXPECT_EQ(kept->bytes, 8U * kSegmentBytes + 5000);
  const auto begin = [&](uint64_t from, std::optional<int64_t> minute = {}) {
    const auto time = minute ? std::optional(base::UnixMicros{*minute * 60'000'000}) : std::nullopt;
    const Begin found = begin_of(*kept, {from << 20}, time);
    return std::pair(found.dictionary.value >> 20, found.from.value >> 20);
  };
  EXPECT_EQ(begin(13), std::pair(uint64_t{11}, uint64_t{13}));
  EXPECT_EQ(begin(15), std::pair(uint64_t{11}, uint64_t{15})) << "a transaction was open since 12";
  EXPECT_EQ(begin(17), std::pair(uint64_t{14}, uint64_t{17}));
  EXPECT_EQ(begin(13, 14), std::pair(uint64_t{11}, uint64_t{13})) << "the clock may have been set back";
  EXPECT_EQ(begin(13, 26), std::pair(uint64_t{14}, uint64_t{16}));
}

TEST_F(KeptWalTest, NothingIsKeptBeforeADictionaryCounts) {
  stage(10);
  save(10);
  note({}, position(11, 9, 0));
  EXPECT_EQ(find_kept(*folder_).error().code, base::ErrorCode::search_refused);
  note({}, position(11, 10, 0));
  const auto kept = find_kept(*folder_);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->from, base::Lsn{uint64_t{11} << 20});
  EXPECT_EQ(kept->from_time, base::UnixMicros{}) << "an earlier engine has noted none";
}

}  // namespace
}  // namespace thalweg::search
