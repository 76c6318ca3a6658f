#include "apply/ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace thalweg::apply {
namespace {

std::string hex(const std::vector<std::byte>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "\\x";
  for (const auto byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

TEST(LsnRanges, IsASetOfPositions) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    LsnRanges ranges;
    std::set<uint64_t> model;
    for (int i = 0; i < 30; ++i) {
      const uint64_t first = random() % 300;
      const uint64_t end = first + 1 + random() % 12;
      ranges.add({.first = {first}, .end = {end}});
      for (uint64_t at = first; at < end; ++at) model.insert(at);
    }
    const auto decoded = LsnRanges::decode_hex(hex(ranges.encode()));
    ASSERT_TRUE(decoded);
    for (uint64_t at = 0; at < 320; ++at) {
      ASSERT_EQ(ranges.contains({at}), model.contains(at)) << at;
      ASSERT_EQ(decoded->contains({at}), model.contains(at)) << at;
    }
    for (size_t i = 1; i < ranges.list().size(); ++i) ASSERT_LT(ranges.list()[i - 1].end, ranges.list()[i].first);
    ranges.prune({150});
    for (uint64_t at = 150; at < 320; ++at) ASSERT_EQ(ranges.contains({at}), model.contains(at)) << at;
  }
}

TEST(LsnRanges, RefusesForeignBytes) {
  EXPECT_TRUE(LsnRanges::decode_hex("\\x"));
  EXPECT_FALSE(LsnRanges::decode_hex("\\x00"));
  EXPECT_FALSE(LsnRanges::decode_hex("nonsense"));
  EXPECT_FALSE(LsnRanges::decode_hex("\\x" + std::string(32, '0')));  // an empty range
  EXPECT_FALSE(LsnRanges::decode_hex("\\x" + std::string(31, '0') + "g"));
}

}  // namespace
}  // namespace thalweg::apply
