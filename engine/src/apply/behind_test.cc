#include <gtest/gtest.h>

#include <string>

#include "apply/apply.h"
#include "apply/apply_harness.h"

// Small groups that are on their way to the server at the same time, one behind the other.

namespace thalweg::apply {
namespace {

constexpr int kPairs = 40;

class Behind : public testing::TestWithParam<bool> {};  // below SQL, or in SQL

TEST_P(Behind, EachFailsOrCommitsByItself) {
  ApplyHarness h;
  if (GetParam()) h.run("CREATE EXTENSION thalweg_datalayer");
  h.run("CREATE TABLE item (id int PRIMARY KEY, note text)");
  h.run("INSERT INTO item SELECT id, 'there' FROM generate_series(1, 1000) id");
  h.describe("item");
  h.parameters.parallelism = 1;
  h.parameters.disable_on_error = false;
  ASSERT_TRUE(h.start());
  h.insert_one("item", {5000, "first"});  // makes the statements
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  int failing = 0;
  const auto add = [&](int id, bool fails) {
    h.insert_one("item", {fails ? id : 2000 + id, "new"});
    failing += fails ? 1 : 0;
    h.feed();  // what comes together would be one group
  };
  for (int pair = 0; pair < kPairs; ++pair) {
    add(2 * pair + 1, pair % 4 == 1 || pair % 4 == 3);
    add(2 * pair + 2, pair % 4 >= 2);
    ASSERT_TRUE(h.wait_until_applied(h.end()));
  }
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "errors"), static_cast<uint64_t>(failing));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM item WHERE note = 'there'"), "1000");
  EXPECT_EQ(h.select("SELECT count(*) FROM item WHERE note = 'new'"), std::to_string(2 * kPairs - failing));
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue"), std::to_string(failing));
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.apply_progress WHERE (applier - 1) % 128 = 64 AND ranges <> ''"),
            "1")
      << "nothing went behind another";
}

INSTANTIATE_TEST_SUITE_P(All, Behind, testing::Bool(),
                         [](const auto& below_sql) { return below_sql.param ? "BelowSql" : "InSql"; });

}  // namespace
}  // namespace thalweg::apply
