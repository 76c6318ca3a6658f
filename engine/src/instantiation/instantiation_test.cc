#include "instantiation/instantiation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "instantiation/bookkeeping.h"
#include "instantiation/catalogue.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "support/test_cluster.h"

// Instantiation between two databases of a real cluster.

namespace thalweg::instantiation {
namespace {

using base::ErrorCode;

struct NamedSnapshot {
  pg::ReplicationStream session;
  pg::CreatedSlot slot;
};

class InstantiationTest : public testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    ++number;
    source_name_ = "source_" + std::to_string(number);
    destination_name_ = "destination_" + std::to_string(number);
    pg::Connection admin = open("postgres");
    run(admin, "CREATE DATABASE " + source_name_);
    run(admin, "CREATE DATABASE " + destination_name_);
    source_.emplace(open(source_name_));
    destination_.emplace(open(destination_name_));
  }

  static pg::Connection open(const std::string& database) {
    auto connection = pg::Connection::open(test::shared_cluster().conninfo(database), {});
    if (!connection) throw std::runtime_error(connection.error().message);
    return std::move(*connection);
  }
  static pg::Rows run(pg::Connection& connection, const std::string& sql) {
    auto rows = connection.script(sql);
    if (!rows) throw std::runtime_error(sql + ": " + rows.error().message);
    return std::move(*rows);
  }
  static std::string value(pg::Connection& connection, const std::string& sql) {
    return std::string(run(connection, sql).text(0, 0));
  }

  NamedSnapshot snapshot() {
    auto session = pg::ReplicationStream::open(test::shared_cluster().conninfo(source_name_), "thalweg test");
    if (!session) throw std::runtime_error(session.error().message);
    auto slot = session->create_slot("test_" + source_name_, true);
    if (!slot) throw std::runtime_error(slot.error().message);
    return {std::move(*session), *slot};
  }

  InstantiationOptions options(std::vector<TableName> tables) {
    InstantiationOptions out;
    out.stream_id = "teststream";
    out.source_conninfo = test::shared_cluster().conninfo(source_name_);
    out.destination_conninfo = test::shared_cluster().conninfo(destination_name_);
    out.tables = std::move(tables);
    return out;
  }

