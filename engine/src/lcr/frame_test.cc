#include "lcr/frame.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lcr/frame_check.h"
#include "lcr/frame_samples.h"

namespace thalweg::lcr {
namespace {

using Bytes = std::vector<std::byte>;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Makes the checksum right again, so that a test reaches what lies behind it.
Bytes sealed(Bytes frame) {
  const uint32_t checksum = frame_checksum(frame);
  std::memcpy(frame.data() + 4, &checksum, sizeof(checksum));
  return frame;
}

Bytes sample(const std::string& name) {
  for (auto& [sample_name, frame] : sample_frames()) {
    if (sample_name == name) return frame;
  }
  ADD_FAILURE() << name;
  return {};
}

void expect_corrupt(const Bytes& frame, std::string_view why) {
  const auto view = FrameView::decode(frame);
  ASSERT_FALSE(view) << "expected: " << why;
  EXPECT_EQ(view.error().code, base::ErrorCode::corrupt_frame);
  EXPECT_NE(view.error().message.find(why), std::string::npos) << view.error().message;
}

template <typename Change>
void expect_corrupt_after(const std::string& name, Change change, std::string_view why) {
  Bytes frame = sample(name);
  change(frame, *reinterpret_cast<FrameHeader*>(frame.data()));
  expect_corrupt(sealed(frame), why);
}

TEST(Frame, EverySampleDecodes) {
  for (const auto& [name, frame] : sample_frames()) {
    const auto view = FrameView::decode(frame);
    ASSERT_TRUE(view) << name << ": " << view.error().message;
    EXPECT_EQ(view->bytes().size(), frame.size());
    EXPECT_EQ(FrameView::trusted(frame.data()).kind(), view->kind());
  }
}

TEST(Frame, EveryFlippedBitIsSeen) {
  for (const auto& [name, frame] : sample_frames()) {
    for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
      Bytes damaged = frame;
      damaged[bit / 8] ^= std::byte{static_cast<uint8_t>(1U << bit % 8)};
      EXPECT_FALSE(FrameView::decode(damaged)) << name << " bit " << bit;
    }
  }
}

TEST(Frame, EveryCutIsSeenAndBytesBehindAreIgnored) {
  for (const auto& [name, frame] : sample_frames()) {
    for (size_t size = 0; size < frame.size(); ++size) {
      const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(FrameView::decode(cut)) << name << " cut to " << size;
    }
    Bytes longer = frame;
    longer.resize(frame.size() + 17, std::byte{0xAB});
    const auto view = FrameView::decode(longer);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->bytes().size(), frame.size());
  }
}

TEST(Frame, RefusesMisalignedMemory) {
  const Bytes frame = sample("insert");
  Bytes shifted(frame.size() + 1);
  std::memcpy(shifted.data() + 1, frame.data(), frame.size());
  EXPECT_FALSE(FrameView::decode(std::span<const std::byte>(shifted).subspan(1)));
}

TEST(Frame, RefusesHeadersThatDoNotFit) {
  using H = FrameHeader;
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.version = 2; }, "version 2");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.kind = FrameKind{0}; }, "unknown kind");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.kind = FrameKind{12}; }, "unknown kind");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.flags = kOldKey; }, "flags");
  expect_corrupt_after("begin", [](Bytes&, H& h) { h.flags = kStreamed; }, "flags");
  expect_corrupt_after("abort", [](Bytes&, H& h) { h.flags = 0; }, "streamed");
  expect_corrupt_after("truncate", [](Bytes&, H& h) { h.flags = 1 << 5; }, "flags");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.xid = 0; }, "xid");
  expect_corrupt_after("table", [](Bytes&, H& h) { h.xid = 1; }, "xid");
  expect_corrupt_after("table", [](Bytes&, H& h) { h.lsn = 1; }, "WAL position");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.subxid = 1; }, "subxid");
  expect_corrupt_after("commit_streamed", [](Bytes&, H& h) { h.subxid = 1; }, "subxid");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.relation = 0; }, "relation");
  expect_corrupt_after("commit", [](Bytes&, H& h) { h.relation = 1; }, "relation");
  expect_corrupt_after("progress", [](Bytes&, H& h) { h.table_version = 1; }, "table version");
  expect_corrupt_after("partition", [](Bytes&, H& h) { h.table_version = 1; }, "table version");
  expect_corrupt_after("partition", [](Bytes&, H& h) { h.relation = 0; }, "relation");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.body_length += 8; }, "length");
  expect_corrupt_after("insert", [](Bytes&, H& h) { h.body_length = UINT32_MAX; }, "length");
  expect_corrupt_after("commit", [](Bytes&, H& h) { ++h.lsn; }, "commit LSN");
}

