#include "base/plain_text.h"

#include <gtest/gtest.h>

#include <string_view>

namespace thalweg::base {
namespace {

using namespace std::string_view_literals;

TEST(PlainText, IsWhatCanBeReadAsItIs) {
  for (const std::string_view text : {""sv, "calm"sv, "two\nlines\twith\r\ntabs"sv, "\u00E9\u20AC"sv, "\U0001F30A"sv,
                                      "\u00A0"sv, "\uD7FF\uE000\uFFFF"sv, "\U0010FFFF"sv}) {
    EXPECT_TRUE(is_plain_text(text)) << text;
  }
}

TEST(PlainText, IsNeitherBytesNorControlCharacters) {
  for (const std::string_view bytes :
       {"\xFF\xFF\xFF\xFF"sv, "\x80"sv, "a\xBF"sv, "\0"sv, "\x01"sv, "\x1B[31m"sv, "\x7F"sv, "\xC2\x85"sv,
        "cut \xE2\x82"sv, "\xE2\x28\xA1"sv, "\xF8\x88\x80\x80\x80"sv}) {
    EXPECT_FALSE(is_plain_text(bytes)) << bytes.size() << " bytes";
  }
  // Longer than need be, half of a pair, and beyond the last character.
  for (const std::string_view bytes : {"\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x9F\xBF"sv, "\xF0\x8F\xBF\xBF"sv,
                                       "\xED\xA0\x80"sv, "\xF4\x90\x80\x80"sv, "\xF7\xBF\xBF\xBF"sv}) {
    EXPECT_FALSE(is_plain_text(bytes)) << bytes.size() << " bytes";
  }
}

TEST(PlainText, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_at_character("calm", 4), "calm");
  EXPECT_EQ(cut_at_character("calm", 2), "ca");
  EXPECT_EQ(cut_at_character("a\u20AC", 3), "a");
  EXPECT_EQ(cut_at_character("a\u20AC", 4), "a\u20AC");
  EXPECT_EQ(cut_at_character("\U0001F30A", 3), "");
  EXPECT_EQ(cut_at_character("\x80\x80\x80\x80\x80\x80"sv, 5).size(), 2U) << "no text, which loses three bytes";
}

}  // namespace
}  // namespace thalweg::base
