#include <gtest/gtest.h>

#include "capture/wal/mined_stream.h"

// Values whose form the catalogs decide: of rows that are older than a column, of types that change, of extensions; and
// what is refused.

namespace thalweg::capture {
namespace {

class MinedTypesTest : public MinedStreamTest {
 protected:
  // The catalog as it is now is told by SQL only: nothing is left that would bring its pages into the WAL.
  void see_no_images() {
    run("VACUUM (FREEZE) pg_attribute");
    run("CHECKPOINT");
  }
  // The last statement's rows are refused, by the names of its table and column.
  void expect_refused(base::ErrorCode code, const std::string& table, const std::string& column) {
    ASSERT_FALSE(source().catch_up());
    ASSERT_TRUE(refusal());
    EXPECT_EQ(refusal()->code, code);
    EXPECT_EQ(refusal()->table, table);
    EXPECT_NE(refusal()->message.find(column), std::string::npos) << refusal()->message;
  }
};

TEST_F(MinedTypesTest, RowsThatAreOlderThanAColumn) {
  run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN short AS text; CREATE TYPE pair AS (a int, b text)");
  run("CREATE TABLE m (id int); ALTER TABLE m REPLICA IDENTITY FULL; INSERT INTO m SELECT generate_series(1, 200);"
      "ALTER TABLE m ADD a int DEFAULT 7, ADD b text DEFAULT 'x', ADD c text DEFAULT repeat('long ', 700),"
      " ADD d mood DEFAULT 'ok', ADD e numeric DEFAULT 1.50, ADD f jsonb DEFAULT '{\"a\": [1, 2.0]}',"
      " ADD g int[] DEFAULT '{1,NULL}', ADD h short DEFAULT 's', ADD i int8range DEFAULT '[1,4)', ADD j inet DEFAULT"
      " '10.0.0.1', ADD k timestamptz DEFAULT now(), ADD l \"char\" DEFAULT 'c', ADD n bool DEFAULT true, ADD o uuid"
      " DEFAULT '00000000-0000-0000-0000-00000000000a', ADD p name DEFAULT 'n'");
  see_no_images();
  begin("");
  run("DELETE FROM m WHERE id < 10");
  run("UPDATE m SET id = -id WHERE id < 20");
  // Rows of the catalog that SQL told are on a page that comes now, and with it the values as they are stored.
  run("ALTER TABLE m ADD q pair DEFAULT ROW(1, 'one')::pair, ADD r pair[] DEFAULT ARRAY[ROW(1, 'one')::pair],"
      " ADD s mood[] DEFAULT '{ok,sad}', ADD t text DEFAULT repeat('second ', 500), ADD u int, ADD w xml DEFAULT "
      "'<a/>'");
  run("ALTER TABLE m ALTER a SET DEFAULT 8, ALTER b DROP DEFAULT");
  run("DELETE FROM m WHERE id < 30");
  run("INSERT INTO m (id) VALUES (1001)");
  run("INSERT INTO m SELECT * FROM m WHERE id BETWEEN 30 AND 35");
  run("UPDATE m SET a = NULL WHERE id < 40");
  run("BEGIN; ALTER TABLE m ADD x int DEFAULT 11; DELETE FROM m WHERE id < 50; SAVEPOINT a; ALTER TABLE m ADD y text"
      " DEFAULT 'y'; DELETE FROM m WHERE id < 60; ROLLBACK TO a; DELETE FROM m WHERE id < 70; COMMIT");
  run("ALTER TABLE m DROP COLUMN c; DELETE FROM m WHERE id < 80");
  run("ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy'; DELETE FROM m WHERE id < 90");
  run("ALTER TABLE m RENAME COLUMN a TO aa");
  run("VACUUM FULL pg_attribute");
  run("DELETE FROM m WHERE id < 100");
  run("VACUUM FULL m");
  run("DELETE FROM m WHERE id < 110");
  compare();
}

TEST_F(MinedTypesTest, CompositesOfTypesThatChange) {
  run("CREATE TYPE pair AS (a int, b text, c numeric); CREATE TYPE nest AS (p pair, q pair[], r text)");
  run("CREATE TABLE rowtype (x int, y text); CREATE DOMAIN of_pair AS pair");
  begin(
      "CREATE TABLE c (id int PRIMARY KEY, n nest, p of_pair, r rowtype, s rowtype[]); ALTER TABLE c REPLICA IDENTITY "
      "FULL;"
      "CREATE TABLE plain (t text); CREATE TABLE far (t text); ALTER TABLE far ALTER t SET STORAGE EXTERNAL");
  const auto add = [&](int from) {
    run(fmt::format(
        "INSERT INTO c (id, n, p, r, s) SELECT n, ROW(ROW(n, 'b', 1.5)::pair, ARRAY[ROW(1, repeat('x', n), NULL)"
        "::pair, NULL], 'r')::nest, ROW(n, NULL, n)::pair, ROW(n, 'y')::rowtype, ARRAY[ROW(n, NULL)::rowtype]"
        " FROM generate_series({}, {}) n",
        from, from + 20));
  };
  add(0);
  run("ALTER TYPE pair DROP ATTRIBUTE a");
  run("UPDATE c SET id = id + 1000 WHERE id < 3");
  run("ALTER TYPE pair ADD ATTRIBUTE d date; ALTER TABLE rowtype ADD z int");
  run("UPDATE c SET id = id + 1000 WHERE id < 6");
  run("INSERT INTO c SELECT 100, ROW(ROW('b', 1, '2000-01-01')::pair, NULL, NULL)::nest, NULL, ROW(1, 'y', "
      "8)::rowtype, "
      "NULL");
  run("ALTER TABLE rowtype DROP COLUMN x, ADD w text");
  run("UPDATE c SET id = id + 1000 WHERE id < 10");
  run("DELETE FROM c WHERE id > 1000");
  // Attributes that were compressed, or stored elsewhere, before they became a part of a composite.
  run("INSERT INTO plain VALUES (repeat('compressed ', 300)); INSERT INTO far VALUES (repeat('elsewhere ', 900))");
  run("INSERT INTO c SELECT 200, ROW(ROW(t, 1, NULL)::pair, ARRAY[ROW(t, 2, NULL)::pair], t)::nest, ROW(t, 1, "
      "NULL)::pair"
      " FROM plain");
  run("INSERT INTO c SELECT 201, ROW(ROW(t, 1, NULL)::pair, ARRAY[ROW(t, 2, NULL)::pair], t)::nest, ROW(t, 1, "
      "NULL)::pair"
      " FROM far");
  run("UPDATE c SET id = id + 1000 WHERE id > 100");
  compare();
}

TEST_F(MinedTypesTest, TypesOfExtensionsThatComeLater) {
  begin("CREATE SCHEMA s; CREATE TABLE t (id int)");
  run("BEGIN; CREATE EXTENSION hstore SCHEMA s; CREATE TABLE h (v s.hstore); INSERT INTO h VALUES ('a=>1,b=>NULL'); "
      "COMMIT");
  run("CREATE EXTENSION citext; ALTER TABLE t ADD c citext DEFAULT 'C'; INSERT INTO t VALUES (1)");
  run("ALTER EXTENSION hstore SET SCHEMA public; INSERT INTO h VALUES ('c=>\"\"')");
  run("ALTER TABLE t ADD e citext[] DEFAULT '{a,B}'; INSERT INTO t VALUES (2)");
  compare();
}

TEST_F(MinedTypesTest, RefusesTypesThatAreNotKnown) {
  begin("CREATE EXTENSION seg; CREATE TABLE fine (id int); CREATE TABLE refused (id int, \"a segment\" seg[])");
  run("INSERT INTO fine VALUES (1)");
  compare();
  run("INSERT INTO refused VALUES (1)");
  expect_refused(base::ErrorCode::unsupported_table, "\"public\".\"refused\"", "a segment");
}

// It has the extension's name and place, and is not the extension's.
TEST_F(MinedTypesTest, RefusesATypeThatHasTheNameOfAnExtensions) {
  begin("CREATE SCHEMA s; CREATE EXTENSION hstore SCHEMA s; CREATE EXTENSION lo");
  run("CREATE TYPE hstore; CREATE FUNCTION i(cstring) RETURNS hstore LANGUAGE internal IMMUTABLE STRICT AS 'textin';"
      "CREATE FUNCTION o(hstore) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';"
      "CREATE TYPE hstore (INPUT = i, OUTPUT = o, LIKE = text); CREATE TABLE refused (h hstore)");
  run("INSERT INTO refused VALUES ('a')");
  expect_refused(base::ErrorCode::unsupported_table, "\"public\".\"refused\"", "column h");
}

// SQL told the value when the capture began; its label has another name now.
TEST_F(MinedTypesTest, RefusesAnOldValueWhoseTypeHasChanged) {
  run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE refused (id int); INSERT INTO refused VALUES (1), (2);"
      " ALTER TABLE refused ADD m mood DEFAULT 'ok', REPLICA IDENTITY FULL");
  see_no_images();
  begin("");
  run("DELETE FROM refused WHERE id = 1");
  compare();
  run("ALTER TYPE mood RENAME VALUE 'ok' TO 'well'");
  run("DELETE FROM refused");
  expect_refused(base::ErrorCode::protocol_violation, "\"public\".\"refused\"", "column m");
}

// A default without a form to be sent in does not keep a capture from starting.
TEST_F(MinedTypesTest, StartsBesideOldValuesThatCannotBeSent) {
  begin(
      "CREATE TYPE holder AS (a aclitem); CREATE TABLE fine (id int); CREATE TABLE refused (id int);"
      " INSERT INTO refused VALUES (1); ALTER TABLE refused ADD a holder[] DEFAULT ARRAY[ROW('=r/postgres')::holder]");
  run("INSERT INTO fine VALUES (1)");
  compare();
  run("INSERT INTO refused VALUES (2)");
  expect_refused(base::ErrorCode::unsupported_table, "\"public\".\"refused\"", "column a");
}

}  // namespace
}  // namespace thalweg::capture
