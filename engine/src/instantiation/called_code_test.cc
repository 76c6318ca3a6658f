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
  void expect_refused(const InstantiationOptions& with, bool fresh, const std::string& expected) {
    const auto assessed = start(with, fresh);
    ASSERT_FALSE(assessed) << "accepted";
    EXPECT_EQ(assessed.error().code, base::ErrorCode::code_not_accepted) << assessed.error().message;
    EXPECT_EQ(assessed.error().table, made_.quoted());
    EXPECT_NE(assessed.error().message.find(expected), std::string::npos) << assessed.error().message;
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

// At both sides: an enum, a domain and a function that somebody without powers has made. Those of the source are
// harmless; those of the destination are not.
class CalledCodeOfTypes : public CalledCode {
 protected:
  void SetUp() override {
    CalledCode::SetUp();
    for (pg::Connection* side : {&*source_, &*destination_}) {
      run(*side,
          "DO $$ BEGIN CREATE ROLE type_owner; EXCEPTION WHEN duplicate_object THEN NULL; END $$; "
          "GRANT ALL ON SCHEMA app TO type_owner; CREATE TYPE app.mood AS ENUM ('calm', 'cross'); "
          "CREATE TYPE app.pair AS (mood app.mood)");
    }
    run(*source_, "CREATE DOMAIN app.word AS text");
    run(*destination_,
        "CREATE FUNCTION app.spy(text) RETURNS bool LANGUAGE sql AS 'SELECT true'; "
        "CREATE DOMAIN app.word AS text CHECK (app.spy(VALUE))");
  }
  void expect_each_refused(std::initializer_list<std::pair<const char*, const char*>> definitions) {
    for (const auto& [sql, expected] : definitions) {
      run(*source_, "DROP TABLE made; CREATE TABLE made (id serial PRIMARY KEY, n int, mood app.mood, note text)");
      expect_taken(options({made_}), true);
      run(*source_, sql);
      expect_refused(options({made_}), true, expected);
    }
  }
  void expect_each_taken(std::initializer_list<const char*> definitions) {
    for (const char* sql : definitions) {
      run(*source_, "DROP TABLE made; CREATE TABLE made (id serial PRIMARY KEY, n int, mood app.mood, note text)");
      run(*source_, sql);
      expect_taken(options({made_}), true);
    }
  }
};

TEST_F(CalledCodeOfTypes, BehindADomainThatAnExpressionNames) {
  const char* const expected = ") uses the type app.word";
  expect_each_refused({
      {"ALTER TABLE made ADD CHECK ((note::app.word) IS NOT NULL)", expected},
      {"ALTER TABLE made ADD CHECK ('{a}'::app.word[] IS NOT NULL)", expected},
      {"CREATE INDEX i ON made ((note::app.word))", expected},
      {"CREATE DOMAIN app.outer AS text CHECK ((VALUE::app.word) IS NOT NULL); ALTER TABLE made ADD w app.outer",
       expected},
      // It is run by name.
      {"ALTER TABLE made ADD CHECK (domain_in('a', 'app.word'::regtype, -1) IS NOT NULL)",
       "calls pg_catalog.domain_in(cstring, oid, integer)"},
      {"DROP DOMAIN app.outer; CREATE DOMAIN app.absent AS text; "
       "ALTER TABLE made ADD CHECK ((note::app.absent) IS NOT NULL)",
       "uses the type app.absent"},
  });
}

TEST_F(CalledCodeOfTypes, OfACastThatAFunctionLooksUp) {
  run(*destination_,
      "CREATE FUNCTION app.as_json(app.mood) RETURNS json LANGUAGE sql AS $$SELECT '1'::json$$; "
      "CREATE CAST (app.mood AS json) WITH FUNCTION app.as_json(app.mood)");
  expect_each_refused({
      {"ALTER TABLE made ADD CHECK (to_json('calm'::app.mood) IS NOT NULL)", "uses the type app.mood"},
      {"ALTER TABLE made ADD CHECK (row_to_json(made) IS NOT NULL)", "uses the type app.mood"},
      {"ALTER TABLE made ADD CHECK (to_json(ROW(mood)::app.pair) IS NOT NULL)", "uses the type app.pair"},
      {"ALTER TABLE made ADD CHECK (json_build_array(ARRAY[mood]) IS NOT NULL)", "uses the type app.mood"},
  });
  if (value(*source_, "SHOW server_version_num") >= "160000") {
    expect_each_refused({
        {"ALTER TABLE made ADD CHECK (JSON_ARRAY(mood) IS NOT NULL)", "uses the type app.mood"},
        {"ALTER TABLE made ADD CHECK (pg_input_is_valid('a', 'app.word'))", "calls pg_catalog.pg_input_is_valid"},
    });
  }
  // Input and output of an enum run nothing.
  expect_each_taken({"ALTER TABLE made ALTER mood SET DEFAULT 'calm'", "ALTER TABLE made ADD CHECK (mood IS NOT NULL)",
                     "ALTER TABLE made ADD moods app.mood[] DEFAULT '{calm}'"});
}

TEST_F(CalledCodeOfTypes, OfACastThatTheDestinationPuts) {
  // The source's expression does not write the implicit cast down.
  run(*source_, "CREATE CAST (app.mood AS text) WITH INOUT AS IMPLICIT; CREATE TABLE words (word text PRIMARY KEY)");
  run(*destination_,
      "CREATE FUNCTION app.as_text(app.mood) RETURNS text LANGUAGE sql AS $$SELECT 'a'::text$$; "
      "CREATE CAST (app.mood AS text) WITH FUNCTION app.as_text(app.mood) AS IMPLICIT");
  expect_each_refused({
      {"ALTER TABLE made ADD CHECK (length(mood) > 0)", "uses the type app.mood"},
      {"ALTER TABLE made ADD CONSTRAINT key FOREIGN KEY (mood) REFERENCES words",
       R"("public"."made" (constraint key) uses the type app.mood)"},
  });
}

TEST_F(CalledCodeOfTypes, ThatTheirOwnerCanStillAdd) {
  run(*destination_,
      "CREATE DOMAIN app.plain AS text; ALTER DOMAIN app.plain OWNER TO type_owner; "
      "ALTER TYPE app.mood OWNER TO type_owner; ALTER TYPE app.pair OWNER TO type_owner");
  run(*source_, "CREATE DOMAIN app.plain AS text");
  expect_each_refused({
      {"ALTER TABLE made ADD p app.plain", "(type app.plain) uses the type app.plain"},
      {"ALTER TABLE made ADD CHECK ((note::app.plain) IS NOT NULL)", "uses the type app.plain"},
      {"ALTER TABLE made ADD CHECK (to_json(mood) IS NOT NULL)", "uses the type app.mood"},
      {"ALTER TABLE made ADD CHECK (ROW(mood)::app.pair = ROW(mood)::app.pair)", "uses the type app.pair"},
  });
  expect_each_taken({"ALTER TABLE made ADD CHECK (mood <> 'calm'), ALTER mood SET DEFAULT 'calm'"});
  InstantiationOptions with = options({made_});
  run(*source_, "ALTER TABLE made ADD p app.plain");
  with.accepted_code[made_] = {digest("type app.plain")};
  expect_taken(with, true);
  // Those of the role itself, and of superusers, are as they made them.
  run(*destination_, "ALTER DOMAIN app.plain OWNER TO postgres; ALTER TYPE app.mood OWNER TO postgres");
  expect_each_taken({"ALTER TABLE made ADD p app.plain", "ALTER TABLE made ADD CHECK ((note::app.plain) IS NOT NULL)",
                     "ALTER TABLE made ADD CHECK (to_json(mood) IS NOT NULL)"});
}

TEST_F(CalledCodeOfTypes, OfARangeThatTheDestinationMade) {
  run(*source_, "CREATE TYPE app.span AS RANGE (subtype = float8)");
  run(*destination_,
      "CREATE FUNCTION app.apart(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1::float8'; "
      "CREATE TYPE app.span AS RANGE (subtype = float8, subtype_diff = app.apart)");
  expect_each_refused({{"ALTER TABLE made ADD CHECK ('[1,2]'::app.span IS NOT NULL)", "uses the type app.span"}});
  run(*destination_, "ALTER TYPE app.span OWNER TO type_owner");
  expect_each_refused({{"ALTER TABLE made ADD s app.span", "uses the type app.span"}});
}

TEST_F(CalledCodeOfTypes, AcceptedOnceIsNotAskedForWhenTheCopyHasMadeThem) {
  run(*source_,
      "CREATE DOMAIN app.bound AS int CHECK (app.f(VALUE) > 0); "
      "ALTER TABLE made ADD b app.bound DEFAULT 1, ADD mood app.mood DEFAULT 'calm', ADD CHECK (to_json(mood) IS NOT "
      "NULL)");
  InstantiationOptions with = options({made_});
  with.accepted_code[made_] = {digest("type (app.f(VALUE) > 0)")};
  const auto done = instantiate(with);
  ASSERT_TRUE(done) << done.error().message;
  drop_there_and_copy_again();
  expect_taken(with, false);
}

TEST_F(CalledCode, IsOfTheOperatorThatTheDestinationChooses) {
  // The source's takes a bigint, for which an integer will do; the destination has a closer one.
  for (pg::Connection* side : {&*source_, &*destination_}) {
    run(*side, "CREATE OPERATOR app.=~= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_catalog.int8eq)");
  }
  run(*source_, "ALTER TABLE made ADD CHECK (n OPERATOR(app.=~=) n)");
  expect_taken(options({made_}), true);
  run(*destination_,
      "CREATE FUNCTION app.same(int, int) RETURNS bool LANGUAGE sql AS 'SELECT true'; "
      "CREATE OPERATOR app.=~= (LEFTARG = int, RIGHTARG = int, FUNCTION = app.same)");
  expect_refused(options({made_}), true, "calls app.=~=(bigint, bigint)");
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
