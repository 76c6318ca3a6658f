#include "capture/logical/frame_translator.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "capture/logical/pgoutput_bytes.h"
#include "capture/logical/truncated_partition.h"

namespace thalweg::capture {
namespace {

using base::ErrorCode;
using lcr::FrameKind;

class KeepingSink final : public FrameSink {
 public:
  std::span<std::byte> reserve(size_t frame_bytes) override {
    if (frames.size() == limit) return {};
    pending_.assign(frame_bytes, std::byte{0xEE});
    return pending_;
  }
  void enqueue() override { frames.push_back(pending_); }
  lcr::FrameView view(size_t i) const {
    const auto decoded = lcr::FrameView::decode(frames[i]);
    EXPECT_TRUE(decoded) << decoded.error().message;
    return *decoded;
  }
  std::vector<FrameKind> kinds() const {
    std::vector<FrameKind> all;
    for (size_t i = 0; i < frames.size(); ++i) all.push_back(view(i).kind());
    return all;
  }
  std::vector<std::vector<std::byte>> frames;
  size_t limit = SIZE_MAX;

 private:
  std::vector<std::byte> pending_;
};

class FrameTranslatorTest : public testing::Test {
 protected:
  base::Result<bool> feed(const PgoutputBytes& bytes, base::Lsn lsn = {}) {
    const auto parsed = parser_.parse(bytes);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return translator_.translate(**parsed, parser_, lsn);
  }
  KeepingSink sink_;
  PgoutputParser parser_;
  FrameTranslator translator_{sink_};
};

TEST_F(FrameTranslatorTest, DescribesATableBeforeItsFirstRow) {
  ASSERT_TRUE(feed(begin_bytes(7)));
  ASSERT_TRUE(feed(relation_bytes(0, 2, "never used", {"a"})));
  ASSERT_TRUE(feed(relation_bytes(0, 1, "t", {"a"})));
  ASSERT_TRUE(feed(insert_bytes(0, 1, {"x"}), {0x90}));
  ASSERT_TRUE(feed(relation_bytes(0, 1, "t", {"a"})));
  ASSERT_TRUE(feed(insert_bytes(0, 1, {"y"})));
  ASSERT_TRUE(feed(relation_bytes(0, 1, "t", {"a", "b"})));
  ASSERT_TRUE(feed(insert_bytes(0, 1, {"z", "z"}), {0x98}));
  ASSERT_TRUE(feed(commit_bytes()));
  ASSERT_EQ(sink_.kinds(), (std::vector{FrameKind::begin, FrameKind::table, FrameKind::insert, FrameKind::table,
                                        FrameKind::insert, FrameKind::table, FrameKind::insert, FrameKind::commit}));
  EXPECT_EQ(sink_.view(2).header().table_version, 1u);
  // Repeated as the source repeats it: something else about the table may have changed.
  EXPECT_EQ(sink_.frames[3], sink_.frames[1]);
  EXPECT_EQ(sink_.view(4).lsn(), base::Lsn{0x90});  // the source gives some messages no position
  EXPECT_EQ(sink_.view(5).table()->version, 2u);
  EXPECT_EQ(sink_.view(6).header().table_version, 2u);
  EXPECT_EQ(translator_.counts().lcrs, 3u);
  EXPECT_EQ(translator_.counts().transactions, 1u);
}

// The source names the root, then the partition, before the first row that the partition has.
TEST_F(FrameTranslatorTest, NamesThePartitionWhoseRowsComeAsItsRoots) {
  ASSERT_TRUE(feed(begin_bytes(7)));
  ASSERT_TRUE(feed(relation_bytes(0, 1, "root", {"a"})));
  ASSERT_TRUE(feed(relation_bytes(0, 2, "leaf", {"a"})));
  ASSERT_TRUE(feed(insert_bytes(0, 1, {"x"}), {0x90}));
  ASSERT_TRUE(feed(insert_bytes(0, 1, {"y"})));
  ASSERT_TRUE(feed(relation_bytes(0, 1, "root", {"a"})));
  ASSERT_TRUE(feed(insert_bytes(0, 1, {"z"})));
  ASSERT_TRUE(feed(commit_bytes()));
  ASSERT_EQ(sink_.kinds(), (std::vector{FrameKind::begin, FrameKind::table, FrameKind::partition, FrameKind::insert,
                                        FrameKind::insert, FrameKind::table, FrameKind::insert, FrameKind::commit}));
  const auto frame = sink_.view(2);
  EXPECT_EQ(frame.relation(), base::RelationId{1});
  EXPECT_EQ(frame.xid(), base::Xid{7});
  EXPECT_EQ(frame.lsn(), base::Lsn{0x90});
  EXPECT_EQ(frame.partition()->partition, base::RelationId{2});
  EXPECT_EQ(frame.partition()->partition_name, "leaf");
  EXPECT_EQ(translator_.counts().lcrs, 3u);
}

// The report of thalweg_output: subtransaction 9 has truncated a partition of table 1.
const std::string kTruncated("\0\0\0\x09\0\0\0\x01\0\0\0\x02public\0leaf", 23);

PgoutputBytes truncated_bytes(uint32_t stream_xid, const std::string& content, std::string_view prefix) {
  PgoutputBytes bytes('M');
  if (stream_xid != 0) bytes.u32(stream_xid);
  return bytes.u8(1).u64(0x90).text(prefix).u32(static_cast<uint32_t>(content.size())).raw(content);
}

TEST_F(FrameTranslatorTest, NamesAPartitionThatWasTruncatedWhereTheSourceVouchesForIt) {
  const std::string whole = kTruncated + '\0';
  ASSERT_TRUE(feed(begin_bytes(7)));
  ASSERT_TRUE(feed(truncated_bytes(0, whole, kTruncatedPartitionPrefix), {0x90}));
  EXPECT_EQ(sink_.kinds(), std::vector{FrameKind::begin}) << "a user's message";
  translator_.trust_truncated_partitions();
  ASSERT_TRUE(feed(truncated_bytes(0, whole, "another's")));
  ASSERT_TRUE(feed(truncated_bytes(0, whole, kTruncatedPartitionPrefix), {0x90}));
  ASSERT_TRUE(feed(commit_bytes()));
  ASSERT_TRUE(feed(PgoutputBytes('S').u32(8).u8(1)));
  ASSERT_TRUE(feed(truncated_bytes(8, whole, kTruncatedPartitionPrefix)));
  ASSERT_EQ(sink_.kinds(),
            (std::vector{FrameKind::begin, FrameKind::partition, FrameKind::commit, FrameKind::partition}));
  const auto frame = sink_.view(1);
  EXPECT_TRUE(frame.has(lcr::kPartitionTruncated));
  EXPECT_EQ(frame.xid(), base::Xid{7});
  EXPECT_EQ(frame.subxid(), base::Xid{}) << "a transaction that comes whole";
  EXPECT_EQ(frame.lsn(), base::Lsn{0x90});
  EXPECT_EQ(frame.relation(), base::RelationId{1});
  EXPECT_EQ(frame.partition()->partition, base::RelationId{2});
  EXPECT_EQ(frame.partition()->partition_name, "leaf");
  EXPECT_EQ(sink_.view(3).subxid(), base::Xid{9});
  EXPECT_TRUE(sink_.view(3).has(lcr::kStreamed));
  EXPECT_EQ(translator_.counts().lcrs, 0u);

  // Its subtransaction is among those that did not commit.
  ASSERT_TRUE(feed(PgoutputBytes('E')));
  ASSERT_TRUE(feed(PgoutputBytes('k').u32(8).u32(0)));
  EXPECT_EQ(sink_.kinds().back(), FrameKind::abort);
  EXPECT_EQ(sink_.view(4).subxid(), base::Xid{9});
}

TEST_F(FrameTranslatorTest, RefusesAMalformedTruncatedPartition) {
  translator_.trust_truncated_partitions();
  ASSERT_TRUE(feed(begin_bytes(7)));
  for (const std::string& malformed : {std::string(), kTruncated, kTruncated + std::string(2, '\0'),
                                       std::string(12, '\0') + kTruncated.substr(12) + '\0'}) {
    const auto refused = feed(truncated_bytes(0, malformed, kTruncatedPartitionPrefix));
    ASSERT_FALSE(refused) << malformed.size();
    EXPECT_EQ(refused.error().code, base::ErrorCode::protocol_violation);
  }
}

TEST_F(FrameTranslatorTest, NamesTheOriginOfATransactionThatComesWhole) {
  FrameTranslator naming(sink_, nullptr, nullptr, true);
  for (FrameTranslator* const translator : {&naming, &translator_}) {
    sink_.frames.clear();
    for (const PgoutputBytes& bytes :
         {begin_bytes(7), PgoutputBytes('O').u64(1).text("archive"), commit_bytes(), PgoutputBytes('S').u32(8).u8(1),
          PgoutputBytes('O').u64(1).text("archive"), PgoutputBytes('E'), begin_bytes(9), commit_bytes()}) {
      const auto parsed = parser_.parse(bytes);
      ASSERT_TRUE(parsed) << parsed.error().message;
      ASSERT_TRUE(translator->translate(**parsed, parser_, {}));
    }
    std::vector wanted{FrameKind::begin, FrameKind::origin, FrameKind::commit,
                       FrameKind::begin, FrameKind::origin, FrameKind::commit};
    if (translator != &naming) std::erase(wanted, FrameKind::origin);
    ASSERT_EQ(sink_.kinds(), wanted);
    if (translator != &naming) continue;
    EXPECT_EQ(sink_.view(1).origin(), "archive");
    EXPECT_EQ(sink_.view(1).lsn(), sink_.view(0).lsn());
    EXPECT_EQ(sink_.view(4).origin(), "");
  }
}

TEST_F(FrameTranslatorTest, APartitionIsOfItsSubtransaction) {
  ASSERT_TRUE(feed(PgoutputBytes('S').u32(8).u8(1)));
  ASSERT_TRUE(feed(relation_bytes(9, 1, "root", {"a"})));
  ASSERT_TRUE(feed(relation_bytes(9, 2, "leaf", {"a"})));
  ASSERT_TRUE(feed(insert_bytes(9, 1, {"x"})));
  ASSERT_EQ(sink_.kinds(), (std::vector{FrameKind::table, FrameKind::partition, FrameKind::insert}));
  EXPECT_EQ(sink_.view(1).xid(), base::Xid{8});
  EXPECT_EQ(sink_.view(1).subxid(), base::Xid{9});
  EXPECT_TRUE(sink_.view(1).has(lcr::kStreamed));
}

TEST_F(FrameTranslatorTest, NamesSubtransactions) {
  ASSERT_TRUE(feed(PgoutputBytes('S').u32(8).u8(1)));
  ASSERT_TRUE(feed(relation_bytes(8, 1, "t", {"a"})));
  ASSERT_TRUE(feed(insert_bytes(8, 1, {"x"})));
  ASSERT_TRUE(feed(insert_bytes(9, 1, {"y"})));
  ASSERT_TRUE(feed(PgoutputBytes('E')));
  ASSERT_TRUE(feed(PgoutputBytes('A').u32(8).u32(9), {0x99}));
  ASSERT_TRUE(feed(PgoutputBytes('A').u32(8).u32(8)));
  ASSERT_EQ(sink_.frames.size(), 5u);
  EXPECT_FALSE(sink_.view(1).subxid());
  EXPECT_EQ(sink_.view(2).subxid(), base::Xid{9});
  EXPECT_EQ(sink_.view(2).xid(), base::Xid{8});
  EXPECT_TRUE(sink_.view(2).has(lcr::kStreamed));
  EXPECT_EQ(sink_.view(3).kind(), FrameKind::abort);
  EXPECT_EQ(sink_.view(3).subxid(), base::Xid{9});
  EXPECT_EQ(sink_.view(3).lsn(), base::Lsn{0x99});
  EXPECT_FALSE(sink_.view(4).subxid());
}

// Subtransaction 9 was rolled back and said so; 10 was, too, and only the list of those that committed says it.
TEST_F(FrameTranslatorTest, WhatDidNotCommitIsAborted) {
  ASSERT_TRUE(feed(PgoutputBytes('S').u32(8).u8(1)));
  ASSERT_TRUE(feed(relation_bytes(8, 1, "t", {"a"})));
  for (const uint32_t subxid : {8, 9, 10, 11, 10}) ASSERT_TRUE(feed(insert_bytes(subxid, 1, {"x"})));
  ASSERT_TRUE(feed(PgoutputBytes('T').u32(12).u32(1).u8(0).u32(1)));
  ASSERT_TRUE(feed(PgoutputBytes('E')));
  ASSERT_TRUE(feed(PgoutputBytes('A').u32(8).u32(9), {0x99}));
  sink_.frames.clear();
  ASSERT_TRUE(feed(PgoutputBytes('k').u32(8).u32(2).u32(11).u32(13)));
  ASSERT_TRUE(feed(PgoutputBytes('c').u32(8).u8(0).u64(0x100).u64(0x140).u64(1)));
  ASSERT_EQ(sink_.kinds(), (std::vector{FrameKind::abort, FrameKind::abort, FrameKind::commit}));
  std::set<uint32_t> aborted;
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(sink_.view(i).xid(), base::Xid{8});
    EXPECT_EQ(sink_.view(i).lsn(), base::Lsn{0x99});
    aborted.insert(sink_.view(i).subxid().value);
  }
  EXPECT_EQ(aborted, (std::set<uint32_t>{10, 12}));
  // Nothing of it is left for a transaction that gets the same number.
  sink_.frames.clear();
  ASSERT_TRUE(feed(PgoutputBytes('k').u32(8).u32(0)));
  EXPECT_TRUE(sink_.frames.empty());
}

TEST_F(FrameTranslatorTest, AStreamedCommitNeedsTheListOfItsSubtransactions) {
  const auto commit = PgoutputBytes('c').u32(8).u8(0).u64(0x100).u64(0x140).u64(1);
  EXPECT_EQ(feed(commit).error().code, ErrorCode::protocol_violation);
  ASSERT_TRUE(feed(PgoutputBytes('k').u32(9).u32(0)));
  EXPECT_EQ(feed(commit).error().code, ErrorCode::protocol_violation);
  ASSERT_TRUE(feed(PgoutputBytes('k').u32(8).u32(0)));
  EXPECT_TRUE(feed(commit));
  EXPECT_EQ(feed(commit).error().code, ErrorCode::protocol_violation);
}

TEST_F(FrameTranslatorTest, AnUpdateSaysOfWhichRowItIs) {
  const auto update = [] { return PgoutputBytes('U').u32(1).raw("N").tuple({"x"}); };
  ASSERT_TRUE(feed(begin_bytes(7)));
  auto keyless = PgoutputBytes('R').u32(1).text("public").text("t").raw("d").u16(1);
  ASSERT_TRUE(feed(keyless.u8(0).text("a").u32(25).u32(0xFFFFFFFF)));
  const auto refused = feed(update());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::replica_identity_missing);
  EXPECT_EQ(refused.error().table, "\"public\".\"t\"");
  ASSERT_TRUE(feed(relation_bytes(0, 1, "t", {"a"})));
  EXPECT_TRUE(feed(update()));
}

