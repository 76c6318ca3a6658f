#include "metadata/key_hash.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace thalweg::metadata {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

std::vector<std::byte> text(std::string_view value) {
  std::vector<std::byte> out;
  for (const char c : value) out.push_back(static_cast<std::byte>(c));
  return out;
}

bool are_equal(KeyForm form, const std::vector<std::byte>& left, const std::vector<std::byte>& right) {
  return hash_key_value(left, form) == hash_key_value(right, form);
}

TEST(KeyHash, EqualValuesHaveEqualHashesWhateverTheirBytes) {
  EXPECT_EQ(key_form(23), KeyForm::integer);
  EXPECT_TRUE(are_equal(KeyForm::integer, bytes({0xFF, 0xFE}), bytes({0xFF, 0xFF, 0xFF, 0xFE})));
  EXPECT_TRUE(are_equal(KeyForm::integer, bytes({0, 0, 0, 7}), bytes({0, 0, 0, 0, 0, 0, 0, 7})));
  EXPECT_FALSE(are_equal(KeyForm::integer, bytes({0, 0, 0, 7}), bytes({0, 0, 0, 8})));

  EXPECT_EQ(key_form(1700), KeyForm::numeric);
  const auto one = bytes({0, 1, 0, 0, 0, 0, 0, 1, 0, 1});         // 1.0
  const auto one_more = bytes({0, 1, 0, 0, 0, 0, 0, 2, 0, 1});    // 1.00
  const auto two = bytes({0, 1, 0, 0, 0, 0, 0, 1, 0, 2});         // 2.0
  const auto minus_one = bytes({0, 1, 0, 0, 64, 0, 0, 1, 0, 1});  // -1.0
  EXPECT_TRUE(are_equal(KeyForm::numeric, one, one_more));
  EXPECT_FALSE(are_equal(KeyForm::numeric, one, two));
  EXPECT_FALSE(are_equal(KeyForm::numeric, one, minus_one));

  EXPECT_EQ(key_form(701), KeyForm::floating);
  EXPECT_TRUE(are_equal(KeyForm::floating, bytes({0, 0, 0, 0, 0, 0, 0, 0}), bytes({0x80, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_TRUE(are_equal(KeyForm::floating, bytes({0x3F, 0x80, 0, 0}), bytes({0x3F, 0xF0, 0, 0, 0, 0, 0, 0})));  // 1
  EXPECT_TRUE(
      are_equal(KeyForm::floating, bytes({0x7F, 0xF8, 0, 0, 0, 0, 0, 0}), bytes({0x7F, 0xF8, 0, 0, 0, 0, 0, 1})));
  EXPECT_FALSE(are_equal(KeyForm::floating, bytes({0x3F, 0x80, 0, 0}), bytes({0x40, 0, 0, 0})));

  EXPECT_EQ(key_form(1042), KeyForm::padded);
  EXPECT_TRUE(are_equal(KeyForm::padded, text("a"), text("a  ")));
  EXPECT_FALSE(are_equal(KeyForm::padded, text(" a"), text("a")));

  EXPECT_EQ(key_form(25), KeyForm::bytes);
  EXPECT_FALSE(are_equal(KeyForm::bytes, text("a"), text("A")));

  EXPECT_EQ(key_form(3802), KeyForm::unknown);  // jsonb
  EXPECT_TRUE(are_equal(KeyForm::unknown, text("a"), text("b")));
}

TEST(KeyHash, AnIntervalsMonthIsThirtyDays) {
  EXPECT_EQ(key_form(1186), KeyForm::interval);
  const auto interval = [](int64_t micros, int32_t days, int32_t months) {
    std::vector<std::byte> out;
    for (int i = 7; i >= 0; --i) out.push_back(static_cast<std::byte>(micros >> (8 * i)));
    for (const int32_t value : {days, months}) {
      for (int i = 3; i >= 0; --i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
    return out;
  };
  constexpr int64_t kDay = 86'400'000'000;
  EXPECT_TRUE(are_equal(KeyForm::interval, interval(0, 30, 0), interval(0, 0, 1)));
  EXPECT_TRUE(are_equal(KeyForm::interval, interval(kDay, 0, 0), interval(0, 1, 0)));
  EXPECT_TRUE(are_equal(KeyForm::interval, interval(-1, 1, 0), interval(kDay - 1, 0, 0)));
  EXPECT_FALSE(are_equal(KeyForm::interval, interval(1, 30, 0), interval(0, 0, 1)));
  EXPECT_FALSE(tells_apart(KeyForm::interval));  // its text has no form
  EXPECT_EQ(hash_key_text(text("30 days"), KeyForm::interval), hash_key_text(text("1 mon"), KeyForm::interval));
}

TEST(KeyHash, EqualValuesThatCameAsTextHaveEqualHashes) {
  const auto are_same = [](KeyForm form, std::string_view left, std::string_view right) {
    return hash_key_text(text(left), form) == hash_key_text(text(right), form);
  };
  EXPECT_TRUE(are_same(KeyForm::numeric, "1.0", "1.00"));
  EXPECT_TRUE(are_same(KeyForm::numeric, "100", "100.0"));
  EXPECT_FALSE(are_same(KeyForm::numeric, "100", "1"));
  EXPECT_FALSE(are_same(KeyForm::numeric, "1.1", "1.01"));
  EXPECT_TRUE(are_same(KeyForm::numeric, "NaN", "NaN"));
  EXPECT_TRUE(are_same(KeyForm::floating, "-0", "0"));
  EXPECT_TRUE(are_same(KeyForm::floating, "1e+06", "1000000"));
  EXPECT_FALSE(are_same(KeyForm::floating, "Infinity", "-Infinity"));
  EXPECT_TRUE(are_same(KeyForm::padded, "a ", "a"));
  EXPECT_FALSE(are_same(KeyForm::integer, "12", "21"));
  EXPECT_TRUE(are_same(KeyForm::unknown, "a", "A"));
}

// Bytes of a database are never trusted: another length than the type's has a hash, too.
TEST(KeyHash, AnyBytesHaveAHash) {
  for (const auto form :
       {KeyForm::bytes, KeyForm::integer, KeyForm::numeric, KeyForm::floating, KeyForm::padded, KeyForm::interval}) {
    EXPECT_TRUE(are_equal(form, {}, {}));
    EXPECT_FALSE(are_equal(form, bytes({1, 2, 3}), bytes({1, 2, 4})));
  }
}

}  // namespace
}  // namespace thalweg::metadata
