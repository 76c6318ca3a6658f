#include "instantiation/called_code.h"

#include <gtest/gtest.h>

#include "instantiation/instantiation_harness.h"

// What definitions call at the destination holds for what was accepted, and is judged there, whenever they are carried.

namespace thalweg::instantiation {
namespace {

class CalledCode : public InstantiationTest {
 protected:
  void SetUp() override {
    InstantiationTest::SetUp();
    for (pg::Connection* side : {&*source_, &*destination_}) {
      run(*side, "CREATE SCHEMA app; CREATE FUNCTION app.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'");
    }
    run(*source_, "CREATE TABLE made (id serial PRIMARY KEY, at timestamptz DEFAULT now(), n int CHECK (n > 0))");
  }
  base::Result<Assessment> start(const InstantiationOptions& with, bool fresh) {
    return Instantiation(with, progress_, stop_).assess(fresh);
  }
  void expect_refused(const InstantiationOptions& with, bool fresh, const std::string& told) {
    const auto assessed = start(with, fresh);
    ASSERT_FALSE(assessed) << "accepted";
    EXPECT_EQ(assessed.error().code, base::ErrorCode::code_not_accepted) << assessed.error().message;
    EXPECT_NE(assessed.error().message.find(told), std::string::npos) << assessed.error().message;
  }
  const TableName made_{"public", "made"};
};

TEST_F(CalledCode, ThatNobodyHasAcceptedIsNotCarried) {
  InstantiationOptions with = options({made_});
  const auto harmless = start(with, true);
  ASSERT_TRUE(harmless) << harmless.error().message;
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1)");
  expect_refused(with, true, R"("public"."made" (default of n) calls app.f(integer))");
  with.accepted_code[{"public", "other"}] = {"app.f(integer)"};
  expect_refused(with, true, "SUPERUSER");
  with.accepted_code[made_] = {"app.f(integer)"};
  const auto accepted = start(with, true);
  EXPECT_TRUE(accepted) << accepted.error().message;
  run(*source_, "CREATE INDEX came_after ON made ((query_to_xml('SELECT 1', true, true, '') IS NULL))");
  expect_refused(with, true, "calls pg_catalog.query_to_xml(text, boolean, boolean, text)");
}

TEST_F(CalledCode, IsJudgedAgainWhenATableIsCopiedAgain) {
  InstantiationOptions with = options({made_});
  const auto done = instantiate(with);
  ASSERT_TRUE(done) << done.error().message;
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1)");
  // The destination's table is there, with its own definitions.
  ASSERT_TRUE(start(with, false));
  run(*destination_,
      "DROP TABLE made; UPDATE thalweg.stream_table SET copy_again = true, planned = false, copied_from = NULL, "
      "copied_to = NULL");
  expect_refused(with, false, "app.f(integer)");
}

TEST_F(CalledCode, IsJudgedAgainWhenIndexesFollowAfterAPause) {
  InstantiationOptions with = options({made_});
  Instantiation first(with, progress_, stop_);
  ASSERT_TRUE(first.assess(true));
  const NamedSnapshot taken = snapshot();
  ASSERT_TRUE(first.prepare());
  ASSERT_TRUE(first.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
  run(*source_, "ALTER TABLE made ADD CHECK (app.f(id) > 0)");
  expect_refused(with, false, "constraint made_");
}

TEST_F(CalledCode, IsJudgedByWhatTheDestinationHas) {
  // Harmless at the source, by its catalogue: at the destination the same name does something else.
  run(*source_, "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4eq)");
  run(*destination_,
      "CREATE FUNCTION app.same(int, int) RETURNS bool LANGUAGE sql AS 'SELECT true'; "
      "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = app.same)");
  run(*source_, "ALTER TABLE made ADD CHECK (n OPERATOR(app.=~=) n)");
  expect_refused(options({made_}), true, "calls app.=~=(integer, integer)");
  run(*destination_,
      "DROP OPERATOR app.=~= (int, int); "
      "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4eq)");
  const auto same = start(options({made_}), true);
  EXPECT_TRUE(same) << same.error().message;
}

TEST_F(CalledCode, IsNotAskedForWhereTheRoleHasNoPowers) {
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1)");
  run(*destination_, "CREATE ROLE plain_" + destination_name_ + "; SET ROLE plain_" + destination_name_);
  Catalogue at_source(*source_);
  ASSERT_TRUE(at_source.open());
  const auto shape = at_source.table(made_);
  ASSERT_TRUE(shape && *shape);
  const std::vector<CarriedTable> carried{{.table = made_, .relations = {(*shape)->oid}}};
  EXPECT_TRUE(check_called_code(*source_, *destination_, carried, {}));
  run(*destination_, "RESET ROLE");
  EXPECT_FALSE(check_called_code(*source_, *destination_, carried, {}));
}

}  // namespace
}  // namespace thalweg::instantiation
