#include "control/conflict_detection.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace thalweg::control {
namespace {

using nlohmann::json;

TEST(ConflictDetection, ComesBackAsItWas) {
  const json tables = json::parse(R"([
    {"schema": "public", "table": "orders", "columns": ["amount", "note"]},
    {"schema": "public", "table": "customers"},
    {}])");
  const auto read = read_conflict_detection(tables, "/at");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at(0).columns, (std::vector<std::string>{"amount", "note"}));
  EXPECT_EQ(read->at(1).table, "customers");
  EXPECT_TRUE(read->at(2).table.empty());
  EXPECT_EQ(json(*read), tables);
}

TEST(ConflictDetection, IsRefusedWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({})", ""},
      {R"([{"table": "orders"}])", "/0/schema"},
      {R"([{"schema": "public"}])", "/0/table"},
      {R"([{"columns": ["amount"]}])", "/0/columns"},
      {R"([{"schema": "public", "table": "orders", "columns": []}])", "/0/columns"},
      {R"([{"schema": "public", "table": "orders", "columns": [1]}])", "/0/columns"},
      {R"([{"schema": "public", "table": "orders", "columns": ["a", "a"]}])", "/0/columns"},
      {R"([{"schema": "public", "table": "orders", "kind": "insert_exists"}])", "/0/kind"},
      {R"([{"schema": "a", "table": "b"}, {"schema": "a", "table": "b"}])", "/1"},
      {R"([{}, {"schema": "a", "table": "b"}])", "/1"},
  };
  for (const auto& [tables, place] : wrong) {
    const auto read = read_conflict_detection(json::parse(tables), "/at");
    ASSERT_FALSE(read) << tables;
    EXPECT_NE(read.error().message.find("/at" + place), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace thalweg::control
