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
  EXPECT_EQ(contract["row_differs"], kRowDiffers);
  EXPECT_EQ(contract["unwritten"], kUnwritten);
  EXPECT_EQ(contract["several_rows"], kSeveralRows);
}

}  // namespace
}  // namespace thalweg::apply
