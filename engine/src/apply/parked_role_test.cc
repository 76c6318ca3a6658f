#include <gtest/gtest.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "apply/apply_harness.h"
#include "apply/error_queue.h"

// Parked transactions that are executed as another role: its row security policies, and triggers that reset it.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

// Parks an UPDATE of each of these rows, which are missing; then puts the rows there, and makes the role.
std::string park_updates(ApplyHarness& h, std::initializer_list<int> rows) {
  h.parameters.disable_on_error = false;
  h.parameters.parallelism = 1;  // they are parked one after the other
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  h.describe("items");
  for (const int row : rows) {
    h.begin();
    h.update("items", {row, "changed"});
    h.commit();
  }
  const auto error = h.start_and_finish();
  EXPECT_FALSE(error) << error->message;
  for (const int row : rows) h.run(fmt::format("INSERT INTO items VALUES ({}, 'here now')", row));
  const std::string clerk = "clerk " + h.select("SELECT current_database()");
  h.run(fmt::format("CREATE ROLE \"{0}\"; GRANT SELECT, INSERT, UPDATE ON items TO \"{0}\"", clerk));
  return clerk;
}

base::Result<void> execute(ApplyHarness& h, int64_t id, const std::string& role) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  if (!opened) return std::unexpected(opened.error());
  return execute_parked(std::move(*opened), "teststream", {.id = id, .role = role});
}

DryRun dry_run(ApplyHarness& h, int64_t id, const std::string& role) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  EXPECT_TRUE(opened);
  auto tried = dry_run_parked(std::move(*opened), "teststream", id, role);
  EXPECT_TRUE(tried) << tried.error().message;
  return tried ? *tried : DryRun{};
}

TEST(ParkedRole, ItsPoliciesDecideWhatIsWritten) {
  ApplyHarness h;
  const std::string clerk = park_updates(h, {7, 3, 8});
  h.run(
      "ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY looks ON items FOR SELECT USING (true); "
      "CREATE POLICY writes ON items FOR UPDATE USING (true) WITH CHECK (id > 5)");
  EXPECT_FALSE(dry_run(h, 1, clerk).error);
  const auto executed = execute(h, 1, clerk);
  ASSERT_TRUE(executed) << executed.error().message;

  const DryRun tried = dry_run(h, 2, clerk);
  ASSERT_TRUE(tried.error);
  EXPECT_EQ(tried.failed_change, 1U);
  const auto refused = execute(h, 2, clerk);
  ASSERT_FALSE(refused);
  for (const base::Error& error : {*tried.error, refused.error()}) {
    EXPECT_EQ(error.code, ErrorCode::apply_failed);
    EXPECT_EQ(error.sqlstate, "42501");
    EXPECT_TRUE(error.message.starts_with("UPDATE of \"public\".\"items\" (\"id\" = 3), commit LSN")) << error.message;
    EXPECT_NE(error.message.find("row-level security policy"), std::string::npos) << error.message;
  }
  EXPECT_EQ(h.select("SELECT id, name FROM items ORDER BY id"), "3|here now,7|changed,8|here now");
  EXPECT_EQ(h.select("SELECT id, code, sqlstate, failure ->> 'change' FROM thalweg.error_queue ORDER BY id"),
            "2|apply_failed|42501|1,3|apply_conflict||1");
}

TEST(ParkedRole, ARowThatItDoesNotSeeIsNone) {
  ApplyHarness h;
  const std::string clerk = park_updates(h, {3});
  h.run("ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY larger ON items USING (id > 5)");
  const auto refused = execute(h, 1, clerk);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::apply_conflict);
  EXPECT_TRUE(
      refused.error().message.ends_with(fmt::format("the destination has no such row that \"{}\" may see", clerk)))
      << refused.error().message;
  const auto executed = execute(h, 1, {});
  ASSERT_TRUE(executed) << "the engine's own user: " << executed.error().message;
  EXPECT_EQ(h.select("SELECT name FROM items"), "changed");
}

// The error queue and what else the session does are not the role's: a policy there, or on a later transaction's table,
// is none of its business.
TEST(ParkedRole, ItEndsWithTheRows) {
  ApplyHarness h;
  const std::string clerk = park_updates(h, {7, 3, 8});
  h.run(
      "ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY larger ON items USING (id > 5); "
      "ALTER TABLE thalweg.error_queue ENABLE ROW LEVEL SECURITY; "
      "ALTER TABLE thalweg.error_queue_chunk ENABLE ROW LEVEL SECURITY");
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(opened);
  ASSERT_FALSE(execute_parked(std::move(*opened), "teststream", {.role = clerk})) << "3 is not the role's";
  EXPECT_EQ(h.select("SELECT id, name FROM items ORDER BY id"), "3|here now,7|changed,8|changed");
  EXPECT_EQ(h.select("SELECT error_id FROM thalweg.error_queue_chunk"), "2");
}

// The rows that follow would be written as the engine's user, which the audit log says they were not.
TEST(ParkedRole, AFunctionThatResetsItFailsTheTransaction) {
  ApplyHarness h;
  const std::string clerk = park_updates(h, {7});
  h.run(
      "CREATE FUNCTION reset() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RESET ROLE; RETURN NEW; END'; "
      "CREATE TRIGGER reset BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION reset(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER reset");
  const auto is_refused = [&](const std::string& when) {
    const DryRun tried = dry_run(h, 1, clerk);
    ASSERT_TRUE(tried.error) << when;
    const auto refused = execute(h, 1, clerk);
    ASSERT_FALSE(refused) << when;
    for (const base::Error& error : {*tried.error, refused.error()}) {
      EXPECT_EQ(error.code, ErrorCode::apply_failed) << when;
      EXPECT_NE(error.message.find("has reset or changed the role"), std::string::npos) << error.message;
      EXPECT_NE(error.message.find(clerk), std::string::npos) << error.message;
    }
    EXPECT_EQ(h.select("SELECT name FROM items"), "here now") << when;
  };
  is_refused("at once");
  h.run(
      "DROP TRIGGER reset ON items; CREATE CONSTRAINT TRIGGER reset AFTER UPDATE ON items DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION reset(); ALTER TABLE items ENABLE ALWAYS TRIGGER reset");
  is_refused("at the commit");
  EXPECT_EQ(h.select("SELECT code, message LIKE '%the role%' FROM thalweg.error_queue"), "apply_failed|t");
  h.run("DROP TRIGGER reset ON items");
  const auto executed = execute(h, 1, clerk);
  ASSERT_TRUE(executed) << executed.error().message;
}

}  // namespace
}  // namespace thalweg::apply
