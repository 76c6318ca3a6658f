#include "instantiation/rehearsal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>

#include "pg/connection.h"
#include "support/test_cluster.h"

// Rehearsals between two databases of a real cluster.

namespace thalweg::instantiation {
namespace {

class RehearsalTest : public testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    ++number;
    source_name_ = "rehearsal_source_" + std::to_string(number);
    destination_name_ = "rehearsal_destination_" + std::to_string(number);
    run("postgres", "CREATE DATABASE " + source_name_);
    run("postgres", "CREATE DATABASE " + destination_name_);
  }

  static std::string run(const std::string& database, const std::string& sql) {
    auto connection = pg::Connection::open(test::shared_cluster().conninfo(database), {.search_path = "public"});
    if (!connection) throw std::runtime_error(connection.error().message);
    auto rows = connection->script(sql);
    if (!rows) throw std::runtime_error(sql + ": " + rows.error().message);
    return rows->size() > 0 ? std::string(rows->text(0, 0)) : "";
  }
  void at_source(const std::string& sql) { run(source_name_, sql); }
  void at_destination(const std::string& sql) { run(destination_name_, sql); }

  // The superuser of these tests tries no code of functions: that is no problem of theirs.
  std::vector<Problem> rehearse_tables(const std::vector<std::string>& names,
                                       const std::set<TableName>& inserts_only = {}) {
    std::vector<Problem> problems = rehearse_all(names, inserts_only);
    std::erase_if(problems, [](const Problem& problem) { return problem.outcome == Outcome::not_tried; });
    return problems;
  }

  std::vector<Problem> rehearse_all(const std::vector<std::string>& names,
                                    const std::set<TableName>& inserts_only = {}) {
    RehearsalOptions options{test::shared_cluster().conninfo(source_name_),
                             test::shared_cluster().conninfo(destination_name_),
                             {},
                             inserts_only};
    for (const std::string& name : names) options.tables.push_back({"public", name});
    const std::string count = "SELECT count(*) FROM pg_class";
    const std::string before = run(destination_name_, count);
    auto problems = rehearse(options);
    if (!problems) throw std::runtime_error(problems.error().message);
    EXPECT_EQ(run(destination_name_, count), before) << "something stayed behind";
    return *problems;
  }

  // The only problem, or one that says what there was.
  static Problem only(const std::vector<Problem>& problems) {
    std::string all;
    for (const Problem& problem : problems) all += problem.part + " " + problem.name + ": " + problem.message + "\n";
    EXPECT_EQ(problems.size(), 1u) << all;
    return problems.empty() ? Problem{} : problems.front();
  }

  std::string source_name_, destination_name_;
};

TEST_F(RehearsalTest, FindsNothingWhereEverythingCanBeMade) {
  at_source(R"sql(
    CREATE TYPE mood AS ENUM ('a', 'b'); CREATE DOMAIN small AS int CHECK (VALUE < 10);
    CREATE TABLE parent (id serial PRIMARY KEY, m mood, s small, twice int GENERATED ALWAYS AS (id * 2) STORED);
    CREATE TABLE child (id int PRIMARY KEY REFERENCES parent, at date UNIQUE); CREATE INDEX ON child (at);
    CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9); CREATE INDEX ON parts_1 (id);
    CREATE TABLE present (id int PRIMARY KEY);
  )sql");
  at_destination("CREATE TABLE present (id int PRIMARY KEY); INSERT INTO present VALUES (1)");
  EXPECT_TRUE(rehearse_tables({"parent", "child", "parts", "present"}).empty());
}

TEST_F(RehearsalTest, ATableWithoutAKeyNeedsSomebodyWhoGivesUpItsUpdates) {
  at_source(R"sql(
    CREATE TABLE log (at date);
    CREATE TABLE parts (id int) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9);
  )sql");
  EXPECT_EQ(rehearse_tables({"log", "parts"}).size(), 2u);
  EXPECT_EQ(only(rehearse_tables({"log", "parts"}, {{"public", "parts"}})).table, "\"public\".\"log\"");
  EXPECT_TRUE(rehearse_tables({"log", "parts"}, {{"public", "log"}, {"public", "parts"}}).empty());
}

TEST_F(RehearsalTest, AnEnumWithoutALabelIsRefusedAndTheCureWorks) {
  at_source("CREATE TYPE mood AS ENUM ('zero', 'a', 'b''s', 'c'); CREATE TABLE t (id int PRIMARY KEY, m mood[])");
  at_destination("CREATE TYPE mood AS ENUM ('a', 'c')");
  const Problem found = only(rehearse_tables({"t"}));
  EXPECT_EQ(found.outcome, Outcome::refused);
  EXPECT_EQ(found.part, "type");
  EXPECT_NE(found.message.find("'zero'"), std::string::npos) << found.message;
  at_destination(found.cure_sql);
  EXPECT_EQ(run(destination_name_, "SELECT enum_range(NULL::mood)"), "{zero,a,b's,c}");
  EXPECT_TRUE(rehearse_tables({"t"}).empty());
}

