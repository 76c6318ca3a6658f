// The golden files in engine/test/golden/spill/ are segments of version 1, in hexadecimal. The output of lz4 for a
// block may change with its version, so those are compared by what they read back as; the rest byte for byte. A
// difference means that the format changed: that needs a new version, not new files.
//
// A file for a new sample is written by running this test once with THALWEG_WRITE_GOLDEN=1; existing files are never
// overwritten.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "spill/segment_reader.h"
#include "spill/segment_samples.h"
#include "support/engine_directory.h"

namespace thalweg::spill {
namespace {

const std::filesystem::path kDirectory = std::filesystem::path(test::engine_directory()) / "test/golden/spill";

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    out += kDigits[std::to_integer<size_t>(bytes[i]) >> 4];
    out += kDigits[std::to_integer<size_t>(bytes[i]) & 15];
    out += i % 16 == 15 || i + 1 == bytes.size() ? '\n' : ' ';
  }
  return out;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> out;
  std::istringstream in(text);
  for (std::string byte; in >> byte;) out.push_back(static_cast<std::byte>(std::stoi(byte, nullptr, 16)));
  return out;
}

std::string read_golden(const std::string& name) {
  std::ifstream in(kDirectory / (name + ".hex"));
  EXPECT_TRUE(in) << "no golden file for " << name;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

base::File in_memory(std::span<const std::byte> bytes) {
  base::File file(::memfd_create("segment", MFD_CLOEXEC));
  EXPECT_TRUE(file.write_all(bytes));
  ::lseek(file.descriptor(), 0, SEEK_SET);
  return file;
}

// Everything that the segment holds.
base::Result<std::vector<std::byte>> drain(std::span<const std::byte> bytes, const SegmentId* expected = nullptr) {
  std::vector<std::byte> out;
  THALWEG_ASSIGN(auto reader, SegmentReader::open(in_memory(bytes), expected));
  while (true) {
    THALWEG_ASSIGN(const auto run, reader.next_run());
    if (run.empty()) return out;
    out.insert(out.end(), run.begin(), run.end());
  }
}

TEST(GoldenSegments, AreStillWritten) {
  for (const auto& [name, segment] : sample_segments()) {
    const auto path = kDirectory / (name + ".hex");
    if (std::getenv("THALWEG_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path)) {
      std::filesystem::create_directories(kDirectory);
      std::ofstream(path) << to_hex(segment);
      const auto seeds = kDirectory / "../../corpus/segment_fuzz";
      std::filesystem::create_directories(seeds);
      std::ofstream(seeds / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(segment.data()), static_cast<std::streamsize>(segment.size()));
    }
    if (name != "lz4") {
      EXPECT_EQ(read_golden(name), to_hex(segment)) << name;
    }
  }
}

TEST(GoldenSegments, AreStillRead) {
  for (const auto& [name, segment] : sample_segments()) {
    const auto golden = drain(from_hex(read_golden(name)));
    ASSERT_TRUE(golden) << name << ": " << golden.error().message;
    EXPECT_EQ(*golden, drain(segment).value()) << name;
  }
  std::vector<std::vector<std::byte>> frames = sample_kinds();
  frames.push_back(sample_row(600, 3));
  EXPECT_EQ(drain(from_hex(read_golden("lz4"))).value(), joined(frames));
}

TEST(GoldenSegments, EveryFileHasASample) {
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(kDirectory)) ++files;
  EXPECT_EQ(files, sample_segments().size());
}

TEST(Segment, SeesEveryDamageAndEveryTornTail) {
  for (const auto& [name, segment] : sample_segments()) {
    ASSERT_TRUE(drain(segment)) << name;
    for (size_t at = 0; at < segment.size(); ++at) {
      auto damaged = segment;
      damaged[at] ^= std::byte{0x10};
      const auto read = drain(damaged);
      ASSERT_FALSE(read) << name << ", byte " << at;
      ASSERT_EQ(read.error().code, base::ErrorCode::corrupt_frame);
      ASSERT_FALSE(drain(std::span(segment).first(at))) << name << ", cut to " << at;
    }
    auto longer = segment;
    longer.push_back(std::byte{0});
    ASSERT_FALSE(drain(longer)) << name;
  }
}

TEST(Segment, RefusesAnother) {
  const auto segment = sample_segment({.log = 7, .number = 1}, {sample_row(10, 1)});
  const SegmentId same{.log = 7, .number = 1};
  const SegmentId other_number{.log = 7, .number = 2};
  const SegmentId other_log{.log = 8, .number = 1};
  EXPECT_TRUE(drain(segment, &same));
  EXPECT_FALSE(drain(segment, &other_number));
  EXPECT_FALSE(drain(segment, &other_log));
}

TEST(Segment, RefusesABlockOfAnotherSegment) {
  auto segment = sample_segment({.log = 7, .number = 1}, {sample_row(10, 1)});
  const auto other = sample_segment({.log = 7, .number = 2}, {sample_row(10, 1)});
  std::copy(other.begin() + kSegmentHeaderBytes, other.end(), segment.begin() + kSegmentHeaderBytes);
  EXPECT_FALSE(drain(segment));
}

TEST(Segment, LargeFramesSpanBlocksOfTheirOwn) {
  const auto large = sample_row(200'000, 4, false);
  std::vector<std::vector<std::byte>> blocks{sample_row(8, 1)};
  for (size_t at = 0; at < large.size(); at += kBlockRawBytesMax) {
    const size_t bytes = std::min(kBlockRawBytesMax, large.size() - at);
    blocks.emplace_back(large.begin() + static_cast<ptrdiff_t>(at), large.begin() + static_cast<ptrdiff_t>(at + bytes));
  }
  blocks.push_back(sample_row(8, 2));
  EXPECT_EQ(drain(sample_segment({}, blocks)).value(), joined(blocks));
  auto cut = blocks;
  cut.erase(cut.begin() + 3);
  EXPECT_FALSE(drain(sample_segment({}, cut)));  // a part is missing
  auto more = blocks;
  const auto extra = sample_row(8, 3);
  more[4].insert(more[4].end(), extra.begin(), extra.end());
  EXPECT_FALSE(drain(sample_segment({}, more)));  // another frame behind the large one, in its block
}

}  // namespace
}  // namespace thalweg::spill