  // The whole of a first instantiation.
  base::Result<void> instantiate(const InstantiationOptions& with) {
    Instantiation instantiation(with, progress_, stop_);
    THALWEG_TRY(instantiation.assess(true));
    NamedSnapshot taken = snapshot();
    THALWEG_TRY(instantiation.prepare());
    THALWEG_TRY(instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
    THALWEG_ASSIGN(base::Lsn postponed, instantiation.add_constraints(taken.slot.consistent_point));
    EXPECT_FALSE(postponed);
    THALWEG_ASSIGN(copied_, instantiation.copied_tables());
    return {};
  }

  ErrorCode refusal(const InstantiationOptions& with) {
    auto assessed = Instantiation(with, progress_, stop_).assess(true);
    if (assessed) {
      ADD_FAILURE() << "accepted";
      return ErrorCode::invalid_request;
    }
    EXPECT_FALSE(assessed.error().message.empty());
    // Nothing half-created stays behind.
    EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'"), "0");
    EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_class WHERE relname LIKE 'made%'"), "0");
    return assessed.error().code;
  }

  std::string content(pg::Connection& connection, const std::string& table) {
    return value(
        connection,
        "SELECT count(*) || ' rows, ' || coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text)), '') FROM " +
            table + " t");
  }
  void expect_same_content(const std::string& table) {
    EXPECT_EQ(content(*source_, table), content(*destination_, table)) << table;
  }

  void expect_same_shape(const TableName& name) {
    Catalogue source(*source_);
    Catalogue destination(*destination_);
    ASSERT_TRUE(source.open());
    ASSERT_TRUE(destination.open());
    auto here = source.table(name);
    auto there = destination.table(name);
    ASSERT_TRUE(here && *here && there && *there) << name.quoted();
    ASSERT_EQ((*here)->columns.size(), (*there)->columns.size());
    for (size_t i = 0; i < (*here)->columns.size(); ++i) {
      const ColumnShape& a = (*here)->columns[i];
      const ColumnShape& b = (*there)->columns[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.type, b.type) << a.name;
      EXPECT_EQ(a.collation, b.collation) << a.name;
      EXPECT_EQ(a.not_null, b.not_null) << a.name;
      EXPECT_EQ(a.default_expression, b.default_expression) << a.name;
      EXPECT_EQ(a.identity, b.identity) << a.name;
      EXPECT_EQ(a.generated, b.generated) << a.name;
    }
    std::vector<std::string> constraints_here, constraints_there, indexes_here, indexes_there;
    for (const auto& c : (*here)->constraints) constraints_here.push_back(c.name + " " + c.definition);
    for (const auto& c : (*there)->constraints) constraints_there.push_back(c.name + " " + c.definition);
    for (const auto& i : (*here)->indexes) indexes_here.push_back(i.definition);
    for (const auto& i : (*there)->indexes) indexes_there.push_back(i.definition);
    EXPECT_EQ(constraints_here, constraints_there) << name.quoted();
    EXPECT_EQ(indexes_here, indexes_there) << name.quoted();
    EXPECT_EQ((*here)->partition_key, (*there)->partition_key);
    EXPECT_EQ((*here)->partitions.size(), (*there)->partitions.size());
    run(*source_, "RESET search_path");  // the catalogue empties it
    run(*destination_, "RESET search_path");
  }

  void stop_while_making(const std::string& slow, const std::string& made_before);

  std::string source_name_, destination_name_;
  std::optional<pg::Connection> source_, destination_;
  base::SystemClock clock_;
  Progress progress_{clock_};
  std::atomic<bool> stop_{false};
  std::vector<CopiedTable> copied_;
};

TEST_F(InstantiationTest, MakesAndFillsWhatDdlCanSay) {
  run(*source_, R"sql(
    CREATE SCHEMA "Größe";
    CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'happy');
    CREATE DOMAIN "Größe".positive AS integer DEFAULT 7 NOT NULL CHECK (VALUE > 0) CHECK (VALUE < 1000000);
    CREATE TYPE pair AS (m mood, n numeric(10,2), s text COLLATE "C");
    CREATE TYPE span AS RANGE (subtype = float8, subtype_diff = float8mi);
    CREATE TABLE parent (id serial PRIMARY KEY, code text UNIQUE, CHECK (length(code) < 100));
    CREATE TABLE "Größe"."all ""kinds""" (
      id bigint GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY 5) PRIMARY KEY,
      other integer GENERATED BY DEFAULT AS IDENTITY,
      "Größe" varchar(20) COLLATE "C" DEFAULT 'a''b' NOT NULL,
      m mood DEFAULT 'happy', ms mood[], p pair, ps pair[], d "Größe".positive, s span, ss span_multirange, i4s int4range,
      n numeric, f float8, b bytea, j jsonb, ts timestamptz DEFAULT '2020-01-01 00:00+00', c regclass, a int[][],
      twice bigint GENERATED ALWAYS AS (id * 2) STORED,
      parent_id integer REFERENCES parent ON DELETE CASCADE DEFERRABLE,
      EXCLUDE USING gist (i4s WITH &&)
    );
    CREATE INDEX ON "Größe"."all ""kinds""" (lower("Größe")) WHERE f > 0;
    CREATE UNIQUE INDEX "Unique ON ONLY" ON "Größe"."all ""kinds""" (other, m);
    CREATE TABLE measures (at date, place int, v float8, PRIMARY KEY (place, at)) PARTITION BY RANGE (at);
    CREATE TABLE measures_2020 PARTITION OF measures FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
    CREATE TABLE measures_rest PARTITION OF measures DEFAULT PARTITION BY LIST (place);
    CREATE TABLE measures_rest_1 PARTITION OF measures_rest FOR VALUES IN (1);
    CREATE TABLE measures_rest_d PARTITION OF measures_rest DEFAULT;
    CREATE INDEX measures_v ON measures (v);
    CREATE TABLE keyless (x text, y text); ALTER TABLE keyless REPLICA IDENTITY FULL;
    INSERT INTO parent (code) SELECT 'c' || g FROM generate_series(1, 50) g;
    INSERT INTO "Größe"."all ""kinds""" (m, ms, p, ps, s, ss, i4s, n, f, b, j, c, a, parent_id)
      SELECT 'sad', ARRAY['sad', NULL, 'it''s ok']::mood[], ROW('happy', g, E'line\n' || g)::pair, ARRAY[ROW('sad', 1, 'x')::pair],
        span(g, g + 1.5), span_multirange(span(g, g + 1), span(g + 5, NULL)), int4range(g * 10, g * 10 + 5),
        (ARRAY['NaN', 'Infinity', '-Infinity', '1e300', '0.0000001']::numeric[])[g % 5 + 1], 1.0 / g, decode(repeat('00ff', g), 'hex'),
        jsonb_build_object('g', g, 'n', NULL), 'pg_class', ARRAY[[1, g], [2, NULL]], g % 50 + 1 FROM generate_series(1, 300) g;
    INSERT INTO measures SELECT date '2020-01-01' + g, g % 5, g FROM generate_series(0, 999) g;
    INSERT INTO keyless SELECT g % 3, NULL FROM generate_series(1, 10) g;
  )sql");
  std::vector<TableName> tables = {
      {"public", "parent"}, {"Größe", "all \"kinds\""}, {"public", "measures"}, {"public", "keyless"}};
  auto done = instantiate(options(tables));
  ASSERT_TRUE(done) << done.error().message;
  for (const TableName& table : tables) {
    expect_same_shape(table);
    expect_same_content(table.quoted());
  }
  ProgressReport report = progress_.report();
  EXPECT_TRUE(report.finished_at);
  EXPECT_TRUE(report.warnings.empty()) << report.warnings.front();
  ASSERT_EQ(copied_.size(), 4u);
  for (const CopiedTable& table : copied_) {
    EXPECT_TRUE(table.copied_from);
    EXPECT_EQ(table.copied_from, table.copied_to);
  }
  // The bookkeeping goes with the stream, the tables stay.
  ASSERT_TRUE(Instantiation::forget(*destination_, "teststream"));
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_tables WHERE schemaname = 'thalweg'"), "0");
  expect_same_content("parent");
}

