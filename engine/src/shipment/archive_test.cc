#include "shipment/archive.h"

#include <gtest/gtest.h>
#include <lz4frame.h>
#include <unistd.h>
#include <zstd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "shipment/archive_command.h"
#include "shipment/archives_file.h"
#include "shipment/segment_name.h"
#include "wal/wal_bytes.h"

namespace thalweg::shipment {
namespace {

using wal::WalBytes;

constexpr base::Lsn kSegment{3U << 24};

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() : wal_(kSegment) {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-archive-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directory(folder_ / "place");
    for (int i = 0; i < 200; ++i)
      wal_.record(std::string(static_cast<size_t>(i) * 50, static_cast<char>('a' + i % 20)));
    wal_.switch_segment();
  }
  ~ArchiveTest() override { std::filesystem::remove_all(folder_); }

  static std::string name() { return SegmentName{.timeline = 1, .begin = kSegment}.text(WalBytes::kSegmentBytes); }
  std::string segment() const { return {reinterpret_cast<const char*>(wal_.bytes().data()), wal_.bytes().size()}; }
  void put(const std::string& suffix, const std::string& content) const {
    std::ofstream(folder_ / "place" / (name() + suffix), std::ios::binary) << content;
  }
  void pack_gzip() const {
    put("", segment());
    const std::string command = "gzip -1 " + (folder_ / "place" / name()).string();
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static std::string zstd(const std::string& content) {
    std::string packed(ZSTD_compressBound(content.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 1));
    return packed;
  }
  static std::string lz4(const std::string& content) {
    std::string packed(LZ4F_compressFrameBound(content.size(), nullptr), '\0');
    packed.resize(LZ4F_compressFrame(packed.data(), packed.size(), content.data(), content.size(), nullptr));
    return packed;
  }
  Archive in_directory() const { return Archive({.directory = folder_ / "place"}, folder_ / "fetched", nullptr); }
  Archive by_command(std::string command, const std::atomic<bool>* stop = nullptr) const {
    return Archive({.command = std::move(command)}, folder_ / "fetched", stop);
  }
  static base::Result<std::string> fetch(const Archive& archive, uint64_t system = WalBytes::kSystem) {
    THALWEG_ASSIGN(auto file,
                   archive.fetch(kSegment, {.system_identifier = system, .history = pg::TimelineHistory(1)}));
    if (!file) return std::string{"none"};
    std::string content(WalBytes::kSegmentBytes + 1, '\0');
    THALWEG_ASSIGN(const size_t count, file->read_some(std::as_writable_bytes(std::span{content})));
    content.resize(count);
    return content;
  }
  static void expect_refused(const Archive& archive, const std::string& words) {
    const auto refused = fetch(archive);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, base::ErrorCode::wal_archive_failed);
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
  }
  // Files that were fetched do not stay.
  void expect_nothing_left() const {
    std::error_code missing;
    EXPECT_TRUE(!std::filesystem::exists(folder_ / "fetched") ||
                std::filesystem::is_empty(folder_ / "fetched", missing));
  }

