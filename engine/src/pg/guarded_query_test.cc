#include "pg/guarded_query.h"

#include <gtest/gtest.h>

#include <array>

#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

class GuardedQueryTest : public testing::Test {
 protected:
  GuardedQueryTest() : connection_(*Connection::open(test::shared_cluster().conninfo(), {})) {
    EXPECT_TRUE(connection_.script("CREATE TEMP TABLE g (id int PRIMARY KEY); BEGIN; INSERT INTO g VALUES (1)"));
  }
  Connection connection_;
};

TEST_F(GuardedQueryTest, GivesTheRowsOfItsStatement) {
  const std::array parameters{text_parameter("1")};
  const auto rows = query_guarded(connection_, "SELECT id + 1 FROM g WHERE id = $1", parameters);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->integer(0, 0), 2);
  const auto none = query_guarded(connection_, "INSERT INTO g VALUES (2)", {});
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->size(), 0U);
}

TEST_F(GuardedQueryTest, ATransactionGoesOnWhereItsStatementFails) {
  const auto refused = query_guarded(connection_, "INSERT INTO g VALUES (3), (1)", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "23505");
  ASSERT_FALSE(connection_.broken());
  ASSERT_TRUE(connection_.script("INSERT INTO g VALUES (4); COMMIT"));
  EXPECT_EQ(connection_.query("SELECT string_agg(id::text, ' ' ORDER BY id) FROM g")->text(0, 0), "1 4");
}

TEST_F(GuardedQueryTest, ATransactionThatHasFailedAlreadyTellsItself) {
  ASSERT_FALSE(connection_.query("SELECT 1 / 0"));
  const auto refused = query_guarded(connection_, "SELECT 1", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "25P02");
}

}  // namespace
}  // namespace thalweg::pg