TEST_F(InstantiationTest, TablesKeepHowTheirRowsAreIdentified) {
  run(*source_, R"sql(
    CREATE TABLE whole (a text); ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL); CREATE UNIQUE INDEX "By code" ON by_index (code);
    ALTER TABLE by_index REPLICA IDENTITY USING INDEX "By code";
    CREATE TABLE by_constraint (id int PRIMARY KEY, code text NOT NULL CONSTRAINT by_code UNIQUE);
    ALTER TABLE by_constraint REPLICA IDENTITY USING INDEX by_code;
    CREATE TABLE usual (id int PRIMARY KEY);
  )sql");
  const std::vector<TableName> tables = {
      {"public", "whole"}, {"public", "by_index"}, {"public", "by_constraint"}, {"public", "usual"}};
  auto done = instantiate(options(tables));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(progress_.report().warnings.empty());
  EXPECT_EQ(value(*destination_,
                  "SELECT string_agg(c.relname || ' ' || c.relreplident::text || coalesce(' ' || x.relname, ''), ', ' "
                  "ORDER BY c.relname) FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisreplident "
                  "LEFT JOIN pg_class x ON x.oid = i.indexrelid "
                  "WHERE c.relname IN ('whole', 'by_index', 'by_constraint', 'usual')"),
            "by_constraint i by_code, by_index i By code, usual d, whole f");
}