TEST_F(RehearsalTest, DomainsAndCompositesThatDifferAreRefused) {
  at_source(R"sql(
    CREATE DOMAIN small AS int; CREATE TYPE pair AS (a int, b text);
    CREATE TABLE t (id int PRIMARY KEY, s small, p pair); CREATE TABLE exists (id int PRIMARY KEY, s small);
  )sql");
  at_destination(R"sql(
    CREATE DOMAIN small AS int CHECK (VALUE < 10); CREATE TYPE pair AS (a int, c text);
    CREATE TABLE exists (id int PRIMARY KEY, s small);
  )sql");
  const std::vector<Problem> found = rehearse_tables({"t", "exists"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].message.find("CHECK ((VALUE < 10))"), std::string::npos) << found[0].message;
  EXPECT_NE(found[1].message.find("(a integer, c text)"), std::string::npos) << found[1].message;
}

TEST_F(RehearsalTest, AMissingExtensionIsOneProblemWithItsCure) {
  at_source(R"sql(
    CREATE EXTENSION pg_trgm; CREATE EXTENSION citext;
    CREATE TABLE t (id int PRIMARY KEY, words text, mail citext, mails citext[]);
    CREATE INDEX t_words ON t USING gin (words gin_trgm_ops); CREATE INDEX t_mail ON t (mail);
    CREATE TABLE u (id int PRIMARY KEY, words text); CREATE INDEX u_words ON u USING gist (words gist_trgm_ops);
    CREATE TABLE v (id int PRIMARY KEY REFERENCES t);
  )sql");
  std::vector<Problem> found = rehearse_tables({"t", "u", "v"});
  ASSERT_EQ(found.size(), 2u);
  std::ranges::sort(found, {}, &Problem::name);
  EXPECT_EQ(found[0].name, "citext");
  EXPECT_EQ(found[0].outcome, Outcome::refused);
  EXPECT_EQ(found[1].name, "pg_trgm");
  EXPECT_EQ(found[1].outcome, Outcome::left_out);
  EXPECT_NE(found[1].message.find("\"u\" (\"u_words\")"), std::string::npos) << found[1].message;
  for (const Problem& problem : found) at_destination(problem.cure_sql);
  EXPECT_TRUE(rehearse_tables({"t", "u", "v"}).empty());
}

