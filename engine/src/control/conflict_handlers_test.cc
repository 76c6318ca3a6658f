#include "control/conflict_handlers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::control {
namespace {

using nlohmann::json;

TEST(ConflictHandlers, ComeBackAsTheyWere) {
  const json handlers = json::parse(R"([
    {"kind": "insert_exists", "schema": "public", "table": "orders", "action": "overwrite"},
    {"kind": "foreign_key_missing", "action": "discard"},
    {"kind": "update_missing", "action": "error"},
    {"kind": "update_origin_differs", "schema": "public", "table": "stock", "action": "delta", "columns": ["amount"]},
    {"kind": "update_origin_differs", "schema": "public", "table": "stock", "action": "maximum", "columns": ["note"],
     "by": "changed", "tie": "overwrite"},
    {"kind": "update_origin_differs", "schema": "public", "table": "stock", "action": "expression",
     "columns": ["price"], "expression": "new.price + t.price"},
    {"kind": "update_origin_differs", "schema": "public", "table": "stock", "action": "append", "columns": ["tags"]},
    {"kind": "insert_exists", "schema": "public", "table": "stock", "action": "priority", "by": "site",
     "order": ["head", "branch"]},
    {"kind": "insert_exists", "action": "latest"}])");
  const auto read = read_conflict_handlers(handlers, "/at");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at(0).table, "orders");
  EXPECT_EQ(read->at(1).kind, telemetry::ConflictKind::foreign_key_missing);
  EXPECT_EQ(read->at(1).action, ConflictAction::discard);
  EXPECT_EQ(json(*read), handlers);
}

// Apply switches on these values: a name in the wrong place would settle conflicts in another way.
TEST(ConflictHandlers, ReadsEachActionByItsName) {
  using enum ConflictAction;
  const std::vector<std::pair<std::string_view, ConflictAction>> actions = {
      {"error", error},     {"discard", discard}, {"overwrite", overwrite},  {"maximum", maximum},
      {"minimum", minimum}, {"latest", latest},   {"priority", priority},    {"delta", delta},
      {"append", append},   {"merge", merge},     {"expression", expression}};
  EXPECT_EQ(actions.size(), telemetry::kConflictActionNames.size());
  for (const auto& [name, action] : actions) EXPECT_EQ(name_of(action), name);
}

TEST(ConflictHandlers, AreRefusedWithTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({})", ""},
      {R"([{"action": "discard"}])", "/0/kind"},
      {R"([{"kind": "insert_differs", "action": "discard"}])", "/0/kind"},
      {R"([{"kind": "insert_exists"}])", "/0/action"},
      {R"([{"kind": "insert_exists", "action": "park"}])", "/0/action"},
      {R"([{"kind": "update_exists", "action": "overwrite"}])", "/0/action"},
      {R"([{"kind": "delete_missing", "action": "overwrite"}])", "/0/action"},
      {R"([{"kind": "insert_exists", "action": "discard", "table": "orders"}])", "/0/schema"},
      {R"([{"kind": "insert_exists", "action": "maximum", "schema": "a", "table": "b"}])", "/0/by"},
      {R"([{"kind": "insert_exists", "action": "maximum", "by": "c"}])", "/0/by"},
      {R"([{"kind": "insert_exists", "action": "discard", "schema": "a", "table": "b", "by": "c"}])", "/0/by"},
      {R"([{"kind": "insert_exists", "action": "discard", "tie": "discard"}])", "/0/tie"},
      {R"([{"kind": "update_missing", "action": "latest"}])", "/0/action"},
      {R"([{"kind": "insert_exists", "action": "discard", "columns": ["c"]}])", "/0/columns"},
      {R"([{"kind": "update_origin_differs", "schema": "a", "table": "b", "action": "delta"}])", "/0/columns"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "delta", "columns": ["c"]}])", "/0/action"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "discard", "columns": ["c", "d"]},
           {"kind": "insert_exists", "schema": "a", "table": "b", "action": "overwrite", "columns": ["d"]}])",
       "/1/columns"},
      {R"([{"kind": "insert_exists", "action": "discard"},
           {"kind": "insert_exists", "schema": "a", "table": "b", "action": "overwrite", "columns": ["d"]}])",
       "/1/columns"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "discard"},
           {"kind": "insert_exists", "schema": "a", "table": "b", "action": "overwrite", "columns": ["d"]}])",
       "/1/columns"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "latest", "columns": ["d"]}])", "/0/by"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "discard", "columns": ["d"]},
           {"kind": "insert_exists", "schema": "a", "table": "b", "action": "latest"}])",
       "/1/by"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "discard", "columns": ["d"]},
           {"kind": "insert_exists", "action": "latest"}])",
       "/1/by"},
      {R"([{"kind": "insert_exists", "action": "discard", "error": "23505"}])", "/0/error"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "priority", "by": "c"}])", "/0/order"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "priority", "order": ["x"]}])", "/0/by"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "priority", "by": "c", "order": []}])",
       "/0/order"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "priority", "by": "c",
            "order": ["x", "x"]}])",
       "/0/order"},
      {R"([{"kind": "insert_exists", "action": "discard", "order": ["x"]}])", "/0/order"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "append"}])", "/0/columns"},
      {R"([{"kind": "update_missing", "schema": "a", "table": "b", "action": "merge"}])", "/0/action"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "expression", "columns": ["c"]}])",
       "/0/expression"},
      {R"([{"kind": "insert_exists", "schema": "a", "table": "b", "action": "expression", "columns": ["c", "d"],
            "expression": "1"}])",
       "/0/columns"},
      {R"([{"kind": "insert_exists", "action": "discard", "expression": "1"}])", "/0/expression"},
  };
  for (const auto& [handlers, place] : wrong) {
    const auto read = read_conflict_handlers(json::parse(handlers), "/at");
    ASSERT_FALSE(read) << handlers;
    EXPECT_NE(read.error().message.find("/at" + place), std::string::npos) << read.error().message;
  }
  EXPECT_TRUE(read_conflict_handlers(json::parse(R"([
    {"kind": "insert_exists", "schema": "a", "table": "b", "action": "discard"},
    {"kind": "update_origin_differs", "action": "discard"},
    {"kind": "insert_exists", "schema": "a", "table": "c", "action": "overwrite", "columns": ["d"]},
    {"kind": "insert_exists", "schema": "a", "table": "c", "action": "latest", "by": "e"},
    {"kind": "insert_exists", "schema": "a", "table": "d", "action": "latest"}])"),
                                     "/at"));
  EXPECT_FALSE(read_conflict_handlers(json(101, {{"kind", "insert_exists"}, {"action", "error"}}), "/at"));
}

}  // namespace
}  // namespace thalweg::control
