#include "control/statement_handlers.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "support/engine_directory.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

json cases() {
  const auto text = base::read_file(test::engine_directory() + "/contract/bind-names.cases.json");
  EXPECT_TRUE(text);
  return text ? json::parse(*text)["cases"] : json::array();
}

// The control plane, which prepares the statements first, is tested with the same.
TEST(BindNames, AreThoseOfTheContractsCases) {
  const json all = cases();
  ASSERT_GT(all.size(), 40U);
  for (const json& test_case : all) {
    const auto text = test_case["statement"].get<std::string>();
    const auto bound = base::bind_names(text);
    if (test_case.contains("fault")) {
      ASSERT_FALSE(bound) << text;
      EXPECT_EQ(bound.error(), test_case["fault"].get<std::string>()) << text;
      continue;
    }
    ASSERT_TRUE(bound) << text << ": " << bound.error();
    EXPECT_EQ(bound->sql, test_case["sql"].get<std::string>());
    std::vector<std::string> names;
    for (const base::BindName& name : bound->names) names.push_back(written(name));
    EXPECT_EQ(json(names), test_case["names"]) << text;
  }
}

TEST(StatementHandlers, ComeBackAsTheyWere) {
  const json handlers = json::parse(R"json([
    {"schema": "public", "table": "orders", "operations": ["INSERT", "DELETE"], "when": "instead",
     "statement": "SELECT a.f(:new.id, :old.id)"},
    {"when": "after", "statement": "INSERT INTO a.t VALUES (:schema, :table, :operation)"},
    {"when": "precommit", "statement": "INSERT INTO a.t VALUES (:xid, :commit_lsn, :commit_time)"},
    {"when": "error", "schema": "public", "table": "orders", "operations": ["INSERT"],
     "errors": ["23505", "22", "apply_conflict"],
     "statement": "INSERT INTO a.t VALUES (:new.id, :sqlstate, :error, :constraint, :kind)"},
    {"when": "error", "statement": "INSERT INTO a.t VALUES (:table, :error)"}])json");
  const auto read = read_statement_handlers(handlers, "/at");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at(0).bound.sql, "SELECT a.f($1, $2)");
  EXPECT_TRUE(read->at(0).is_of("INSERT"));
  EXPECT_FALSE(read->at(0).is_of("UPDATE"));
  EXPECT_TRUE(read->at(1).is_of("UPDATE"));
  EXPECT_FALSE(read->at(2).is_of("UPDATE"));
  EXPECT_FALSE(read->at(3).is_of("UPDATE"));
  EXPECT_EQ(read->at(3).errors, (std::vector<std::string>{"23505", "22", "apply_conflict"}));
  EXPECT_TRUE(read->at(4).is_of("DELETE"));
  EXPECT_EQ(json(*read), handlers);
}

TEST(StatementHandlers, AreRefusedWithTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({})", ""},
      {R"([{"statement": "SELECT 1"}])", "/0/when"},
      {R"([{"when": "before", "statement": "SELECT 1"}])", "/0/when"},
      {R"([{"when": "after"}])", "/0/statement"},
      {R"([{"when": "after", "statement": "COMMIT"}])", "/0/statement"},
      {R"([{"when": "after", "statement": "SELECT :new.id"}])", "/0/statement"},
      {R"([{"when": "after", "statement": "SELECT 1\u0000"}])", "/0/statement"},
      {R"([{"when": "after", "table": "t", "statement": "SELECT 1"}])", "/0/schema"},
      {R"([{"when": "after", "schema": "s", "statement": "SELECT 1"}])", "/0/table"},
      {R"([{"when": "instead", "statement": "SELECT 1"}])", "/0/table"},
      {R"([{"when": "precommit", "schema": "s", "table": "t", "statement": "SELECT 1"}])", "/0/table"},
      {R"([{"when": "precommit", "operations": ["INSERT"], "statement": "SELECT 1"}])", "/0/operations"},
      {R"([{"when": "precommit", "statement": "SELECT :table"}])", "/0/statement"},
      {R"([{"when": "after", "operations": [], "statement": "SELECT 1"}])", "/0/operations"},
      {R"([{"when": "after", "operations": ["TRUNCATE"], "statement": "SELECT 1"}])", "/0/operations"},
      {R"([{"when": "after", "operations": ["INSERT", "INSERT"], "statement": "SELECT 1"}])", "/0/operations"},
      {R"([{"when": "after", "statement": "SELECT 1", "action": "discard"}])", "/0/action"},
      {R"([{"when": "error", "table": "t", "statement": "SELECT 1"}])", "/0/schema"},
      {R"([{"when": "error", "statement": "SELECT :old.id"}])", "/0/statement"},
      {R"([{"when": "error", "errors": [], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "error", "errors": "23505", "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "error", "errors": ["235"], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "error", "errors": ["insert_exists"], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "error", "errors": ["22", "22"], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "error", "errors": [22], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "after", "errors": ["22"], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "precommit", "errors": ["22"], "statement": "SELECT 1"}])", "/0/errors"},
      {R"([{"when": "instead", "schema": "s", "table": "t", "statement": "SELECT :error"}])", "/0/statement"},
      {R"([{"when": "after", "statement": "SELECT :sqlstate"}])", "/0/statement"},
      {R"([{"when": "after", "statement": "SELECT :constraint"}])", "/0/statement"},
      {R"([{"when": "precommit", "statement": "SELECT :kind"}])", "/0/statement"},
  };
  for (const auto& [handlers, place] : wrong) {
    const auto read = read_statement_handlers(json::parse(handlers), "/at");
    ASSERT_FALSE(read) << handlers;
    EXPECT_NE(read.error().message.find("/at" + place), std::string::npos) << handlers << read.error().message;
  }
}

}  // namespace
}  // namespace thalweg::control