  std::filesystem::path folder_;
  WalBytes wal_;
};

TEST_F(ArchiveTest, ADirectoryHasSegmentsPackedOrNot) {
  EXPECT_EQ(*fetch(in_directory()), "none");
  put("", segment());
  EXPECT_TRUE(*fetch(in_directory()) == segment());
  const auto expect_whole = [&](const char* packing) {
    const auto fetched = fetch(in_directory());
    ASSERT_TRUE(fetched) << packing << ": " << fetched.error().message;
    EXPECT_TRUE(*fetched == segment()) << packing;
    std::filesystem::remove_all(folder_ / "place");
    std::filesystem::create_directory(folder_ / "place");
  };
  pack_gzip();
  expect_whole("gzip");
  put(".zst", zstd(segment()));
  expect_whole("zstd");
  put(".lz4", lz4(segment()));
  expect_whole("lz4");
  expect_nothing_left();
}

// A copy into the archive may be under way, or have ended there.
TEST_F(ArchiveTest, APartOfASegmentIsNamed) {
  put("", segment().substr(0, 1'000'000));
  expect_refused(in_directory(), "has 1000000 bytes");
  std::filesystem::remove(folder_ / "place" / name());
  pack_gzip();
  const auto packed = folder_ / "place" / (name() + ".gz");
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  expect_refused(in_directory(), packed.string());
  put(".zst", zstd(segment()));
  EXPECT_TRUE(*fetch(in_directory()) == segment()) << "one that is whole lies beside it";
}

TEST_F(ArchiveTest, PackedFilesMayHaveSeveralParts) {
  const std::string first = segment().substr(0, 1'000'000), second = segment().substr(1'000'000);
  put(".zst", zstd(first) + zstd(second));
  EXPECT_TRUE(*fetch(in_directory()) == segment());
  std::filesystem::remove(folder_ / "place" / (name() + ".zst"));
  put(".1", first);
  put(".2", second);
  const std::string parts = (folder_ / "place" / name()).string();
  const std::string command =
      "gzip -c " + parts + ".1 > " + parts + ".gz && gzip -c " + parts + ".2 >> " + parts + ".gz";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto fetched = fetch(in_directory());
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_TRUE(*fetched == segment());
  std::ofstream(parts + ".gz", std::ios::app | std::ios::binary) << "garbage";
  expect_refused(in_directory(), "damaged");
}

// A superuser may read all: the test becomes somebody else.
TEST_F(ArchiveTest, AFileOrPlaceThatMayNotBeReadIsNamed) {
  using std::filesystem::perms;
  put("", segment());
  const auto as_somebody_else = [&](const std::filesystem::path& closed) {
    std::filesystem::permissions(folder_, perms{0755});
    std::filesystem::permissions(closed, perms{0700}, std::filesystem::perm_options::remove);
    const uid_t before = geteuid();
    if (before == 0) {
      ASSERT_EQ(seteuid(65534), 0);
    }
    expect_refused(in_directory(), "Permission denied");
    ASSERT_EQ(seteuid(before), 0);
    std::filesystem::permissions(closed, perms{0700}, std::filesystem::perm_options::add);
  };
  std::filesystem::permissions(folder_ / "place" / name(), perms{0600});
  as_somebody_else(folder_ / "place" / name());
  std::filesystem::permissions(folder_ / "place" / name(), perms{0644});
  std::filesystem::permissions(folder_ / "place", perms{0700});
  as_somebody_else(folder_ / "place");
}

TEST_F(ArchiveTest, SomethingElseUnderTheNameIsRefused) {
  const auto refusal = [&] { return fetch(in_directory()).error(); };
  put("", segment() + "x");
  EXPECT_EQ(refusal().code, base::ErrorCode::wal_archive_failed);
  std::string damaged = segment();
  damaged[100'000] ^= 1;
  put("", damaged);
  EXPECT_NE(refusal().message.find("damaged"), std::string::npos) << refusal().message;
  put("", segment());
  EXPECT_EQ(fetch(in_directory(), 42).error().code, base::ErrorCode::wal_archive_failed) << "of another system";
  std::filesystem::remove_all(folder_ / "place");
  EXPECT_NE(refusal().message.find("is not there"), std::string::npos) << refusal().message;
}

// Nothing larger than a segment is unpacked.
TEST_F(ArchiveTest, APackedFileThatIsTooLargeIsNamed) {
  put(".zst", zstd(segment() + std::string(size_t{64} << 20, '\0')));
  expect_refused(in_directory(), "larger");
  expect_nothing_left();
}

TEST_F(ArchiveTest, ACommandFetchesOneSegment) {
  put("", segment());
  const std::string place = (folder_ / "place").string();
  EXPECT_TRUE(*fetch(by_command("cp " + place + "/%f %p")) == segment());
  EXPECT_EQ(*fetch(by_command("exit 1")), "none");
  EXPECT_EQ(*fetch(by_command("test %f = " + name() + " && exit 1; exit 200")), "none") << "%f is the segment's name";
  EXPECT_EQ(fetch(by_command("echo 100%%; exit 0")).error().code, base::ErrorCode::wal_archive_failed)
      << "it says that the file is there";
  expect_refused(by_command("head -c 1000 " + place + "/%f > %p"), "has 1000 bytes");
  expect_nothing_left();
}

TEST_F(ArchiveTest, ACommandThatCannotWorkSaysWhy) {
  const auto refusal = fetch(by_command("no_such_program %f %p"));
  ASSERT_FALSE(refusal);
  EXPECT_EQ(refusal.error().code, base::ErrorCode::wal_archive_failed);
  EXPECT_NE(refusal.error().message.find("127"), std::string::npos) << refusal.error().message;
  EXPECT_NE(refusal.error().message.find("no_such_program"), std::string::npos) << refusal.error().message;
  EXPECT_NE(fetch(by_command("kill -9 $$")).error().message.find("signal 9"), std::string::npos);
  EXPECT_FALSE(expand({.text = "cp %x %p", .name = {}, .path = {}}));
  expect_nothing_left();
}

// With everything that it has begun.
TEST_F(ArchiveTest, ACommandEndsWhenItIsStopped) {
  std::atomic<bool> stop{false};
  const std::string mark = (folder_ / "mark").string();
  std::thread stops([&] {
    while (!std::filesystem::exists(mark)) std::this_thread::sleep_for(std::chrono::milliseconds{5});
    stop = true;
  });
  const std::string alive = (folder_ / "alive").string();
  const auto fetched = fetch(by_command("(touch " + mark + "; sleep 60; touch " + alive + ") | cat", &stop));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, base::ErrorCode::engine_stopping) << "it may have the segment";
  stops.join();
  EXPECT_FALSE(std::filesystem::exists(alive));
}

TEST_F(ArchiveTest, OnlyTheAdministratorsFileNamesArchives) {
  const auto file = folder_ / kArchivesFile;
  EXPECT_TRUE(archive_names(file).empty());
  EXPECT_EQ(find_archive(file, "main").error().code, base::ErrorCode::wal_archive_failed);
  std::ofstream(file) << R"({"main": {"directory": "/backup"}, "other": {"command": "fetch %f %p"},
                             "both": {"directory": "/backup", "command": "x"}, "relative": {"directory": "backup"},
                             "wrong": {"command": "100% %f"}})";
  EXPECT_EQ(archive_names(file), (std::vector<std::string>{"main", "other"})) << "those that can be used";
  EXPECT_EQ(find_archive(file, "main")->directory, "/backup");
  EXPECT_EQ(find_archive(file, "other")->command, "fetch %f %p");
  for (const char* const name : {"both", "relative", "wrong", "missing"}) {
    EXPECT_EQ(find_archive(file, name).error().code, base::ErrorCode::wal_archive_failed) << name;
  }
  EXPECT_NE(find_archive(file, "missing").error().message.find("main"), std::string::npos);
  std::ofstream(file) << "[]";
  EXPECT_FALSE(find_archive(file, "main"));
}

}  // namespace
}  // namespace thalweg::shipment
