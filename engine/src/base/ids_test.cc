#include "base/ids.h"

#include <gtest/gtest.h>

namespace thalweg::base {
namespace {

TEST(Lsn, ReadsWhatItPrints) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{0x16B374D848}, ~uint64_t{0}}) {
    EXPECT_EQ(parse_lsn(to_string(Lsn{value})), Lsn{value});
  }
  EXPECT_EQ(to_string(Lsn{0x16B374D848}), "16/B374D848");
  EXPECT_EQ(parse_lsn("16/b374d848"), Lsn{0x16B374D848});
}

TEST(Lsn, RefusesOtherText) {
  for (const char* text : {"", "/", "1/", "/1", "1", "1/2/3", "0x1/2", "-1/2", "1/G", " 1/2", "1/2 ", "123456789/0"}) {
    EXPECT_EQ(parse_lsn(text), std::nullopt) << text;
  }
}

TEST(Position, OrdersByCommitThenSequence) {
  EXPECT_LT((Position{Lsn{1}, 9}), (Position{Lsn{2}, 0}));
  EXPECT_LT((Position{Lsn{2}, 0}), (Position{Lsn{2}, 1}));
}

}  // namespace
}  // namespace thalweg::base
