#include "capture/source_form.h"

#include <gtest/gtest.h>

namespace thalweg::capture {
namespace {

using Numbers = std::vector<std::vector<int32_t>>;

// "abx": two columns, and a third one that is dropped; "g" is generated.
Catalogue catalogue(const std::string& letters) {
  Catalogue attributes;
  for (const char letter : letters) {
    attributes.push_back({.number = static_cast<int32_t>(attributes.size()) + 1,
                          .name = std::string(1, letter),
                          .is_dropped = letter == 'x',
                          .is_generated = letter == 'g'});
  }
  return attributes;
}

Form form(const std::vector<int32_t>& numbers) {
  Form columns;
  for (const int32_t number : numbers) columns.push_back({.number = number, .name = std::to_string(number)});
  return columns;
}

TEST(SourceForm, NumbersAreThoseOfTheColumnsThatLive) {
  EXPECT_EQ(form_in(catalogue("axgb")), (Form{{.number = 1, .name = "a"}, {.number = 4, .name = "b"}}));
  EXPECT_EQ(possible_numbers(2, catalogue("axgb"), form({1, 4}), 4), (Numbers{{1}, {4}}));
  EXPECT_EQ(possible_numbers(3, catalogue("abcde"), {}, 0), (Numbers{{1}, {2}, {3}})) << "others came later";
  EXPECT_EQ(possible_numbers(4, catalogue("abcde"), form({1, 2, 3}), 3), (Numbers{{1}, {2}, {3}, {4}}));
}

TEST(SourceForm, ADroppedColumnMayHaveBeenThere) {
  EXPECT_EQ(possible_numbers(3, catalogue("axb"), {}, 0), (Numbers{{1}, {2}, {3}}));
  EXPECT_EQ(possible_numbers(2, catalogue("axb"), {}, 0), (Numbers{{1}, {2, 3}}));
  EXPECT_EQ(possible_numbers(2, catalogue("axb"), form({1, 2}), 2), (Numbers{{1}, {2, 3}}));
  EXPECT_EQ(possible_numbers(2, catalogue("axb"), form({1, 2, 3}), 3), (Numbers{{1}, {3}})) << "3 was there already";
  EXPECT_EQ(possible_numbers(3, catalogue("axxb"), form({1, 2, 3, 4}), 4), (Numbers{{1}, {2, 3}, {4}}));
}

TEST(SourceForm, ADroppedColumnDoesNotComeBack) {
  EXPECT_EQ(possible_numbers(2, catalogue("axbc"), form({1, 3}), 3), (Numbers{{1}, {3}}));
  EXPECT_EQ(possible_numbers(3, catalogue("axbxc"), form({1, 3}), 3), (Numbers{{1}, {3}, {4, 5}}));
  EXPECT_EQ(possible_numbers(2, catalogue("abx"), form({1, 2}), 3), (Numbers{{1}, {2}}));
  EXPECT_EQ(possible_numbers(3, catalogue("abx"), form({1, 2}), 3), (Numbers{{}, {}, {}}));
}

// It has lost its expression since then.
TEST(SourceForm, AColumnThatWasGeneratedMayComeLater) {
  EXPECT_EQ(possible_numbers(2, catalogue("abc"), form({1, 3}), 3), (Numbers{{1}, {3}}));
  EXPECT_EQ(possible_numbers(3, catalogue("abc"), form({1, 3}), 3), (Numbers{{1}, {2}, {3}}));
}

TEST(SourceForm, WhatCannotHaveBeenHasNoNumbers) {
  EXPECT_EQ(possible_numbers(3, catalogue("ab"), {}, 0), (Numbers{{}, {}, {}}));
  EXPECT_EQ(possible_numbers(1, {}, {}, 0), (Numbers{{}}));
  EXPECT_EQ(possible_numbers(1, catalogue("ab"), form({1, 2}), 2), (Numbers{{}})) << "nothing is dropped";
}

// Where a number of the form before is not known, any dropped one may be it.
TEST(SourceForm, UnknownNumbersExcludeNothing) {
  EXPECT_EQ(possible_numbers(2, catalogue("axb"), Form{{.number = 1, .name = "a"}, {.number = 0, .name = "b"}}, 3),
            (Numbers{{1}, {2, 3}}));
}

}  // namespace
}  // namespace thalweg::capture