TEST_F(RehearsalTest, FunctionsAreNamedWithTheirDefinition) {
  at_source(R"sql(
    CREATE FUNCTION tag(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT upper($1)';
    CREATE FUNCTION later() RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE TABLE t (id int PRIMARY KEY, d int DEFAULT later(), w text CHECK (tag(w) <> ''));
    CREATE INDEX t_tag ON t (tag(w));
    CREATE TABLE g (id int PRIMARY KEY, w text, x text GENERATED ALWAYS AS (tag(w)) STORED);
  )sql");
  const std::vector<Problem> found = rehearse_tables({"t", "g"});
  ASSERT_EQ(found.size(), 2u);
  for (const Problem& problem : found) {
    EXPECT_EQ(problem.part, "function");
    EXPECT_EQ(problem.outcome, problem.name == "public.tag(text)" ? Outcome::refused : Outcome::left_out)
        << problem.name;
    at_destination(problem.cure_sql);
  }
  EXPECT_TRUE(rehearse_tables({"t", "g"}).empty());
}

// Neither the schema nor the enum is at the destination before: the engine would make the latter with the table.
TEST_F(RehearsalTest, FunctionsComeWithTheirSchemaAndEnums) {
  at_source(R"sql(
    CREATE SCHEMA zoo; CREATE SCHEMA lib;
    CREATE TYPE zoo.kind AS ENUM ('o''cat', 'ant');
    CREATE FUNCTION zoo.next(zoo.kind) RETURNS zoo.kind LANGUAGE sql AS 'SELECT $1';
    CREATE FUNCTION lib.one() RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE TABLE t (id int PRIMARY KEY, k zoo.kind DEFAULT zoo.next('ant'), n int DEFAULT lib.one());
  )sql");
  const std::vector<Problem> found = rehearse_tables({"t"});
  ASSERT_EQ(found.size(), 2u);
  for (const Problem& problem : found) {
    EXPECT_EQ(problem.part, "function");
    at_destination(problem.cure_sql);
    at_destination(problem.cure_sql);  // as often as somebody types it
  }
  EXPECT_TRUE(rehearse_tables({"t"}).empty());
}

// Somebody else executes the cure. A schema that is there already stays as it is.
TEST_F(RehearsalTest, TheRoleThatAppliesMayMakeTablesInTheSchemasOfACure) {
  at_source(R"sql(
    CREATE SCHEMA fn; CREATE SCHEMA old; CREATE EXTENSION citext SCHEMA fn;
    CREATE TYPE old.kind AS ENUM ('a');
    CREATE FUNCTION fn.one(old.kind) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
    CREATE TABLE t (id int PRIMARY KEY, c fn.citext, n int CHECK (fn.one('a') = n));
  )sql");
  at_destination("DROP ROLE IF EXISTS fn_applier; CREATE ROLE fn_applier LOGIN SUPERUSER; CREATE SCHEMA old");
  const RehearsalOptions options{test::shared_cluster().conninfo(source_name_),
                                 test::shared_cluster().conninfo(destination_name_, "fn_applier"),
                                 {{"public", "t"}},
                                 {}};
  const auto found = rehearse(options);
  ASSERT_TRUE(found) << found.error().message;
  std::vector<std::string> cures;
  for (const Problem& problem : *found) {
    if (problem.cure_sql.empty()) continue;
    cures.push_back(problem.cure_sql);
    at_destination(problem.cure_sql);
  }
  ASSERT_EQ(cures.size(), 2u);
  const std::string schema =
      "CREATE SCHEMA IF NOT EXISTS \"fn\";\n"
      "GRANT CREATE, USAGE ON SCHEMA \"fn\" TO \"fn_applier\";\n";
  for (const std::string& cure : cures) {
    EXPECT_TRUE(cure.starts_with(schema)) << cure;
    EXPECT_EQ(cure.find("GRANT CREATE, USAGE ON SCHEMA \"old\""), std::string::npos) << cure;
  }
  const std::string granted = "SELECT array_to_string(nspacl, ' ') FROM pg_namespace WHERE nspname = 'fn'";
  EXPECT_NE(run(destination_name_, granted).find("fn_applier=UC/"), std::string::npos);
  at_destination("DROP OWNED BY fn_applier; DROP ROLE fn_applier");
}

// Types of arguments and results are named, and made before the function, each after those that it needs itself.
TEST_F(RehearsalTest, FunctionsComeWithTheirDomainsCompositesAndRanges) {
  at_source(R"sql(
    CREATE SCHEMA lib; CREATE TYPE lib.level AS ENUM ('low', 'high');
    CREATE DOMAIN lib.amount AS numeric(12,2) NOT NULL CHECK (VALUE >= 0);
    CREATE TYPE lib.price AS (net lib.amount, rate lib.level);
    CREATE TYPE lib.span AS RANGE (SUBTYPE = numeric);
    CREATE TABLE other (id int);
    CREATE FUNCTION lib.gross(lib.price, lib.amount[]) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT ($1).net * 2';
    CREATE FUNCTION lib.whole() RETURNS lib.span LANGUAGE sql IMMUTABLE AS 'SELECT NULL::lib.span';
    CREATE TABLE t (id int PRIMARY KEY, g numeric DEFAULT lib.gross(ROW(1, 'low'), ARRAY[]::lib.amount[]),
                    w text CHECK (lib.whole() IS NULL));
  )sql");
  const std::vector<Problem> found = rehearse_tables({"t"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].cure.find("\"lib\".\"price\""), std::string::npos) << found[0].cure;
  EXPECT_NE(found[1].cure.find("\"lib\".\"span\""), std::string::npos) << found[1].cure;
  for (const Problem& problem : found) {
    EXPECT_EQ(problem.part, "function");
    at_destination(problem.cure_sql);
    at_destination(problem.cure_sql);  // as often as somebody types it
  }
  EXPECT_TRUE(rehearse_tables({"t"}).empty());
}

TEST_F(RehearsalTest, WhatTheServerRefusesIsToldWithItsStatement) {
  at_source(R"sql(
    CREATE COLLATION own (locale = 'C'); CREATE TABLE t (id int PRIMARY KEY, w text COLLATE own, v text);
    CREATE INDEX t_v ON t (v COLLATE own); CREATE TABLE u (id int PRIMARY KEY, v text); CREATE INDEX u_v ON u (v);
    CREATE TABLE x (id int PRIMARY KEY REFERENCES t, y int REFERENCES u);
  )sql");
  at_destination("CREATE TABLE u_v (id int)");
  const std::vector<Problem> found = rehearse_tables({"t", "u", "x"});
  ASSERT_EQ(found.size(), 2u);  // nothing about what only follows from these
  EXPECT_EQ(found[0].outcome, Outcome::left_out);
  EXPECT_EQ(found[0].name, "u_v");
  EXPECT_EQ(found[1].outcome, Outcome::refused);
  EXPECT_EQ(found[1].part, "table");
  EXPECT_EQ(found[1].sqlstate, "42704");
  EXPECT_NE(found[1].statement.find("COLLATE"), std::string::npos);
}

// A table that is there may be busy: whoever writes to it waits for nobody, and nobody for him.
// A constant argument is enough for the server to call a function while it makes a check or an index.
TEST_F(RehearsalTest, CallsNoCodeThatNobodyHasAccepted) {
  const char* function =
      "CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE EXCEPTION 'called'; END$$;";
  at_source(R"sql(
    CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
    CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT f(1), CONSTRAINT checked CHECK (f(1) > 0));
    CREATE INDEX indexed ON t (id) WHERE f(1) > 0;
    CREATE DOMAIN bound AS int CHECK (f(1) > 0);
    CREATE TABLE whole (id int PRIMARY KEY, b bound); CREATE TABLE plain (id int PRIMARY KEY REFERENCES t);
  )sql");
  at_destination(function);
  std::set<std::string> parts;
  for (const Problem& problem : rehearse_all({"t", "whole", "plain"})) {
    EXPECT_EQ(problem.outcome, Outcome::not_tried) << problem.message;
    EXPECT_EQ(problem.name, "public.f(integer)");
    parts.insert(problem.part);
  }
  EXPECT_EQ(parts,
            (std::set<std::string>{"default of n", "constraint checked", "index public.indexed", "type public.bound"}));
}