TEST_F(InstantiationTest, LeavesOutWhatTheDestinationCannotHaveAndSaysSo) {
  run(*source_, R"sql(
    CREATE TABLE elsewhere (id int PRIMARY KEY);
    CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE TABLE t (id int PRIMARY KEY, e int REFERENCES elsewhere, d int DEFAULT f());
  )sql");
  auto done = instantiate(options({{"public", "t"}}));
  ASSERT_TRUE(done) << done.error().message;
  std::vector<std::string> warnings = progress_.report().warnings;
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("default of \"d\" left out"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("elsewhere"), std::string::npos) << warnings[1];
}

TEST_F(InstantiationTest, RefusesBeforeAnythingExists) {
  run(*source_, R"sql(
    CREATE TABLE made_good (id int PRIMARY KEY);
    CREATE TABLE made_keyless (id int);
    CREATE VIEW made_view AS SELECT 1 AS id;
    CREATE UNLOGGED TABLE made_unlogged (id int PRIMARY KEY);
    CREATE TABLE made_deferrable (id int PRIMARY KEY DEFERRABLE);
    CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE made_mood (id int PRIMARY KEY, m mood);
    CREATE TABLE differs (id int PRIMARY KEY, v text); CREATE TABLE full_there (id int PRIMARY KEY);
  )sql");
  run(*destination_, R"sql(
    CREATE TABLE differs (id int PRIMARY KEY, v int); CREATE TABLE full_there (id int PRIMARY KEY); INSERT INTO full_there VALUES (1);
    CREATE TYPE mood AS ENUM ('a');
  )sql");
  auto with = [&](const std::string& table) { return options({{"public", "made_good"}, {"public", table}}); };
  EXPECT_EQ(refusal(with("made_nothing")), ErrorCode::missing_table);
  EXPECT_EQ(refusal(with("made_keyless")), ErrorCode::replica_identity_missing);
  EXPECT_EQ(refusal(with("made_deferrable")), ErrorCode::replica_identity_missing);
  EXPECT_EQ(refusal(with("made_view")), ErrorCode::unsupported_table);
  EXPECT_EQ(refusal(with("made_unlogged")), ErrorCode::unsupported_table);
  EXPECT_EQ(refusal(with("made_mood")), ErrorCode::destination_table_differs);
  EXPECT_EQ(refusal(with("differs")), ErrorCode::destination_table_differs);
  EXPECT_EQ(refusal(with("full_there")), ErrorCode::destination_table_not_empty);

  run(*destination_, "DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN");
  InstantiationOptions weak = options({{"public", "made_good"}});
  weak.destination_conninfo = test::shared_cluster().conninfo(destination_name_, "weak");
  EXPECT_EQ(refusal(weak), ErrorCode::insufficient_privilege);
}

TEST_F(InstantiationTest, RefusesUserTypesThatAreOthersAtTheDestination) {
  run(*source_, R"sql(
    CREATE TYPE pair AS (a int, b text); CREATE TYPE span AS RANGE (subtype = float8); CREATE DOMAIN small AS varchar(5);
    CREATE TYPE same AS (a int, b text);
    CREATE TABLE with_pair (id int PRIMARY KEY, v pair); CREATE TABLE with_pairs (id int PRIMARY KEY, v pair[]);
    CREATE TABLE with_span (id int PRIMARY KEY, v span); CREATE TABLE with_small (id int PRIMARY KEY, v small);
    CREATE TABLE with_same (id int PRIMARY KEY, v same);
  )sql");
  run(*destination_, R"sql(
    CREATE TYPE shift AS ENUM ('x');
    CREATE TYPE pair AS (a int, b text, c int); CREATE TYPE span AS RANGE (subtype = numeric); CREATE DOMAIN small AS varchar(4);
    CREATE TYPE same AS (a int, b text);
    CREATE TABLE with_pair (id int PRIMARY KEY, v pair);
  )sql");
  for (const char* table : {"with_pair", "with_pairs", "with_span", "with_small"}) {
    EXPECT_EQ(refusal(options({{"public", table}})), ErrorCode::destination_table_differs) << table;
  }
  Instantiation instantiation(options({{"public", "with_pair"}}), progress_, stop_);
  const auto refused = instantiation.assess(true);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("(a integer, b text) at the source and of (a integer, b text, c integer)"),
            std::string::npos)
      << refused.error().message;
  const auto done = instantiate(options({{"public", "with_same"}}));
  EXPECT_TRUE(done) << done.error().message;
}

