#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apply/apply_harness.h"

// Shared by the tests of statement handlers.

namespace thalweg::apply {

inline base::BoundStatement bound(const std::string& statement) {
  const auto found = base::bind_names(statement);
  EXPECT_TRUE(found) << found.error();
  return found.value_or(base::BoundStatement{});
}

// Tables `items`, whose changes come with whole old rows, and `others`; transactions that fail are parked.
class StatementHandlerFixture : public testing::Test {
 protected:
  void set_up(const std::string& items) {
    h.run(items);
    h.run("CREATE TABLE others (id int PRIMARY KEY, name text)");
    h.describe("items", 'f');
    h.describe("others");
    h.parameters.disable_on_error = false;
  }
  void handle_by(std::vector<metadata::StatementHandler> handlers) {
    for (size_t i = 0; i < handlers.size(); ++i) handlers[i].number = static_cast<int>(i) + 1;
    h.parameters.statement_handlers = std::move(handlers);
  }
  void finish() {
    const auto error = h.start_and_finish();
    ASSERT_FALSE(error) << error->message;
  }
  ApplyHarness h;
};

}  // namespace thalweg::apply
