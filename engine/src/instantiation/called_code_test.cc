#include "instantiation/called_code.h"

#include <gtest/gtest.h>

#include "instantiation/instantiation_harness.h"

// A consent to what definitions call holds for those definitions. It is judged at the destination, whenever something
// is made of them.

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
  void expect_taken(const InstantiationOptions& with, bool fresh) {
    const auto assessed = start(with, fresh);
    EXPECT_TRUE(assessed) << assessed.error().message;
  }
  void expect_refused(const InstantiationOptions& with, bool fresh, const std::string& told) {
    const auto assessed = start(with, fresh);
    ASSERT_FALSE(assessed) << "accepted";
    EXPECT_EQ(assessed.error().code, base::ErrorCode::code_not_accepted) << assessed.error().message;
    EXPECT_EQ(assessed.error().table, made_.quoted());
    EXPECT_NE(assessed.error().message.find(told), std::string::npos) << assessed.error().message;
  }
  void drop_there_and_copy_again() {
    run(*destination_,
        "DROP TABLE made; UPDATE thalweg.stream_table SET copy_again = true, planned = false, constraints_done = "
        "false, copied_from = NULL, copied_to = NULL");
  }
  const TableName made_{"public", "made"};
};

TEST_F(CalledCode, ThatNobodyHasAcceptedIsNotCarried) {
  InstantiationOptions with = options({made_});
  expect_taken(with, true);
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1)");
  expect_refused(with, true, R"("public"."made" (default of n) calls app.f(integer))");
  with.accepted_code[{"public", "other"}] = {digest("default app.f(1)")};
  expect_refused(with, true, "SUPERUSER");
  with.accepted_code[made_] = {digest("default app.f(1)")};
  expect_taken(with, true);
  run(*source_, "ALTER TABLE made ADD CHECK (query_to_xml('SELECT 1', true, true, '') IS NOT NULL)");
  expect_refused(with, true, "calls pg_catalog.query_to_xml(text, boolean, boolean, text)");
}

TEST_F(CalledCode, IsAcceptedAsItIsWrittenNotByTheFunctionsName) {
  InstantiationOptions with = options({made_});
  run(*source_, "ALTER TABLE made ADD CONSTRAINT same CHECK (query_to_xml('SELECT 1', true, true, '') IS NOT NULL)");
  with.accepted_code[made_] = {digest("constraint (query_to_xml('SELECT 1'::text, true, true, ''::text) IS NOT NULL)")};
  expect_taken(with, true);
  run(*source_,
      "ALTER TABLE made DROP CONSTRAINT same, "
      "ADD CONSTRAINT same CHECK (query_to_xml('DELETE FROM app.t', true, true, '') IS NOT NULL)");
  expect_refused(with, true, "(constraint same) calls pg_catalog.query_to_xml");
}

TEST_F(CalledCode, OfEveryKindOfDefinitionIsJudged) {
  const std::pair<const char*, const char*> kinds[] = {
      {"ALTER TABLE made ALTER n SET DEFAULT app.f(1)", "default of n"},
      {"ALTER TABLE made ADD g int GENERATED ALWAYS AS (app.f(2)) STORED", "generated column g"},
      {"ALTER TABLE made ADD CONSTRAINT c CHECK (app.f(n) > 0)", "constraint c"},
      {"CREATE INDEX i ON made (app.f(n))", "index public.i"},
      {"CREATE INDEX i ON made (n) WHERE app.f(n) > 0", "index public.i"},
      {"CREATE DOMAIN app.bound AS int CHECK (app.f(VALUE) > 0); ALTER TABLE made ADD b app.bound", "type app.bound"},
      {"CREATE DOMAIN app.bound AS int DEFAULT app.f(1); ALTER TABLE made ADD b app.bound", "type app.bound"},
      {"DROP TABLE made; CREATE TABLE made (id int) PARTITION BY LIST (app.f(id)); ALTER TABLE made REPLICA IDENTITY "
       "FULL",
       "partition key"},
      {"DROP TABLE made; CREATE TABLE made (id int PRIMARY KEY) PARTITION BY LIST (id); "
       "CREATE TABLE made_1 PARTITION OF made FOR VALUES IN (1); ALTER TABLE made_1 ADD CHECK (app.f(id) > 0)",
       "constraint made_1_id_check"},
  };
  for (const auto& [sql, part] : kinds) {
    run(*source_, "DROP TABLE made; DROP DOMAIN IF EXISTS app.bound; CREATE TABLE made (id serial PRIMARY KEY, n int)");
    expect_taken(options({made_}), true);
    run(*source_, sql);
    expect_refused(options({made_}), true, std::string("(") + part + ") calls app.f(integer)");
  }
}

TEST_F(CalledCode, IsJudgedAgainWhenATableIsCopiedAgain) {
  InstantiationOptions with = options({made_});
  const auto done = instantiate(with);
  ASSERT_TRUE(done) << done.error().message;
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1)");
  // The destination's table is there, and nothing is made of the source's.
  expect_taken(with, false);
  drop_there_and_copy_again();
  expect_refused(with, false, "app.f(integer)");
  with.accepted_code[made_] = {digest("default app.f(1)")};
  expect_taken(with, false);
}

TEST_F(CalledCode, OfTablesThatAreThereConcernsWhatFollowsTheRows) {
  InstantiationOptions with = options({made_});
  const auto done = instantiate(with);
  ASSERT_TRUE(done) << done.error().message;
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1), ADD CONSTRAINT later CHECK (app.f(id) > 0)");
  expect_taken(with, false);
  run(*destination_, "UPDATE thalweg.stream_table SET copy_again = true, planned = false, constraints_done = false");
  expect_refused(with, false, "(constraint later) calls app.f(integer)");
  with.accepted_code[made_] = {digest("constraint (app.f(id) > 0)")};
  expect_taken(with, false);
  // Somebody else has made it: it is left as it is.
  run(*destination_, "UPDATE thalweg.stream_table SET created = false");
  expect_taken(options({made_}), false);
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
  expect_taken(options({made_}), true);
}

TEST_F(CalledCode, IsNotAskedForWhereTheRoleHasNoPowers) {
  run(*source_, "ALTER TABLE made ALTER n SET DEFAULT app.f(1)");
  run(*destination_, "CREATE ROLE plain_" + destination_name_ + "; SET ROLE plain_" + destination_name_);
  Catalogue at_source(*source_);
  ASSERT_TRUE(at_source.open());
  const auto shape = at_source.table(made_);
  ASSERT_TRUE(shape && *shape);
  const std::vector<CarriedTable> carried{carried_table(**shape, nullptr, false)};
  EXPECT_TRUE(check_called_code(*source_, *destination_, carried, {}));
  run(*destination_, "RESET ROLE");
  EXPECT_FALSE(check_called_code(*source_, *destination_, carried, {}));
}

}  // namespace
}  // namespace thalweg::instantiation
