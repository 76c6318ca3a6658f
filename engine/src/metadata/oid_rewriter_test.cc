#include "metadata/oid_rewriter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include <fmt/format.h>

#include "metadata/table_metadata.h"
#include "support/test_cluster.h"

// Values made by a real server's send functions in one database, rewritten for another where user types have other
// oids.

namespace thalweg::metadata {
namespace {

std::vector<std::byte> unhex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

pg::Connection open(const std::string& database) {
  auto opened = pg::Connection::open(test::shared_cluster().conninfo(database), {.search_path = "public"});
  EXPECT_TRUE(opened) << opened.error().message;
  return std::move(*opened);
}

void run(pg::Connection& connection, const std::string& sql) {
  const auto done = connection.script(sql);
  ASSERT_TRUE(done) << done.error().message << " in " << sql;
}

constexpr const char* kTypes =
    "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN small AS int CHECK (value < 100); "
    "CREATE TYPE inner_pair AS (m mood, n numeric); "
    "CREATE TYPE pair AS (a int, moods mood[], p inner_pair, s small); "
    "CREATE TYPE pair_range AS RANGE (subtype = inner_pair);";

struct Case {
  const char* type;
  const char* value;
};

TEST(OidRewriter, MakesValuesOfOneDatabaseThoseOfAnother) {
  auto admin = open("postgres");
  run(admin, "DROP DATABASE IF EXISTS rewriter_source");
  run(admin, "CREATE DATABASE rewriter_source");
  run(admin, "DROP DATABASE IF EXISTS rewriter_destination");
  run(admin, "CREATE DATABASE rewriter_destination");
  auto source = open("rewriter_source");
  auto destination = open("rewriter_destination");
  run(source, kTypes);
  run(destination, "CREATE TYPE shift AS ENUM ('x')");  // so that the oids differ
  run(destination, kTypes);
  TypeCatalog catalog;
  const Case cases[] = {
      {"mood[]", "ARRAY['sad','glad',NULL]::mood[]"},
      {"mood[]", "'{}'::mood[]"},
      {"mood[]", "'{{sad,glad},{glad,sad}}'::mood[]"},
      {"inner_pair", "ROW('sad', 1.50)::inner_pair"},
      {"pair", "ROW(1, ARRAY['sad']::mood[], ROW('glad', 'NaN')::inner_pair, 5)::pair"},
      {"pair", "ROW(NULL, NULL, NULL, NULL)::pair"},
      {"pair[]", "ARRAY[ROW(1, ARRAY['sad','glad']::mood[], ROW('glad', 2)::inner_pair, 5)::pair, NULL]"},
      {"pair_range", "pair_range(ROW('sad', 1)::inner_pair, ROW('glad', 2)::inner_pair)"},
      {"pair_range", "pair_range(NULL, ROW('glad', 2)::inner_pair)"},
      {"pair_range", "'empty'::pair_range"},
      {"pair_multirange", "pair_multirange(pair_range(ROW('sad', 1)::inner_pair, ROW('sad', 2)::inner_pair))"},
      {"small[]", "ARRAY[1, 2]::small[]"},
      {"int[]", "ARRAY[1, 2, NULL]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.value);
    const std::string type = c.type;
    const bool is_array = type.ends_with("[]");
    const std::string send = is_array                       ? "array_send"
                             : type.ends_with("multirange") ? "multirange_send"
                             : type.ends_with("range")      ? "range_send"
                                                            : "record_send";
    const std::string query = "SELECT " + send + "(" + c.value + "), '" + type + "'::regtype::oid";
    const auto sent = source.query(query);
    ASSERT_TRUE(sent) << sent.error().message;
    const auto expected = destination.query(query);
    ASSERT_TRUE(expected) << expected.error().message;
    const auto node = catalog.find(destination, {static_cast<uint32_t>(expected->integer(0, 1))});
    ASSERT_TRUE(node) << node.error().message;
    auto value = unhex(sent->text(0, 0));
    const auto done = rewrite_oids(**node, value);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(value, unhex(expected->text(0, 0)));
    // Truncated or broken values are refused, or harmless; the rewriter never reads past their end.
    for (size_t length = 0; length < value.size(); ++length) {
      std::vector<std::byte> cut(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(length));
      static_cast<void>(rewrite_oids(**node, cut));
    }
    for (size_t at = 0; at < value.size(); ++at) {
      auto broken = value;
      broken[at] = std::byte{0x7F};
      static_cast<void>(rewrite_oids(**node, broken));
    }
  }
}

TEST(TableLoader, LaysTheSourceOverTheDestination) {
  auto connection = open("postgres");
  run(connection,
      "DROP TABLE IF EXISTS child, parent; CREATE TABLE parent (b int, a int, PRIMARY KEY (a, b)); "
      "CREATE TABLE child (id int, x int NOT NULL, y int NOT NULL, z text UNIQUE, g int GENERATED ALWAYS AS (x) "
      "STORED, extra int DEFAULT 7, "
      "PRIMARY KEY (id), UNIQUE (y, x), FOREIGN KEY (y, x) REFERENCES parent (b, a))");
  lcr::TableDescription source{.relation = {1},
                               .version = 1,
                               .schema_name = "public",
                               .table_name = "child",
                               .replica_identity = 'd',
                               .columns = {}};
  source.columns = {{.name = "z", .type = {25}, .type_modifier = -1, .is_key = false},
                    {.name = "y", .type = {23}, .type_modifier = -1, .is_key = false},
                    {.name = "x", .type = {23}, .type_modifier = -1, .is_key = false},
                    {.name = "id", .type = {23}, .type_modifier = -1, .is_key = true},
                    {.name = "g", .type = {23}, .type_modifier = -1, .is_key = false}};
  std::atomic<uint64_t> generations{0};
  TableLoader loader(generations);
  const auto load = [&](const lcr::TableDescription& description) {
    SourceTable described;
    described.description = description;
    described.quoted_name = pg::quote_table(description.schema_name, description.table_name);
    return loader.load(connection, described);
  };
  const auto table = load(source);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ((*table)->identity, std::vector<uint16_t>{3});
  EXPECT_FALSE((*table)->columns[4].written);
  EXPECT_EQ((*table)->unique_keys.size(), 3U);
  ASSERT_EQ((*table)->foreign_keys.size(), 1U);
  EXPECT_EQ((*table)->foreign_keys[0].columns, (std::vector<uint16_t>{2, 1}));  // parent's index is (a, b), so x, y

  auto full = source;
  full.replica_identity = 'f';
  for (auto& column : full.columns) column.is_key = true;
  const auto by_key = load(full);
  ASSERT_TRUE(by_key);
  EXPECT_EQ((*by_key)->identity, std::vector<uint16_t>{3});

  auto other = source;
  other.columns[1].type = {20};
  const auto differs = load(other);
  ASSERT_FALSE(differs);
  EXPECT_EQ(differs.error().code, base::ErrorCode::destination_table_differs);
  EXPECT_NE(differs.error().message.find("\"y\""), std::string::npos);
  other = source;
  other.columns[1].name = "nowhere";
  EXPECT_EQ(load(other).error().code, base::ErrorCode::destination_table_differs);
  other.table_name = "nothing";
  EXPECT_EQ(load(other).error().code, base::ErrorCode::missing_table);
}

// A type that was dropped meanwhile, and one that nests deeper than the engine reads: the message has no oid.
TEST(TableLoader, NamesTheColumnWhoseTypeItCannotRead) {
  constexpr int kLevels = 66;
  auto connection = open("postgres");
  run(connection, "DROP SCHEMA IF EXISTS deep CASCADE; CREATE SCHEMA deep; CREATE TYPE deep.level_0 AS (v int)");
  for (int level = 1; level <= kLevels; ++level) {
    run(connection, fmt::format("CREATE TYPE deep.level_{} AS (v deep.level_{})", level, level - 1));
  }
  run(connection, fmt::format("CREATE TABLE deep.nested (id int PRIMARY KEY, v deep.level_{})", kLevels));
  run(connection, "CREATE TYPE deep.pair AS (v int); CREATE TABLE deep.gone (id int PRIMARY KEY, \"V\" text)");
  const auto refuse = [&](const std::string& name, const std::string& column) {
    std::atomic<uint64_t> generations{0};
    TableLoader loader(generations);
    SourceTable described;
    described.description = {.relation = {1},
                             .version = 1,
                             .schema_name = "deep",
                             .table_name = name,
                             .replica_identity = 'd',
                             .columns = {{.name = column, .type = {20'000}, .type_modifier = -1, .is_key = false}}};
    described.quoted_name = pg::quote_table("deep", name);
    const auto loaded = loader.load(connection, described);
    EXPECT_FALSE(loaded);
    if (loaded) return std::string{};
    EXPECT_EQ(loaded.error().code, base::ErrorCode::destination_table_differs);
    EXPECT_EQ(loaded.error().table, described.quoted_name);
    return loaded.error().message;
  };
  EXPECT_EQ(refuse("nested", "v"),
            "column \"v\" of \"deep\".\"nested\" cannot be read at the destination: its type contains deep.level_1 on "
            "level 65, and the engine reads types down to level 64: use one that nests less deep");
  run(connection,
      "SET allow_system_table_mods = on; UPDATE pg_attribute SET atttypid = 4000000000 "
      "WHERE attrelid = 'deep.gone'::regclass AND attname = 'V'");
  EXPECT_EQ(refuse("gone", "V"),
            "column \"V\" of \"deep\".\"gone\" cannot be read at the destination: its type does not exist at the "
            "destination any more");
  run(connection,
      "UPDATE pg_attribute SET atttypid = 4000000000 WHERE attrelid = 'deep.pair'::regclass AND attname = 'v'; "
      "UPDATE pg_attribute SET atttypid = 'deep.pair'::regtype WHERE attrelid = 'deep.gone'::regclass "
      "AND attname = 'V'");
  EXPECT_EQ(
      refuse("gone", "V"),
      "column \"V\" of \"deep\".\"gone\" cannot be read at the destination: a type within its type does not exist "
      "at the destination any more");
  run(connection,
      "UPDATE pg_attribute SET atttypid = 'int'::regtype WHERE atttypid = 4000000000 AND "
      "attrelid = 'deep.pair'::regclass; UPDATE pg_attribute SET atttypid = 'text'::regtype WHERE "
      "attrelid = 'deep.gone'::regclass AND attname = 'V'; DROP SCHEMA deep CASCADE");
}

}  // namespace
}  // namespace thalweg::metadata