TEST_F(FrameTranslatorTest, RefusesRowsThatFitNoDescription) {
  ASSERT_TRUE(feed(begin_bytes(7)));
  EXPECT_EQ(feed(insert_bytes(0, 1, {"x"})).error().code, ErrorCode::protocol_violation);
  ASSERT_TRUE(feed(relation_bytes(0, 1, "t", {"a", "b"})));
  EXPECT_EQ(feed(insert_bytes(0, 1, {"x"})).error().code, ErrorCode::protocol_violation);
  EXPECT_EQ(feed(PgoutputBytes('T').u32(1).u8(0).u32(5)).error().code, ErrorCode::protocol_violation);
}

TEST_F(FrameTranslatorTest, StopsWhenTheSinkIsClosed) {
  sink_.limit = 1;
  ASSERT_TRUE(feed(begin_bytes(7)));
  ASSERT_TRUE(feed(relation_bytes(0, 1, "t", {"a"})));
  const auto closed = feed(insert_bytes(0, 1, {"x"}));
  ASSERT_TRUE(closed);
  EXPECT_FALSE(*closed);
  EXPECT_FALSE(translator_.progress({0x200}, {}));
  EXPECT_EQ(translator_.counts().lcrs, 0u);
}

// The tap gets changes that have committed; it is looked at only where transactions begin.
TEST_F(FrameTranslatorTest, ShowsCommittedChangesToATap) {
  ChangeTap tap;
  FrameTranslator translator(sink_, nullptr, &tap);
  const auto feed_tapped = [&](const PgoutputBytes& bytes) {
    const auto parsed = parser_.parse(bytes);
    EXPECT_TRUE(parsed) << parsed.error().message;
    EXPECT_TRUE(translator.translate(**parsed, parser_, {0x90}));
  };
  const auto commit_streamed = PgoutputBytes('c').u32(8).u8(0).u64(0x100).u64(0x140).u64(1);
  feed_tapped(begin_bytes(7));
  feed_tapped(relation_bytes(0, 1, "t", {"a"}));
  feed_tapped(insert_bytes(0, 1, {"before anybody asked"}));
  TappedChanges taken;
  std::thread reader([&] { taken = tap.take({"public", "t"}, 3, std::chrono::seconds(20)); });
  while (!tap.is_wanted()) std::this_thread::yield();
  feed_tapped(insert_bytes(0, 1, {"in the transaction that was under way"}));
  feed_tapped(commit_bytes());
  feed_tapped(PgoutputBytes('S').u32(8).u8(1));
  feed_tapped(insert_bytes(8, 1, {"b"}));
  feed_tapped(insert_bytes(9, 1, {"rolled back and said so"}));
  feed_tapped(insert_bytes(10, 1, {"rolled back"}));
  feed_tapped(PgoutputBytes('E'));
  feed_tapped(PgoutputBytes('A').u32(8).u32(9));
  feed_tapped(begin_bytes(11));
  feed_tapped(insert_bytes(0, 1, {"a"}));
  feed_tapped(commit_bytes());
  feed_tapped(PgoutputBytes('S').u32(12).u8(1));
  feed_tapped(insert_bytes(12, 1, {"rolled back as a whole"}));
  feed_tapped(PgoutputBytes('E'));
  feed_tapped(PgoutputBytes('A').u32(12).u32(12));
  feed_tapped(PgoutputBytes('k').u32(8).u32(0));
  feed_tapped(commit_streamed);
  feed_tapped(begin_bytes(13));
  feed_tapped(insert_bytes(0, 1, {"c"}));
  reader.join();
  std::string rows;
  for (const TappedChange& change : taken.changes) {
    const auto frame = lcr::FrameView::decode(change.frame);
    ASSERT_TRUE(frame) << frame.error().message;
    EXPECT_EQ(frame->lsn(), base::Lsn{0x90});
    std::vector<lcr::Value> values;
    frame->new_tuple().read(values);
    rows.append(reinterpret_cast<const char*>(values.at(0).bytes.data()), values[0].bytes.size());
  }
  EXPECT_EQ(rows, "abc");
}

}  // namespace
}  // namespace thalweg::capture
