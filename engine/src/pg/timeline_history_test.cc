#include "pg/timeline_history.h"

#include <gtest/gtest.h>

#include <string>

namespace thalweg::pg {
namespace {

using base::Lsn;

constexpr const char* kThird =
    "# what an administrator wrote\n"
    "1\t0/3000148\tno recovery target specified\n"
    "\n"
    "2\t16/B374D848\tbefore 2026-01-01 00:00:00+00\n";

TEST(TimelineHistory, TellsWhereEachTimelineWasLeft) {
  const auto third = TimelineHistory::parse(3, kThird);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->timeline(), 3);
  EXPECT_EQ(third->end_of(1), Lsn{0x3000148});
  EXPECT_EQ(third->end_of(2), Lsn{0x16B374D848});
  EXPECT_EQ(third->end_of(4), std::nullopt);
  EXPECT_EQ(third->end_of(0), std::nullopt);
  EXPECT_TRUE(third->holds(1, Lsn{0x3000148}));
  EXPECT_FALSE(third->holds(1, Lsn{0x3000149}));
  EXPECT_TRUE(third->holds(3, Lsn{0xFFFF'FFFF'FFFF'0000}));
  EXPECT_FALSE(third->holds(9, Lsn{1}));
  EXPECT_EQ(third->up_to(2), TimelineHistory(2, {{.timeline = 1, .end = Lsn{0x3000148}}}));
  EXPECT_EQ(third->at(Lsn{0}), 1);
  EXPECT_EQ(third->at(Lsn{0x3000147}), 1);
  EXPECT_EQ(third->at(Lsn{0x3000148}), 2);
  EXPECT_EQ(third->at(Lsn{0x16B374D848}), 3);
}

TEST(TimelineHistory, TheFirstHasNone) {
  const TimelineHistory first(1);
  EXPECT_TRUE(first.holds(1, Lsn{0x5000000}));
  EXPECT_FALSE(first.end_of(2));
}

// Restored along timeline 2 to a point before that began.
TEST(TimelineHistory, ATimelineEndsWhereALaterOneLeftWhatItComesFrom) {
  const auto third = TimelineHistory::parse(3, "1\t0/3000\tx\n2\t0/2000\tx");
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->end_of(1), Lsn{0x2000});
  EXPECT_EQ(third->end_of(2), Lsn{0x2000});
  EXPECT_EQ(third->at(Lsn{0x1FFF}), 1);
  EXPECT_EQ(third->at(Lsn{0x2000}), 3);
}

TEST(TimelineHistory, OtherBytesAreRefused) {
  for (const std::string content :
       {"x", "1", "1\t", "1\t0", "1\t0/", "1\t0/G", "-1\t0/1", "1x\t0/1", "0\t0/1", "3\t0/1", "7\t0/1",
        "99999999999\t0/1", "2\t0/1\n1\t0/2", "1\t0/1\n1\t0/2", "\x01\x02", "1 2 3"}) {
    const auto parsed = TimelineHistory::parse(3, content);
    ASSERT_FALSE(parsed) << content;
    EXPECT_EQ(parsed.error().code, base::ErrorCode::protocol_violation);
  }
  EXPECT_TRUE(TimelineHistory::parse(3, ""));
  EXPECT_TRUE(TimelineHistory::parse(3, std::string_view("#\0\n", 3)));
}

}  // namespace
}  // namespace thalweg::pg