TEST(Frame, RefusesLengthsThatNoFrameHas) {
  for (const uint32_t length : {0U, 8U, 39U, 41U, 32U, 0x80000008U, UINT32_MAX}) {
    Bytes frame = sample("insert");
    std::memcpy(frame.data(), &length, sizeof(length));
    expect_corrupt(frame, "no frame is");
  }
}

TEST(Frame, RefusesBodiesThatDoNotFit) {
  using H = FrameHeader;
  expect_corrupt_after("insert", [](Bytes& f, H&) { f.back() = std::byte{1}; }, "padding");
  expect_corrupt_after("insert", [](Bytes& f, H&) { f[42] = std::byte{'x'}; }, "unknown mark");
  expect_corrupt_after("insert", [](Bytes& f, H&) { f[41] = std::byte{6}; }, "too early");
  expect_corrupt_after("insert", [](Bytes& f, H&) { f[41] = std::byte{4}; }, "after the last tuple");
  expect_corrupt_after("insert", [](Bytes& f, H&) { f[43] = std::byte{0xFF}; }, "too early");
  expect_corrupt_after("update_old_key", [](Bytes&, H& h) { h.flags = kOldKey | kOldRow; }, "not both");
  expect_corrupt_after("update_old_key", [](Bytes&, H& h) { h.flags = 0; }, "after the last tuple");
  expect_corrupt_after("remove_old_row", [](Bytes&, H& h) { h.flags = 0; }, "without an old tuple");
  expect_corrupt_after("update", [](Bytes&, H& h) { h.flags = kOldRow; }, "too early");
  expect_corrupt_after("begin", [](Bytes& f, H&) { f[55] = std::byte{1}; }, "no end LSN");
  expect_corrupt_after("truncate", [](Bytes& f, H&) { f[43] = std::byte{3}; }, "count");
  expect_corrupt_after("table", [](Bytes& f, H&) { f[40] = std::byte{'x'}; }, "replica identity");
  expect_corrupt_after("table", [](Bytes& f, H&) { f[43] = std::byte{0}; }, "zero byte");
  expect_corrupt_after("table", [](Bytes& f, H&) { f[41] = std::byte{0xFF}; }, "too early");
  expect_corrupt_after("origin", [](Bytes& f, H&) { f[41] = std::byte{0}; }, "is a name");
  expect_corrupt_after("partition", [](Bytes& f, H&) { f[42] = f[43] = std::byte{0}; }, "has a relation");
  expect_corrupt_after("partition", [](Bytes& f, H&) { f[45] = std::byte{0}; }, "name");
}

TEST(Frame, TupleCheckNeverReadsPastItsBytes) {
  const auto tuple = make_tuple_bytes(kSampleNewRow);
  EXPECT_EQ(check_tuple(tuple).value(), tuple.size());
  for (size_t size = 0; size < tuple.size(); ++size) {
    const Bytes cut(tuple.begin(),
                    tuple.begin() + static_cast<std::ptrdiff_t>(size));  // own memory: ASan watches its end
    EXPECT_FALSE(check_tuple(cut)) << size;
  }
  EXPECT_EQ(check_tuple(make_tuple_bytes({})).value(), 2U);  // a table without columns
}

TEST(Frame, TuplesComeBackColumnByColumn) {
  const auto frame = sample("update_old_key");
  const auto view = FrameView::decode(frame).value();
  std::vector<Value> values;
  view.new_tuple().read(values);
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(view.new_tuple().column_count(), 5);
  EXPECT_EQ(values[0].mark, ValueMark::binary);
  EXPECT_EQ(text_of(values[0].bytes), std::string_view("\0\0\0\x2a", 4));
  EXPECT_EQ(values[1].mark, ValueMark::text);
  EXPECT_EQ(text_of(values[1].bytes), "Größe");
  EXPECT_EQ(values[2].mark, ValueMark::null);
  EXPECT_EQ(values[3].mark, ValueMark::unchanged);
  EXPECT_EQ(values[4].mark, ValueMark::binary);
  EXPECT_TRUE(values[4].bytes.empty());
  view.old_tuple().read(values);
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(text_of(values[0].bytes), std::string_view("\0\0\0\x29", 4));
}

TEST(Frame, OnlyTheTuplesOfTheKindExist) {
  const auto exists = [](const std::string& name) {
    const auto frame = sample(name);
    const auto view = FrameView::decode(frame).value();
    return std::pair(view.old_tuple().exists(), view.new_tuple().exists());
  };
  EXPECT_EQ(exists("insert"), std::pair(false, true));
  EXPECT_EQ(exists("update"), std::pair(false, true));
  EXPECT_EQ(exists("update_old_key"), std::pair(true, true));
  EXPECT_EQ(exists("remove_old_row"), std::pair(true, false));
  EXPECT_EQ(exists("commit"), std::pair(false, false));
}

}  // namespace
}  // namespace thalweg::lcr