TEST_F(RehearsalTest, EndsWithItsTime) {
  at_source("CREATE TABLE t (id int PRIMARY KEY)");
  RehearsalOptions options{test::shared_cluster().conninfo(source_name_),
                           test::shared_cluster().conninfo(destination_name_),
                           {{"public", "t"}},
                           {}};
  options.time_max = std::chrono::milliseconds(1);
  const auto found = rehearse(options);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, base::ErrorCode::database_busy) << found.error().message;
}

TEST_F(RehearsalTest, AForeignKeyAtABusyTableIsTriedWithoutItsLock) {
  at_source(R"sql(
    CREATE TABLE "busy" (id int, "a b" text COLLATE "C", PRIMARY KEY (id), UNIQUE ("a b"));
    CREATE TABLE child (id int PRIMARY KEY REFERENCES busy, b text COLLATE "C" REFERENCES busy ("a b"));
  )sql");
  at_destination(R"sql(CREATE TABLE "busy" (id int PRIMARY KEY, "a b" text COLLATE "C" UNIQUE))sql");
  auto writer = pg::Connection::open(test::shared_cluster().conninfo(destination_name_), {.search_path = "public"});
  ASSERT_TRUE(writer);
  for (const char* mode : {"ROW EXCLUSIVE", "ACCESS EXCLUSIVE"}) {
    ASSERT_TRUE(writer->script(std::string("BEGIN; LOCK TABLE busy IN ") + mode + " MODE"));
    const auto found = rehearse_tables({"child"});
    EXPECT_TRUE(found.empty()) << mode << ": " << found.front().message;
    ASSERT_TRUE(writer->script("COMMIT"));
  }
}

TEST_F(RehearsalTest, AForeignKeyThatDoesNotFitATableThatIsThereIsTold) {
  at_source(R"sql(
    CREATE TABLE there (id int PRIMARY KEY, other text UNIQUE);
    CREATE TABLE child (id int PRIMARY KEY REFERENCES there, o text REFERENCES there (other));
  )sql");
  at_destination("CREATE TABLE there (id int PRIMARY KEY, other text)");
  const Problem found = only(rehearse_tables({"child"}));
  EXPECT_EQ(found.outcome, Outcome::left_out);
  EXPECT_EQ(found.part, "foreign key");
  EXPECT_EQ(found.sqlstate, "42830");
  EXPECT_NE(found.statement.find("REFERENCES public.there(other)"), std::string::npos) << found.statement;
}

TEST_F(RehearsalTest, HundredsOfTablesAtOnce) {
  at_source(
      "DO $$ BEGIN FOR i IN 1 .. 300 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, v text UNIQUE, "
      "p int REFERENCES t%s)', i, greatest(i - 1, 1)); EXECUTE format('CREATE INDEX ON t%s (p)', i); END LOOP; END $$");
  std::vector<std::string> names;
  for (int i = 1; i <= 300; ++i) names.push_back("t" + std::to_string(i));
  EXPECT_TRUE(rehearse_tables(names).empty());
}

}  // namespace
}  // namespace thalweg::instantiation
