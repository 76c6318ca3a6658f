// The golden files in engine/test/golden/frames/ are the format, version 1: one frame each, in hexadecimal. The
// writers' frames must equal them byte for byte, and their decoded values must equal those they were made from. A
// difference means that the format changed: that needs a new version, not new files.
//
// A file for a new kind is written by running this test once with THALWEG_WRITE_GOLDEN=1; existing files are never
// overwritten.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lcr/frame.h"
#include "lcr/frame_samples.h"
#include "support/engine_directory.h"

namespace thalweg::lcr {
namespace {

const std::filesystem::path kDirectory = std::filesystem::path(test::engine_directory()) / "test/golden/frames";

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

FrameView decode_golden(const std::string& name, std::vector<std::byte>& memory) {
  memory = from_hex(read_golden(name));
  const auto view = FrameView::decode(memory);
  EXPECT_TRUE(view) << name;
  return *view;
}

TEST(GoldenFrames, WritersStillWriteThem) {
  for (const auto& [name, frame] : sample_frames()) {
    const auto path = kDirectory / (name + ".hex");
    if (std::getenv("THALWEG_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path)) {
      std::ofstream(path) << to_hex(frame);
      const auto seeds = kDirectory / "../../corpus/frame_fuzz";
      std::ofstream(seeds / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
    }
    EXPECT_EQ(read_golden(name), to_hex(frame)) << name;
  }
}

TEST(GoldenFrames, EveryFileHasASample) {
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(kDirectory)) ++files;
  EXPECT_EQ(files, sample_frames().size());
}

TEST(GoldenFrames, RowsDecodeToTheirValues) {
  std::vector<std::byte> memory;
  const auto update = decode_golden("update_old_key", memory);
  EXPECT_EQ(update.kind(), FrameKind::update);
  EXPECT_TRUE(update.has(kOldKey));
  EXPECT_FALSE(update.has(kStreamed));
  EXPECT_EQ(update.xid(), base::Xid{0xF0000001});
  EXPECT_EQ(update.relation(), base::RelationId{16'385});
  EXPECT_EQ(update.header().table_version, 3U);
  EXPECT_EQ(update.lsn(), base::Lsn{0x16B374D000});
  EXPECT_TRUE(std::ranges::equal(update.old_tuple().bytes(), make_tuple_bytes(kSampleOldKey)));
  EXPECT_TRUE(std::ranges::equal(update.new_tuple().bytes(), make_tuple_bytes(kSampleNewRow)));
  const auto insert = decode_golden("insert_streamed", memory);
  EXPECT_EQ(insert.kind(), FrameKind::insert);
  EXPECT_TRUE(insert.has(kStreamed));
  EXPECT_EQ(insert.subxid(), base::Xid{0xF0000002});
  const auto remove = decode_golden("remove_old_row", memory);
  EXPECT_EQ(remove.kind(), FrameKind::remove);
  EXPECT_TRUE(std::ranges::equal(remove.old_tuple().bytes(), make_tuple_bytes(kSampleNewRow)));
}

TEST(GoldenFrames, TableDecodesToItsDescription) {
  std::vector<std::byte> memory;
  const auto table = decode_golden("table", memory).table().value();
  EXPECT_EQ(table.relation, base::RelationId{16'385});
  EXPECT_EQ(table.version, 3U);
  EXPECT_EQ(table.schema_name, "public");
  EXPECT_EQ(table.table_name, "Straße \"x\"");
  EXPECT_EQ(table.replica_identity, 'd');
  ASSERT_EQ(table.columns.size(), 2U);
  EXPECT_EQ(table.columns[0].name, "id");
  EXPECT_EQ(table.columns[0].type, base::TypeId{23});
  EXPECT_EQ(table.columns[0].type_modifier, -1);
  EXPECT_TRUE(table.columns[0].is_key);
  EXPECT_EQ(table.columns[1].name, "label");
  EXPECT_EQ(table.columns[1].type_modifier, 84);
  EXPECT_FALSE(table.columns[1].is_key);
}

TEST(GoldenFrames, MarksDecodeToTheirValues) {
  std::vector<std::byte> memory;
  const auto begin = decode_golden("begin", memory).transaction_mark();
  EXPECT_EQ(begin.commit_lsn, sample_mark().commit_lsn);
  EXPECT_EQ(begin.end_lsn, base::Lsn{});
  EXPECT_EQ(begin.commit_time, sample_mark().commit_time);
  const auto commit = decode_golden("commit_streamed", memory);
  EXPECT_TRUE(commit.has(kStreamed));
  EXPECT_EQ(commit.lsn(), sample_mark().commit_lsn);
  EXPECT_EQ(commit.transaction_mark().end_lsn, sample_mark().end_lsn);
  const auto abort = decode_golden("abort", memory);
  EXPECT_EQ(abort.subxid(), base::Xid{0xF0000002});
  EXPECT_EQ(abort.lsn(), base::Lsn{0x16B374D100});
  const auto progress = decode_golden("progress", memory);
  EXPECT_EQ(progress.lsn(), base::Lsn{0x16B374D900});
  EXPECT_EQ(progress.server_time(), base::UnixMicros{1'700'000'000'999'999});
  const auto truncate = decode_golden("truncate", memory);
  EXPECT_TRUE(truncate.has(kCascade));
  EXPECT_TRUE(truncate.has(kRestartIdentity));
  EXPECT_EQ(truncate.truncated_relations(), (std::vector<base::RelationId>{{16'385}, {16'400}}));
}

}  // namespace
}  // namespace thalweg::lcr
