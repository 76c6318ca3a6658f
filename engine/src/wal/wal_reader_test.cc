#include "wal/wal_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "wal/wal_bytes.h"

namespace thalweg::wal {
namespace {

constexpr base::Lsn kSegment{uint64_t{WalBytes::kSegmentBytes} * 3};
constexpr base::Lsn kMidst{kSegment.value + 5 * kPageBytes};

struct Read {
  std::vector<std::pair<base::Lsn, std::string>> records;  // begin and body
  std::optional<base::Error> error;
  base::Lsn end;

  std::vector<base::Lsn> begins() const {
    std::vector<base::Lsn> all;
    for (const auto& [begin, body] : records) all.push_back(begin);
    return all;
  }
};

// In portions of `portion` bytes.
Read read(std::span<const std::byte> bytes, const WalReaderOptions& options, size_t portion = SIZE_MAX) {
  WalReader reader(options);
  Read found;
  while (!bytes.empty() && !found.error) {
    const auto part = bytes.first(std::min(portion, bytes.size()));
    bytes = bytes.subspan(part.size());
    reader.feed(part);
    while (true) {
      const auto record = reader.next();
      if (!record) found.error = record.error();
      if (!record || *record == nullptr) break;
      const auto body = (*record)->body;
      found.records.emplace_back((*record)->begin,
                                 std::string(reinterpret_cast<const char*>(body.data()), body.size()));
      found.end = (*record)->end;
    }
  }
  return found;
}

std::string message_of(const Read& found) { return found.error ? found.error->message : ""; }

TEST(WalReaderTest, RecordsComeWholeInPortionsOfAnySize) {
  WalBytes wal(kSegment);
  std::mt19937 random(7);
  std::vector<std::pair<base::Lsn, std::string>> written;
  // Bodies of all lengths around a page's, so that headers of records and padding meet the ends of pages.
  for (size_t length = 0; length < 300; ++length) {
    const std::string body(length < 250 ? length * 7 : random() % 40'000, static_cast<char>('a' + length % 26));
    written.emplace_back(wal.record(body), body);
  }
  for (const size_t portion : {size_t{1}, size_t{7}, size_t{4096}, size_t{8192}, size_t{100'000}, SIZE_MAX}) {
    const Read found = read(wal.bytes(), {.start = kSegment, .system_identifier = WalBytes::kSystem}, portion);
    EXPECT_EQ(message_of(found), "");
    EXPECT_TRUE(found.records == written) << portion << " bytes a portion: " << found.records.size();
    EXPECT_EQ(found.end, wal.end());
  }
}

TEST(WalReaderTest, BeginsAtARecordAndBehindTheRestOfAnEarlierOne) {
  WalBytes wal(kMidst);
  wal.record("first");
  const base::Lsn second = wal.record("second");
  const base::Lsn third = wal.record(std::string(3 * kPageBytes, 'x'));
  const base::Lsn fourth = wal.record("fourth");
  EXPECT_EQ(read(wal.bytes(), {.start = second}).begins(), (std::vector{second, third, fourth}));
  // On the pages that the third one goes on over, none begins.
  for (uint64_t page = 1; page <= 3; ++page) {
    const auto rest = wal.bytes().subspan(page * kPageBytes);
    for (const size_t portion : {size_t{1}, SIZE_MAX}) {
      const Read found = read(rest, {.start = {kMidst.value + page * kPageBytes}}, portion);
      EXPECT_EQ(message_of(found), "");
      EXPECT_EQ(found.begins(), std::vector{fourth}) << page;
    }
  }
}

TEST(WalReaderTest, BehindASwitchComesTheNextSegment) {
  WalBytes wal({kSegment.value - 2 * kPageBytes});
  const base::Lsn first = wal.record("first");
  const base::Lsn change = wal.switch_segment();
  const base::Lsn second = wal.record("second");
  const Read found = read(wal.bytes(), {.start = first}, 1000);
  EXPECT_EQ(message_of(found), "");
  EXPECT_EQ(found.begins(), (std::vector{first, change, second}));
  EXPECT_EQ(second.value, kSegment.value + kLongPageHeaderBytes);
}

// A switch that began on the page before: its end, and the rest of the segment.
class SwitchOverPagesTest : public ::testing::Test {
 protected:
  // `bytes_before`: of the switch, on the page before this one.
  static WalBytes with_switch(base::Lsn page, uint64_t bytes_before) {
    WalBytes wal({page.value - kPageBytes});
    wal.record(std::string(kPageBytes - kPageHeaderBytes - kRecordHeaderBytes - bytes_before, 'x'));
    EXPECT_EQ(wal.end().value, page.value - bytes_before);
    wal.switch_segment();
    wal.record("behind");
    return wal;
  }
};

TEST_F(SwitchOverPagesTest, TheRestOfItsSegmentIsUnused) {
  for (const base::Lsn page : {kSegment, kMidst}) {
    for (const uint64_t before : {8, 16}) {
      const WalBytes wal = with_switch(page, before);
      const base::Lsn behind{kSegment.value + WalBytes::kSegmentBytes + kLongPageHeaderBytes};
      for (const size_t portion : {size_t{1000}, size_t{7}, SIZE_MAX}) {
        const Read found = read(wal.bytes().subspan(kPageBytes), {.start = page}, portion);
        EXPECT_EQ(message_of(found), "") << to_string(page) << " " << before;
        EXPECT_EQ(found.begins(), std::vector{behind}) << to_string(page) << " " << before;
      }
    }
  }
}

TEST_F(SwitchOverPagesTest, NothingElseIsFollowedByZeros) {
  WalBytes wal = with_switch(kSegment, 8);
  wal.at({kSegment.value + 5 * kPageBytes}) = 1;
  EXPECT_NE(message_of(read(wal.bytes().subspan(kPageBytes), {.start = kSegment})).find("other than zeros"),
            std::string::npos);
  // Behind the end of a record with a body, and behind a whole record.
  for (const size_t rest : {size_t{32}, size_t{0}}) {
    WalBytes other({kSegment.value - kPageBytes});
    other.record(std::string(kPageBytes - kPageHeaderBytes - kRecordHeaderBytes - 8, 'x'));
    other.record(std::string(rest, 'x'));
    if (rest == 0) other.record("whole");
    std::string bytes(reinterpret_cast<const char*>(other.bytes().data()), other.bytes().size());
    bytes.resize(3 * kPageBytes);
    const auto second = std::as_bytes(std::span{bytes}).subspan(kPageBytes);
    EXPECT_NE(message_of(read(second, {.start = kSegment})).find("would have 0 bytes"), std::string::npos) << rest;
  }
}

TEST(WalReaderTest, ARecordThatWasNeverFinishedIsNone) {
  WalBytes wal(kMidst);
  const base::Lsn first = wal.record("first");
  const base::Lsn lost = wal.lost_record(std::string(2 * kPageBytes, 'x'));
  const base::Lsn last = wal.record("last");
  for (const size_t portion : {size_t{1}, SIZE_MAX}) {
    const Read found = read(wal.bytes(), {.start = first}, portion);
    EXPECT_EQ(message_of(found), "");
    EXPECT_EQ(found.begins(), (std::vector{first, {kMidst.value + kPageBytes + kPageHeaderBytes}, last}));
  }
  // Another one than the record behind it names.
  ++wal.at({kMidst.value + kPageBytes + kPageHeaderBytes + kRecordHeaderBytes + 2});
  const Read found = read(wal.bytes(), {.start = first, .checks_crc = false});
  EXPECT_NE(message_of(found).find("was never finished"), std::string::npos) << message_of(found);
  EXPECT_EQ(found.error->lsn, (base::Lsn{kMidst.value + kPageBytes + kPageHeaderBytes}));
  EXPECT_NE(message_of(found).find(to_string(lost)), std::string::npos);
}

TEST(WalReaderTest, EachVersionHasItsOwnMagic) {
  for (const WalFormat& format : wal_formats()) {
    WalBytes wal(kSegment, format);
    const base::Lsn first = wal.record("first");
    wal.lost_record(std::string(kPageBytes, 'x'));
    WalReader reader({.start = first});
    reader.feed(wal.bytes());
    const auto record = reader.next();
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(reader.format()->version, format.version);
    EXPECT_TRUE(reader.next());
  }
}

// WAL of another server, or damaged.
class DamagedWalTest : public ::testing::Test {
 protected:
  DamagedWalTest() : wal_(kSegment) {
    first_ = wal_.record("first");
    second_ = wal_.record(std::string(2 * kPageBytes, 'x'));
    third_ = wal_.record("third");
  }
  std::string refusal(const WalReaderOptions& options = {.start = kSegment}) {
    const Read found = read(wal_.bytes(), options);
    EXPECT_TRUE(!found.error || found.error->code == base::ErrorCode::protocol_violation);
    return message_of(found);
  }
  base::Lsn page(uint64_t number) { return {kSegment.value + number * kPageBytes}; }

  WalBytes wal_;
  base::Lsn first_, second_, third_;
};

TEST_F(DamagedWalTest, AnyChangedByteIsFound) {
  ASSERT_EQ(refusal(), "");
  // But for padding (the third record's is the last), and a timeline, which may rise.
  const auto is_used = [&](base::Lsn at) {
    const uint64_t on_page = at.value % kPageBytes;
    if (on_page < page_header_bytes({at.value - on_page}, WalBytes::kSegmentBytes)) {
      return on_page < 4 || (on_page >= 8 && on_page < 20) || on_page >= kPageHeaderBytes;
    }
    return at.value < first_.value + kRecordHeaderBytes + 5 || (at >= second_ && at.value < wal_.end().value - 3);
  };
  size_t changed = 0;
  for (base::Lsn at = kSegment; at < wal_.end(); at.value += 5) {
    if (!is_used(at)) continue;
    wal_.at(at) = static_cast<char>(wal_.at(at) ^ 0x10);
    // A record that is announced longer is not there yet.
    const Read found = read(wal_.bytes(), {.start = kSegment, .system_identifier = WalBytes::kSystem});
    EXPECT_TRUE(found.error || found.records.size() < 3) << to_string(at);
    wal_.at(at) = static_cast<char>(wal_.at(at) ^ 0x10);
    ++changed;
  }
  EXPECT_GT(changed, 3000U);
}

TEST_F(DamagedWalTest, AnotherSystem) {
  EXPECT_NE(
      refusal({.start = kSegment, .system_identifier = 42}).find("is of the system 7000000000000000001, not of 42"),
      std::string::npos);
}

TEST_F(DamagedWalTest, SegmentsOfAnotherSize) {
  EXPECT_NE(refusal({.start = kSegment, .segment_bytes = 1U << 20}).find("says that segments have 16777216 bytes"),
            std::string::npos);
}

TEST_F(DamagedWalTest, ATimelineThatFalls) {
  wal_.at({page(1).value + 4}) = 0;
  EXPECT_NE(refusal().find("goes back from timeline 1 to 0"), std::string::npos) << refusal();
}

// The page with the switch is the old timeline's, and the next one the new one's.
TEST(WalReaderTest, ATimelineRisesWhereTheSourceWentOverAndNowhereElse) {
  WalBytes wal(kSegment);
  for (int i = 0; i < 30; ++i) wal.record(std::string(1000, 'a'));
  const base::Lsn end = wal.end();
  wal.set_timeline(2);
  for (int i = 0; i < 30; ++i) wal.record(std::string(1000, 'b'));
  const auto switched_at = [](base::Lsn lsn) {
    return WalReaderOptions{.start = kSegment, .timeline_at = [lsn](base::Lsn at) { return at < lsn ? 1U : 2U; }};
  };
  const Read whole = read(wal.bytes(), switched_at(end));
  EXPECT_EQ(message_of(whole), "");
  EXPECT_EQ(whole.records.size(), 60U);
  for (const base::Lsn wrong : {kSegment, base::Lsn{end.value - kPageBytes}, base::Lsn{end.value + kPageBytes}}) {
    const std::string message = message_of(read(wal.bytes(), switched_at(wrong)));
    EXPECT_NE(message.find("and the source was on"), std::string::npos) << to_string(wrong) << message;
  }
}

TEST_F(DamagedWalTest, AMissingPage) {
  auto bytes = wal_.bytes();
  std::vector<std::byte> cut(bytes.begin(), bytes.begin() + kPageBytes);
  cut.insert(cut.end(), bytes.begin() + 2 * kPageBytes, bytes.end());
  const Read found = read(cut, {.start = kSegment});
  EXPECT_NE(message_of(found).find("says that it is at"), std::string::npos) << message_of(found);
}

TEST_F(DamagedWalTest, AnAnnouncedLengthTakesNoMemory) {
  // 2 GiB, in the header's first four bytes.
  wal_.at({first_.value + 3}) = static_cast<char>(0x7F);
  EXPECT_NE(refusal().find("would have 21"), std::string::npos) << refusal();
  wal_.at({first_.value + 3}) = 0x3F;  // just below the limit: the next page does not go on with it
  EXPECT_NE(refusal().find("lacks 10569"), std::string::npos) << refusal();
}

TEST_F(DamagedWalTest, NothingFollowsAnError) {
  wal_.at({second_.value + 100}) = 'y';
  WalReader reader({.start = kSegment});
  reader.feed(wal_.bytes());
  EXPECT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace thalweg::wal
