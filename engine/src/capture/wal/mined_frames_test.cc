#include <gtest/gtest.h>

#include <future>
#include <random>

#include "capture/wal/mined_stream.h"

// Frames built from the WAL beside those that logical decoding gives for the same transactions of a real server.

namespace thalweg::capture {
namespace {

class MinedFramesTest : public MinedStreamTest {};

TEST_F(MinedFramesTest, RowsSubtransactionsAndPreparedTransactions) {
  begin(
      "CREATE TABLE t (id int PRIMARY KEY, note text, amount numeric(12,3)); CREATE TABLE f (a int, b text);"
      " ALTER TABLE f REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 'before', 1)");
  run("INSERT INTO t SELECT n, repeat('x', n), n / 7.0 FROM generate_series(2, 400) n");
  run("UPDATE t SET amount = -amount WHERE id % 3 = 0");
  run("UPDATE t SET id = -id WHERE id % 5 = 0");
  run("DELETE FROM t WHERE id % 11 = 0");
  run("INSERT INTO f SELECT n, CASE WHEN n % 2 = 0 THEN 'even' END FROM generate_series(1, 50) n");
  run("UPDATE f SET b = 'odd' WHERE a % 2 = 1");
  run("DELETE FROM f WHERE a < 10");
  run("BEGIN; INSERT INTO t VALUES (1001); SAVEPOINT a; INSERT INTO t VALUES (1002); ROLLBACK TO a;"
      " INSERT INTO t VALUES (1003); SAVEPOINT b; INSERT INTO t VALUES (1004); SAVEPOINT c; INSERT INTO t VALUES "
      "(1005);"
      " RELEASE c; ROLLBACK TO b; SAVEPOINT d; INSERT INTO t VALUES (1006); COMMIT");
  run("BEGIN; INSERT INTO t VALUES (1010); ROLLBACK");
  run("BEGIN; INSERT INTO t VALUES (1011); PREPARE TRANSACTION 'p'");
  run("BEGIN; INSERT INTO t VALUES (1012); PREPARE TRANSACTION 'q'");
  run("INSERT INTO t VALUES (1013)");
  run("COMMIT PREPARED 'p'");
  run("ROLLBACK PREPARED 'q'");
  run("INSERT INTO t VALUES (1013) ON CONFLICT DO NOTHING");
  run("INSERT INTO t VALUES (1013), (1014) ON CONFLICT (id) DO UPDATE SET note = 'again'");
  run("TRUNCATE f RESTART IDENTITY");
  run("TRUNCATE t, f CASCADE");
  compare();
}

TEST_F(MinedFramesTest, TransactionsThatComeInPieces) {
  allow_little_memory();
  begin(
      "CREATE TABLE t (id int PRIMARY KEY, note text); CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY "
      "FULL; INSERT INTO f VALUES (0, 'before'); INSERT INTO t VALUES (0, 'before')");
  pg::Connection other = connect();
  run("BEGIN; INSERT INTO t SELECT n, repeat(md5(n::text), 200) FROM generate_series(1, 20) n");
  MinedSource::value(other, "BEGIN; INSERT INTO f SELECT n, 'of the other' FROM generate_series(1, 20) n");
  run("SAVEPOINT a; UPDATE t SET note = 'gone'; SAVEPOINT b; DELETE FROM t WHERE id > 10; RELEASE b; ROLLBACK TO a");
  MinedSource::value(other, "SAVEPOINT c; DELETE FROM f WHERE a < 10; RELEASE c; COMMIT");
  run("SAVEPOINT d; TRUNCATE f; SAVEPOINT e; INSERT INTO t VALUES (100, 'kept'); RELEASE e; RELEASE d; COMMIT");
  run("BEGIN; INSERT INTO t VALUES (200, 'gone'); ROLLBACK");
  run("BEGIN; INSERT INTO t VALUES (201, 'prepared'); PREPARE TRANSACTION 'p'");
  run("INSERT INTO t VALUES (202) ON CONFLICT DO NOTHING");
  EXPECT_FALSE(builder().first_open()) << "nothing was read yet";
  run("COMMIT PREPARED 'p'");
  compare();
  EXPECT_EQ(in_pieces(), 2U);
  EXPECT_EQ(builder().held_bytes(), 0U);
  EXPECT_FALSE(builder().first_open());
  MinedSource::value(other, "BEGIN; INSERT INTO f VALUES (1)");
  const base::Lsn before = *base::parse_lsn(MinedSource::value(session(), "SELECT pg_current_wal_insert_lsn()"));
  run("INSERT INTO t VALUES (300)");
  catch_up();
  EXPECT_TRUE(builder().first_open());
  EXPECT_LT(builder().first_open(), before);
}

// Type aclitem has no binary form: no row with one can be sent.
TEST_F(MinedFramesTest, WhatCannotBeReadCountsOnceItIsCommitted) {
  begin("CREATE TABLE t (id int PRIMARY KEY)");
  run("BEGIN; ALTER TABLE t ADD COLUMN a aclitem; INSERT INTO t VALUES (1), (2); ROLLBACK");
  run("BEGIN; INSERT INTO t VALUES (3); SAVEPOINT s; ALTER TABLE t ADD COLUMN a aclitem; INSERT INTO t VALUES (4);"
      " ROLLBACK TO s; INSERT INTO t VALUES (5); COMMIT");
  compare();
  run("ALTER TABLE t ADD COLUMN a aclitem");
  run("INSERT INTO t VALUES (6)");
  const auto caught_up = source().catch_up();
  EXPECT_FALSE(caught_up);
  EXPECT_NE(std::string{caught_up.message()}.find("column a"), std::string::npos) << caught_up.message();
}

TEST_F(MinedFramesTest, ValuesOutsideOfTheirRows) {
  begin(
      "CREATE TABLE t (id int PRIMARY KEY, a text, b text, c bytea); ALTER TABLE t ALTER b SET STORAGE EXTERNAL;"
      " CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY FULL; ALTER TABLE t ALTER c SET COMPRESSION " +
      lz4());
  run("INSERT INTO t SELECT n, repeat(md5(n::text), n * 20), repeat(md5(n::text), n * 30),"
      " decode(repeat(md5(n::text), n * 40), 'hex') FROM generate_series(1, 40) n");
  run("UPDATE t SET a = a || 'x' WHERE id % 2 = 0");
  run("UPDATE t SET id = id + 1000 WHERE id % 3 = 0");
  run("UPDATE t SET b = NULL WHERE id % 7 = 0");
  run("INSERT INTO f SELECT n, repeat(md5(n::text), 200) FROM generate_series(1, 10) n");
  run("UPDATE f SET a = a + 1");
  run("DELETE FROM f WHERE a > 5");
  run("COPY t FROM PROGRAM 'for i in 2001 2002 2003; do printf \"%s\\t\" $i; head -c 60000 /dev/urandom | base64 -w0;"
      " printf \"\\t%s\\t%s\\n\" b c; done'");
  run("BEGIN; INSERT INTO t VALUES (3001, repeat('y', 100000), repeat('z', 5000)); SAVEPOINT a;"
      " INSERT INTO t VALUES (3002, repeat('y', 100000), repeat('w', 5000)); ROLLBACK TO a;"
      " INSERT INTO t VALUES (3003, repeat('v', 100000), repeat('v', 5000)); COMMIT");
  compare();
}

TEST_F(MinedFramesTest, ChangesOfTheSchemaBetweenRowsAndWithinTransactions) {
  begin("CREATE TABLE t (id int PRIMARY KEY, a text)");
  run("INSERT INTO t VALUES (1, 'one')");
  run("BEGIN; ALTER TABLE t ADD COLUMN b int; INSERT INTO t VALUES (2, 'two', 2); SAVEPOINT s; ALTER TABLE t DROP "
      "COLUMN a;"
      " INSERT INTO t VALUES (3, 3); ROLLBACK TO s; INSERT INTO t VALUES (4, 'four', 4); COMMIT");
  run("BEGIN; CREATE TABLE n (id int PRIMARY KEY); INSERT INTO n VALUES (1); ALTER TABLE n ADD COLUMN x text DEFAULT "
      "'d';"
      " INSERT INTO n VALUES (2); COMMIT");
  run("ALTER TABLE t ALTER b TYPE bigint");
  run("INSERT INTO t VALUES (5, 'five', 5)");
  run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (6, 'six', 6); COMMIT");
  run("CREATE TABLE copied AS SELECT * FROM t");
  run("ALTER TABLE t RENAME TO renamed; INSERT INTO renamed VALUES (7, 'seven', 7)");
  run("VACUUM FULL renamed");
  run("INSERT INTO renamed VALUES (8, 'eight', 8)");
  run("ALTER TABLE renamed REPLICA IDENTITY FULL; UPDATE renamed SET a = 'x' WHERE id = 8");
  run("CREATE MATERIALIZED VIEW m AS SELECT * FROM renamed; REFRESH MATERIALIZED VIEW m");
  run("CREATE UNLOGGED TABLE u (id int); INSERT INTO u VALUES (1); CREATE TEMP TABLE v (id int); INSERT INTO v VALUES "
      "(1)");
  compare();
}

TEST_F(MinedFramesTest, ValuesOfTheTypes) {
  run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN short AS text CHECK (length(value) < 10)");
  begin(
      "CREATE TABLE v (id serial PRIMARY KEY, a bool, b bytea, c \"char\", d name, e int8, f int2, g oid, h json, i "
      "point,"
      " j lseg, k box, l line, m float4, n float8, o circle, p macaddr, q macaddr8, r money, s char(7), t varchar, u "
      "date,"
      " v time, w timestamp, x timestamptz, y interval, z timetz, aa bit(5), ab varbit, ac numeric, ad uuid, ae pg_lsn,"
      " af xid8, ag tid, ah mood, ai short, aj int[], ak text[], al numeric[], am mood[], ao timestamptz[], ap "
      "\"char\"[],"
      " an bool GENERATED ALWAYS AS (f > 3) STORED)");
  run("INSERT INTO v SELECT nextval('v_id_seq'), n % 2 = 0, decode(md5(n::text), 'hex'), chr(n % 90 + 33)::\"char\", "
      "'name ' || n,"
      " n * 1234567890123, n % 30000, n, '{\"n\": 1}', point(n, -n / 3.0), lseg(point(1, n), point(n, 2)),"
      " box(point(n, n), point(0, 1)), line(point(0, 0), point(1, n)), n / 3.0, -n / 7.0, circle(point(1, 2), n),"
      " '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', n::numeric::money, 'c' || n % 1000, repeat('v', n % 200),"
      " '2000-01-01'::date + n * 100, make_time(n % 24, n % 60, 1.5), '1999-01-01'::timestamp + n * interval '1 hour',"
      " 'infinity', make_interval(n % 9, 1, 2, 3, 4), '12:00:00+05:30', B'10101', (n % 100)::bit(9)::varbit,"
      " (n - 500) * 1000000.12345678 ^ (n % 9), gen_random_uuid(), '16/B374D848', n::text::xid8, '(3,4)',"
      " CASE n % 2 WHEN 0 THEN 'sad' ELSE 'ok' END::mood, 'short', ARRAY[n, NULL, -n], ARRAY['a', repeat('b', n % "
      "300), NULL],"
      " ARRAY[[1.5, n], [3, 'NaN']]::numeric[], ARRAY['ok', 'sad']::mood[], ARRAY[now(), NULL], ARRAY['x'::\"char\"]"
      " FROM generate_series(1, 1000) n");
  run("INSERT INTO v (ac) VALUES ('NaN'), ('Infinity'), ('-Infinity'), (0), (0.000), (1e100), (-1e-100), (10000), "
      "(0.0001)");
  run("INSERT INTO v (aj, ak) VALUES ('{}', '{}'), ('[2:3]={1,2}', '{{a,b},{c,d}}')");
  compare();
}

// Transactions of several sessions at once, with subtransactions, values outside of their rows, and changes of schemas.
TEST_F(MinedFramesTest, RandomTransactions) {
  begin(
      "CREATE TABLE a (id int PRIMARY KEY, x text, y int); CREATE TABLE b (id int, x text, y int);"
      " ALTER TABLE b REPLICA IDENTITY FULL; CREATE TABLE c (id bigint PRIMARY KEY, x text COMPRESSION " +
      lz4() + ", y int)");
  std::mt19937 random(7);
  const auto pick = [&](uint32_t below) { return random() % below; };
  std::vector<pg::Connection> sessions;
  std::vector<bool> open(4, false);
  for (size_t i = 0; i < open.size(); ++i) sessions.push_back(connect());
  for (int step = 0; step < 3000; ++step) {
    const size_t i = pick(static_cast<uint32_t>(open.size()));
    const std::string table(1, "abc"[pick(3)]);
    const uint32_t id = pick(500) * 4 + static_cast<uint32_t>(i);  // sessions do not wait for each other
    std::string sql;
    switch (pick(14)) {
      case 0:
        sql = open[i] ? (pick(3) == 0 ? "ROLLBACK" : "COMMIT") : "BEGIN";
        break;
      case 1:
        sql = open[i] ? "SAVEPOINT s" : "BEGIN";
        break;
      case 2:
        sql = open[i] ? "ROLLBACK TO s" : "CHECKPOINT";
        break;
      case 3:
        sql = fmt::format("UPDATE {} SET x = repeat(md5(x), {}) WHERE id = {}", table, pick(300), id);
        break;
      case 4:
        sql = fmt::format("UPDATE {} SET id = id + 2000 WHERE id = {}", table, id);
        break;
      case 5:
        sql = fmt::format("DELETE FROM {} WHERE id = {}", table, id);
        break;
      case 6:
        sql = fmt::format("UPDATE {} SET y = coalesce(y, 0) + 1 WHERE id = {}", table, id);
        break;
      case 7:
        sql = fmt::format("INSERT INTO {} (id) VALUES ({}) ON CONFLICT DO NOTHING", table, id);
        break;
      case 8:
        if (pick(4) != 0) continue;
        sql = open[i] ? fmt::format("PREPARE TRANSACTION 'p{}'", step) : "VACUUM " + table;
        break;
      case 9:
        if (pick(5) != 0) continue;
        sql = fmt::format("ALTER TABLE {0} ADD COLUMN z{1} int; ALTER TABLE {0} DROP COLUMN IF EXISTS z{2}", table,
                          pick(6), pick(6));
        break;
      default:
        sql = fmt::format(
            "INSERT INTO {} (id, x, y) SELECT n, repeat(md5(n::text), {}), n FROM generate_series({}, {}, 4) n", table,
            pick(200), id, id + pick(30) * 4);
    }
    const auto done = sessions[i].script("SET lock_timeout = '50ms'; " + sql);
    if (sql == "BEGIN") open[i] = true;
    if (done && (sql == "COMMIT" || sql == "ROLLBACK" || sql.starts_with("PREPARE"))) {
      open[i] = false;
      if (sql.starts_with("PREPARE") && pick(2) == 0) (void)sessions[i].script("COMMIT PREPARED '" + sql.substr(21));
    }
    if (!done && open[i] && !sessions[i].script("ROLLBACK TO s")) {
      (void)sessions[i].script("ROLLBACK");
      open[i] = false;
    }
  }
  for (pg::Connection& connection : sessions) (void)connection.script("ROLLBACK");
  const auto prepared = session().query("SELECT gid FROM pg_prepared_xacts");
  ASSERT_TRUE(prepared);
  for (size_t i = 0; i < prepared->size(); ++i) run("ROLLBACK PREPARED '" + std::string{prepared->text(i, 0)} + "'");
  compare();
}

TEST_F(MinedFramesTest, StartsWhileTransactionsAreOpen) {
  pg::Connection first = connect();
  pg::Connection second = connect();
  pg::Connection third = connect();
  run("CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t SELECT n, 'before' FROM generate_series(1, 9) n");
  run("CREATE PUBLICATION everything FOR ALL TABLES");
  keep_wal();
  MinedSource::value(first, "BEGIN; INSERT INTO t VALUES (101, 'of the first')");
  auto contents = std::async(std::launch::async, [&] { return first_contents(); });
  source().wait_for_slot(first);
  MinedSource::value(second, "BEGIN; INSERT INTO t VALUES (102, 'of the second')");
  MinedSource::value(first, "COMMIT");
  source().wait_for_slot(second);
  // Its rows are in the WAL before the first contents, and it commits behind them.
  MinedSource::value(third,
                     "BEGIN; INSERT INTO t VALUES (103, 'of the third'); SAVEPOINT a; INSERT INTO t VALUES (104);"
                     " ROLLBACK TO a; UPDATE t SET a = 'after' WHERE id = 1");
  MinedSource::value(second, "COMMIT");
  start(contents.get());
  MinedSource::value(third, "DELETE FROM t WHERE id = 2; COMMIT");
  catch_up();
  size_t rows = 0;
  for (const auto& [header, body] : mined())
    rows += header.starts_with("kind 3") || header.starts_with("kind 4") || header.starts_with("kind 5");
  EXPECT_EQ(rows, 3U) << "those of the third; what had committed before is in the copy";
}

// The record at the position itself ends a transaction: its subtransactions' rows, which came before, are its own.
TEST_F(MinedFramesTest, StartsWhereATransactionCommits) {
  pg::Connection first = connect();
  pg::Connection second = connect();
  pg::Connection third = connect();
  run("CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t SELECT n, 'before' FROM generate_series(1, 9) n");
  run("CREATE PUBLICATION everything FOR ALL TABLES; CHECKPOINT");
  keep_wal();
  MinedSource::value(first, "BEGIN; INSERT INTO t VALUES (101)");
  auto contents =
      std::async(std::launch::async, [&] { return first_contents([&] { MinedSource::value(third, "COMMIT"); }); });
  source().wait_for_slot(first);
  MinedSource::value(second, "BEGIN; INSERT INTO t VALUES (102)");
  MinedSource::value(first, "COMMIT");
  source().wait_for_slot(second);
  MinedSource::value(third,
                     "BEGIN; INSERT INTO t VALUES (103); SAVEPOINT a; INSERT INTO t VALUES (104); RELEASE a;"
                     " CREATE TEMP TABLE own AS SELECT 1; SAVEPOINT b; DELETE FROM t WHERE id = 1");
  MinedSource::value(second, "COMMIT");
  start(contents.get());
  catch_up();
  size_t rows = 0;
  for (const auto& [header, body] : mined()) rows += header.starts_with("kind 3") || header.starts_with("kind 5");
  EXPECT_EQ(rows, 3U) << "those of the third, and of its subtransactions";
}

// How the rows were written that came before, is not to be known.
TEST_F(MinedFramesTest, StartsNotWhereACapturedTableIsBeingChanged) {
  pg::Connection first = connect();
  pg::Connection second = connect();
  pg::Connection third = connect();
  pg::Connection fourth = connect();
  run("CREATE TABLE t (id int PRIMARY KEY, a text); CREATE TABLE u (id int PRIMARY KEY); CREATE TABLE v (id int);"
      " INSERT INTO v VALUES (1)");
  run("CREATE PUBLICATION everything FOR ALL TABLES; CHECKPOINT");
  keep_wal();
  MinedSource::value(first, "BEGIN; INSERT INTO u VALUES (101)");
  auto contents = std::async(std::launch::async, [&] { return first_contents(); });
  source().wait_for_slot(first);
  MinedSource::value(second, "BEGIN; INSERT INTO u VALUES (102)");
  MinedSource::value(first, "COMMIT");
  source().wait_for_slot(second);
  MinedSource::value(third, "BEGIN; INSERT INTO t VALUES (103); ALTER TABLE t ADD COLUMN b int");
  MinedSource::value(fourth, "BEGIN; INSERT INTO v VALUES (2); TRUNCATE v; INSERT INTO v VALUES (3)");
  MinedSource::value(second, "COMMIT");
  start(contents.get());
  MinedSource::value(fourth, "ROLLBACK");
  catch_up();
  EXPECT_FALSE(refusal()) << "what is rolled back does not count";
  MinedSource::value(third, "COMMIT");
  EXPECT_FALSE(source().catch_up());
  ASSERT_TRUE(refusal());
  EXPECT_EQ(refusal()->code, base::ErrorCode::wal_incomplete) << refusal()->message;
  EXPECT_EQ(refusal()->table, "\"public\".\"t\"");
}

}  // namespace
}  // namespace thalweg::capture
