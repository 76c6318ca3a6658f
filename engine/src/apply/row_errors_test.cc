#include "apply/row_errors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/engine_directory.h"

namespace thalweg::apply {
namespace {

TEST(RowErrorsTest, AreWordedAsTheContractSays) {
  const auto text = base::read_file(test::engine_directory() + "/contract/row-errors.json");
  ASSERT_TRUE(text);
  const auto contract = nlohmann::json::parse(*text);
  EXPECT_EQ(contract["changes"]["INSERT"], kInsertInto);
  EXPECT_EQ(contract["changes"]["UPDATE"], kUpdateOf);
  EXPECT_EQ(contract["changes"]["DELETE"], kDeleteFrom);
  EXPECT_EQ(contract["missing_row"], kMissingRow);
  for (const auto& [times, words] : contract["retried"].items()) EXPECT_EQ(words, retried_before(std::stoi(times)));
}

}  // namespace
}  // namespace thalweg::apply