TEST_F(InstantiationTest, WithoutInitialCopyOnlyThePositionIsRecorded) {
  run(*source_, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
  run(*destination_, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (5)");
  InstantiationOptions with = options({{"public", "t"}});
  with.initial_copy = false;
  auto done = instantiate(with);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(value(*destination_, "SELECT string_agg(id::text, ',') FROM t"), "5");
  ASSERT_EQ(copied_.size(), 1u);
  EXPECT_TRUE(copied_[0].copied_from);
}

TEST_F(InstantiationTest, ABigTableIsSplitByItsKeyAndEachRowIsCopiedOnce) {
  run(*source_,
      "CREATE TABLE t (a text COLLATE \"C\", b int, v text, PRIMARY KEY (a, b)); "
      "INSERT INTO t SELECT 'k''' || g % 100, g, repeat('v', g % 50) FROM generate_series(1, 20000) g");
  InstantiationOptions with = options({{"public", "t"}});
  with.copy_range_rows = 1500;
  with.copy_workers = 3;
  auto done = instantiate(with);
  ASSERT_TRUE(done) << done.error().message;
  expect_same_content("t");
  ProgressReport report = progress_.report();
  ASSERT_EQ(report.tables.size(), 1u);
  EXPECT_GE(report.tables[0].ranges_total, 10);
  EXPECT_EQ(report.tables[0].ranges_copied, report.tables[0].ranges_total);
  EXPECT_EQ(report.tables[0].rows_copied, 20000);
}

TEST_F(InstantiationTest, KeysAndIndexesComeAfterTheRows) {
  run(*source_, R"sql(
    CREATE TABLE parent (id int PRIMARY KEY, code text UNIQUE);
    CREATE TABLE t (id int PRIMARY KEY, code text REFERENCES parent (code), v int CHECK (v >= 0),
                    next int REFERENCES t DEFERRABLE);
    CREATE INDEX t_v ON t (v); CREATE UNIQUE INDEX t_expression ON t ((id * 2));
    INSERT INTO parent SELECT g, 'c' || g FROM generate_series(1, 100) g;
    INSERT INTO t SELECT g, 'c' || 1 + g % 100, g % 7, nullif(g - 1, 0) FROM generate_series(1, 150000) g; ANALYZE;
  )sql");
  InstantiationOptions with = options({{"public", "t"}, {"public", "parent"}});
  with.copy_range_rows = 20'000;
  Instantiation instantiation(with, progress_, stop_);
  ASSERT_TRUE(instantiation.assess(true));
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(instantiation.prepare());
  const std::string made = "SELECT count(*) FROM pg_index WHERE indrelid IN ('t'::regclass, 'parent'::regclass)";
  EXPECT_EQ(value(*destination_, made), "0");
  const auto copied = instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  ASSERT_TRUE(copied) << copied.error().message;
  // Tables of one snapshot have all but foreign keys by then; those need both their tables.
  EXPECT_EQ(value(*destination_, made), "5");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_constraint WHERE contype = 'f'"), "0");
  ProgressReport report = progress_.report();
  const TableProgress& table = *std::ranges::find(report.tables, "t", [](const auto& one) { return one.table.name; });
  EXPECT_EQ(table.state, CopyState::indexing);
  EXPECT_EQ(table.indexes_total, 6);
  EXPECT_EQ(table.indexes_built, 4);
  const auto postponed = instantiation.add_constraints(taken.slot.consistent_point);
  ASSERT_TRUE(postponed) << postponed.error().message;
  EXPECT_FALSE(*postponed);
  for (const TableProgress& one : progress_.report().tables) {
    EXPECT_EQ(one.state, CopyState::copied);
    EXPECT_EQ(one.indexes_built, one.indexes_total);
  }
  expect_same_shape({"public", "t"});
  expect_same_shape({"public", "parent"});
  expect_same_content("t");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_class WHERE relname IN ('t', 'parent') AND reltuples > 0"),
            "2");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_constraint WHERE NOT convalidated"), "0");
}

// The engine is stopped while it makes this key or index; then the next start has all of it made.
void InstantiationTest::stop_while_making(const std::string& slow, const std::string& made_before) {
  run(*source_,
      "CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE); CREATE INDEX t_slow ON t (v text_pattern_ops); "
      "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 150000) g; ANALYZE t");
  InstantiationOptions with = options({{"public", "t"}});
  with.copy_range_rows = 20'000;
  base::Lsn first_point;
  {
    Instantiation first(with, progress_, stop_);
    ASSERT_TRUE(first.assess(true));
    NamedSnapshot taken = snapshot();
    first_point = taken.slot.consistent_point;
    ASSERT_TRUE(first.prepare());
    pg::Connection other = open(destination_name_);
    run(other, "CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF current_query() LIKE '%" +
                   slow +
                   "%' THEN PERFORM pg_sleep(600); END IF; END $$; "
                   "CREATE EVENT TRIGGER waits ON ddl_command_start EXECUTE FUNCTION wait()");
    std::thread stopper([&] {
      const std::string waiting =
          "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
      while (value(other, waiting) == "0") std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stop_ = true;
    });
    const auto copied = first.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
    stopper.join();
    ASSERT_FALSE(copied);
    EXPECT_EQ(copied.error().code, ErrorCode::engine_stopping) << copied.error().message;
    run(other, "DROP EVENT TRIGGER waits");
  }
  stop_ = false;
  EXPECT_EQ(value(*destination_,
                  "SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY 1) FROM pg_index WHERE "
                  "indrelid = 't'::regclass"),
            made_before);
  run(*source_, "UPDATE t SET v = 'v' WHERE id = 5");  // comes through apply: no row is copied again

  Instantiation second(with, progress_, stop_);
  const auto assessed = second.assess(false);
  ASSERT_TRUE(assessed) << assessed.error().message;
  EXPECT_TRUE(assessed->needs_constraints);
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(second.prepare());
  ASSERT_TRUE(second.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
  const auto tables = second.copied_tables();
  EXPECT_EQ((*tables)[0].copied_to, first_point);
  const auto postponed = second.add_constraints(first_point);
  ASSERT_TRUE(postponed) << postponed.error().message;
  EXPECT_FALSE(*postponed);
  expect_same_shape({"public", "t"});
  EXPECT_EQ(value(*destination_, "SELECT v FROM t WHERE id = 5"), "v5");
}

TEST_F(InstantiationTest, AStopBetweenRowsAndKeysIsMadeGoodAtTheNextStart) { stop_while_making("t_pkey", ""); }

TEST_F(InstantiationTest, AStopAmongIndexesIsMadeGoodAtTheNextStart) { stop_while_making("t_slow", "t_pkey t_v_key"); }

TEST_F(InstantiationTest, AUniqueIndexThatTheRowsContradictIsNamedAndTheOthersAreMade) {
  run(*source_, R"sql(
    CREATE TABLE t (id int PRIMARY KEY, v text, w text); CREATE INDEX t_w ON t (w);
    CREATE TABLE u (id int PRIMARY KEY, v text UNIQUE);
    INSERT INTO t VALUES (1, 'a', 'x'), (2, 'A', 'x'); INSERT INTO u VALUES (1, 'a');
    CREATE UNIQUE INDEX t_unique ON t (v);
  )sql");
  // There is one collation at the destination by the source's name for which both are one.
  run(*source_,
      "CREATE COLLATION folded (provider = icu, locale = 'und', deterministic = true); "
      "ALTER TABLE t ALTER v TYPE text COLLATE folded");
  run(*destination_, "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
  const auto done = instantiate(options({{"public", "t"}, {"public", "u"}}));
  ASSERT_TRUE(done) << done.error().message;
  const std::vector<std::string> warnings = progress_.report().warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("\"public\".\"t\": index \"t_unique\" left out: ")) << warnings[0];
  EXPECT_EQ(value(*destination_,
                  "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'i' "
                  "AND relnamespace = 'public'::regnamespace"),
            "t_pkey t_w u_pkey u_v_key");
}

TEST_F(InstantiationTest, APrimaryKeyThatCannotBeMadeEndsTheStartWithTheTable) {
  run(*source_,
      "CREATE COLLATION folded (provider = icu, locale = 'und', deterministic = true); "
      "CREATE TABLE t (id text COLLATE folded PRIMARY KEY); INSERT INTO t VALUES ('a'), ('A')");
  run(*destination_, "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
  const auto done = instantiate(options({{"public", "t"}}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().table, "\"public\".\"t\"");
  EXPECT_NE(done.error().message.find("primary key \"t_pkey\" cannot be made"), std::string::npos)
      << done.error().message;
}

TEST_F(InstantiationTest, AStreamsOwnTablesAtTheDestinationKeepTheirKeys) {
  run(*source_,
      "CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE); CREATE INDEX t_more ON t (v, id); "
      "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 100) g");
  run(*destination_, "CREATE TABLE t (id int PRIMARY KEY, v text)");
  const auto done = instantiate(options({{"public", "t"}}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"), "1");
  expect_same_content("t");
}

TEST_F(InstantiationTest, AResumedCopyMeetsTheSourceAfterCatchUp) {
  run(*source_,
      "CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE); INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, "
      "5000) g; ANALYZE t; "
      "CREATE TABLE u (x int); ALTER TABLE u REPLICA IDENTITY FULL; INSERT INTO u SELECT generate_series(1, 10)");
  InstantiationOptions with = options({{"public", "t"}, {"public", "u"}});
  with.copy_range_rows = 1000;
  with.copy_workers = 1;
  base::Lsn first_point;
  {
    Instantiation first(with, progress_, stop_);
    ASSERT_TRUE(first.assess(true));
    NamedSnapshot taken = snapshot();
    first_point = taken.slot.consistent_point;
    ASSERT_TRUE(first.prepare());
    // The destination fails in the middle, as a crash would end it.
    run(*destination_, "ALTER TABLE t ADD CONSTRAINT boom CHECK (id < 3000)");
    auto copied = first.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
    ASSERT_FALSE(copied);
  }
  ASSERT_GT(std::stoi(value(*destination_, "SELECT count(*) FROM t")), 999);
  ASSERT_LT(std::stoi(value(*destination_, "SELECT count(*) FROM t")), 3000);
  run(*destination_, "ALTER TABLE t DROP CONSTRAINT boom");
  // Between the two snapshots: a key moves from a copied range into one that is not, and back; values change places.
  const std::string changes[] = {"UPDATE t SET id = 4500000 WHERE id = 100", "DELETE FROM t WHERE id = 4900",
                                 "UPDATE t SET v = 'gone' WHERE id = 200",   "UPDATE t SET v = 'v200' WHERE id = 4000",
                                 "INSERT INTO t VALUES (-5, 'new')",         "UPDATE t SET id = -7 WHERE id = 4800"};
  for (const std::string& change : changes) run(*source_, change);

  Instantiation second(with, progress_, stop_);
  auto assessed = second.assess(false);
  ASSERT_TRUE(assessed) << assessed.error().message;
  EXPECT_TRUE(assessed->needs_snapshot);
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(second.prepare());
  auto copied = second.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  ASSERT_TRUE(copied) << copied.error().message;
  // Apply begins now, hence the key that it uses is there; so it was for the second snapshot's ranges.
  EXPECT_EQ(value(*destination_, "SELECT string_agg(conname, ' ') FROM pg_constraint WHERE conrelid = 't'::regclass"),
            "t_pkey");
  auto tables = second.copied_tables();
  ASSERT_TRUE(tables);
  EXPECT_EQ((*tables)[0].copied_from, first_point);
  EXPECT_EQ((*tables)[0].copied_to, taken.slot.consistent_point);
  EXPECT_EQ((*tables)[1].copied_from, taken.slot.consistent_point);
  expect_same_content("u");

  // The unique constraint does not hold between the snapshots: it waits until apply is through.
  auto postponed = second.add_constraints(first_point);
  ASSERT_TRUE(postponed) << postponed.error().message;
  EXPECT_EQ(*postponed, taken.slot.consistent_point);
  // What apply does idempotently with the changes in between: remove the old key and the new one, insert the new row.
  run(*destination_,
      "DELETE FROM t WHERE id IN (100, 4500000, 4900, 200, 4000, -5, 4800, -7); "
      "INSERT INTO t VALUES (4500000, 'v100'), (200, 'gone'), (4000, 'v200'), (-5, 'new'), (-7, 'v4800')");
  postponed = second.add_constraints(taken.slot.consistent_point);
  ASSERT_TRUE(postponed) << postponed.error().message;
  EXPECT_FALSE(*postponed);
  expect_same_content("t");
  expect_same_shape({"public", "t"});
  EXPECT_TRUE(progress_.report().finished_at);

  Instantiation third(with, progress_, stop_);
  auto again = third.assess(false);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->needs_snapshot);
  EXPECT_FALSE(again->needs_constraints);
}

TEST_F(InstantiationTest, ATableThatJoinsLaterIsCopiedByItself) {
  run(*source_,
      "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE TABLE later (id int PRIMARY KEY); INSERT "
      "INTO later VALUES (2)");
  ASSERT_TRUE(instantiate(options({{"public", "t"}})));
  base::Lsn first_point = copied_[0].copied_to;
  Instantiation second(options({{"public", "t"}, {"public", "later"}}), progress_, stop_);
  auto assessed = second.assess(false);
  ASSERT_TRUE(assessed) << assessed.error().message;
  EXPECT_TRUE(assessed->needs_snapshot);
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(second.prepare());
  ASSERT_TRUE(second.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
  expect_same_content("later");
  expect_same_content("t");
  auto tables = second.copied_tables();
  ASSERT_EQ(tables->size(), 2u);
  EXPECT_EQ((*tables)[0].copied_from, taken.slot.consistent_point);
  EXPECT_EQ((*tables)[1].copied_to, first_point);
}

TEST_F(InstantiationTest, StoppingEndsTheCopyAndKeepsWhatIsDone) {
  run(*source_, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 1000)");
  Instantiation instantiation(options({{"public", "t"}}), progress_, stop_);
  ASSERT_TRUE(instantiation.assess(true));
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(instantiation.prepare());
  stop_ = true;
  auto copied = instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::engine_stopping);
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM t"), "0");
}

// Another stream makes schema thalweg at this moment: it has the lock, and nothing of it can be seen yet.
TEST_F(InstantiationTest, WaitsForAnotherStreamThatMakesTheSchema) {
  pg::Connection other = open(destination_name_);
  run(other, "BEGIN; SELECT pg_advisory_xact_lock(7520113906284133); CREATE SCHEMA thalweg");
  const int waits = destination_->backend_pid();
  base::Result<void> made;
  std::thread begins([&] { made = Bookkeeping(*destination_, "teststream").create_tables(); });
  const std::string blocked = "SELECT cardinality(pg_blocking_pids(" + std::to_string(waits) + "))";
  while (value(other, blocked) == "0") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  run(other, "COMMIT");
  begins.join();
  EXPECT_TRUE(made) << made.error().message;
}

}  // namespace
}  // namespace thalweg::instantiation
