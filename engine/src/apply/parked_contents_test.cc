#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "apply/apply_harness.h"
#include "apply/error_queue.h"
#include "apply/parked_contents.h"

namespace thalweg::apply {
namespace {

using base::ErrorCode;
using telemetry::ParkedContents;
using telemetry::ShownChange;
using telemetry::ShownValue;

std::string text_of(const ShownValue& value) {
  switch (value.state) {
    case ShownValue::State::absent:
      return "-";
    case ShownValue::State::null:
      return "NULL";
    case ShownValue::State::unchanged:
      return "unchanged";
    case ShownValue::State::raw:
      return "raw " + value.text;
    case ShownValue::State::text:
      return value.text;
  }
  return "?";
}

// "id* wanted|before|now, ..."; `*` marks the identity.
std::string text_of(const ShownChange& change) {
  std::string text = std::string(change.operation) + " " + change.table_name;
  for (const auto& column : change.columns) {
    text += " " + column.name + (column.is_identity ? "* " : " ") + text_of(column.wanted) + "|" +
            text_of(column.before) + "|" + text_of(column.now);
  }
  return text;
}

std::string found(const ShownChange& change) {
  std::string text = change.rows_found ? std::to_string(*change.rows_found) + " by" : "not looked for";
  for (const auto& column : change.found_by) text += " " + column;
  return text;
}

ParkedContents contents_of(ApplyHarness& h, int place = 0) {
  const auto id =
      h.select("SELECT id FROM thalweg.error_queue ORDER BY commit_lsn OFFSET " + std::to_string(place) + " LIMIT 1");
  auto contents = read_parked(h.connection(), "teststream", std::stoll(id));
  EXPECT_TRUE(contents) << contents.error().message;
  EXPECT_EQ(h.select("SELECT current_setting('statement_timeout')"), "0") << "the session keeps nothing of it";
  return contents ? *contents : ParkedContents{};
}

void apply_all(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
}

TEST(ParkedContents, EachKindOfChangeBesideTheRowThatIsThere) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text, n int)");
  h.run("INSERT INTO items VALUES (1, 'here', NULL), (2, 'two', 2), (3, 'three', 3)");
  h.describe("items");
  h.begin();
  h.insert("items", {1, "wanted", 10});
  h.update("items", {2, Unchanged{}, 20});
  h.update_key("items", {4, nullptr, nullptr}, {5, "five", nullptr});
  h.remove("items", {3, nullptr, nullptr});
  h.truncate("items");
  h.commit();
  apply_all(h);
  const auto contents = contents_of(h);
  EXPECT_EQ(contents.changes_total, 5U);
  ASSERT_EQ(contents.changes.size(), 5U);
  EXPECT_EQ(text_of(contents.changes[0]), "INSERT items id* 1|-|1 name wanted|-|here n 10|-|NULL");
  EXPECT_EQ(found(contents.changes[0]), "1 by id");
  EXPECT_EQ(text_of(contents.changes[1]), "UPDATE items id* 2|-|2 name unchanged|-|two n 20|-|2");
  EXPECT_EQ(text_of(contents.changes[2]), "UPDATE items id* 5|4|- name five|-|- n NULL|-|-");
  EXPECT_EQ(found(contents.changes[2]), "0 by id");
  EXPECT_EQ(text_of(contents.changes[3]), "DELETE items id* -|3|3 name -|-|three n -|-|3");
  EXPECT_EQ(text_of(contents.changes[4]), "TRUNCATE items");
  EXPECT_EQ(contents.changes[4].schema_name, "public");
  EXPECT_EQ(read_parked(h.connection(), "teststream", 999).error().code, ErrorCode::unknown_error_transaction);
  EXPECT_EQ(read_parked(h.connection(), "another", 1).error().code, ErrorCode::unknown_error_transaction);
}

TEST(ParkedContents, ARowInTheWayOfAnotherUniqueKeyIsShown) {
  ApplyHarness h;
  h.run("CREATE TABLE people (id int PRIMARY KEY, email text UNIQUE)");
  h.run("INSERT INTO people VALUES (7, 'a@example.org')");
  h.describe("people");
  h.insert_one("people", {1, "a@example.org"});
  apply_all(h);
  const auto contents = contents_of(h);
  ASSERT_EQ(contents.changes.size(), 1U);
  EXPECT_EQ(text_of(contents.changes[0]), "INSERT people id* 1|-|7 email a@example.org|-|a@example.org");
  EXPECT_EQ(found(contents.changes[0]), "1 by email");
}

TEST(ParkedContents, RowsWithoutAKeyAreFoundByAllOfThemAndCounted) {
  ApplyHarness h;
  h.run("CREATE TABLE visits (place text, n int)");
  h.run("INSERT INTO visits VALUES ('quay', 1), ('quay', 1), ('pier', 2)");
  h.describe("visits", 'f');
  h.begin();
  h.update_full("visits", {"quay", 1}, {"quay", 5});
  h.remove_full("visits", {"pier", nullptr});  // no such row
  h.insert("visits", {"lock", 3});
  h.commit();
  apply_all(h);
  const auto contents = contents_of(h);
  ASSERT_EQ(contents.changes.size(), 3U);
  EXPECT_EQ(text_of(contents.changes[0]), "UPDATE visits place quay|quay|quay n 5|1|1");
  EXPECT_EQ(found(contents.changes[0]), "2 by place n");
  EXPECT_EQ(text_of(contents.changes[1]), "DELETE visits place -|pier|- n -|NULL|-");
  EXPECT_EQ(found(contents.changes[1]), "0 by place n");
  EXPECT_EQ(found(contents.changes[2]), "not looked for");
}

// Binary values become what the server writes: a boolean 'f', a bytea its hex.
TEST(ParkedContents, BinaryValuesAreShownAsTheServerWritesThem) {
  ApplyHarness h;
  h.run("CREATE TYPE mood AS ENUM ('calm', 'rough')");
  h.run("CREATE TABLE kinds (id int PRIMARY KEY, b bool, m mood, d bytea, big text)");
  h.run("INSERT INTO kinds VALUES (1, true, 'calm', '\\x00ff', repeat('é', 600))");
  h.describe("kinds");
  std::string large;
  for (int i = 0; i < 600; ++i) large += "é";
  h.begin();
  h.insert("kinds", {1, std::string(1, '\0'), "rough", std::string("\x00\xff", 2), large});
  h.insert("kinds", {2, std::string(1, '\1'), "stormy", std::string("\x01", 1), large + "!"});
  h.commit();
  apply_all(h);
  const auto contents = contents_of(h);
  ASSERT_EQ(contents.changes.size(), 2U);
  const auto& columns = contents.changes[0].columns;
  EXPECT_EQ(text_of(columns[1].wanted) + text_of(columns[1].now), "ft");
  EXPECT_EQ(text_of(columns[2].wanted) + " " + text_of(columns[2].now), "rough calm");
  EXPECT_EQ(text_of(columns[3].wanted), "\\x00ff");
  EXPECT_EQ(columns[4].wanted.bytes, 1200U);
  EXPECT_TRUE(columns[4].wanted.cut);
  EXPECT_FALSE(columns[3].wanted.cut);
  EXPECT_EQ(columns[4].wanted.text, large.substr(0, 1024));
  EXPECT_EQ(columns[4].wanted.hash, columns[4].now.hash);
  // A label that the destination does not have is no reason to show nothing.
  const auto& strange = contents.changes[1].columns;
  EXPECT_EQ(text_of(strange[0].wanted), "2");
  EXPECT_EQ(text_of(strange[2].wanted), "raw stormy");
  EXPECT_NE(strange[4].wanted.hash, columns[4].wanted.hash);
}

TEST(ParkedContents, ATableThatIsGoneIsToldBesideTheValues) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  h.run("INSERT INTO items VALUES (1, 'here')");
  h.describe("items");
  h.insert_one("items", {1, "wanted"});
  apply_all(h);
  h.run("DROP TABLE items");
  const auto contents = contents_of(h);
  ASSERT_EQ(contents.changes.size(), 1U);
  EXPECT_EQ(text_of(contents.changes[0]), "INSERT items id 1|-|- name wanted|-|-");
  EXPECT_NE(contents.changes[0].problem.find("does not exist"), std::string::npos) << contents.changes[0].problem;
}

TEST(ParkedContents, ALockedRowsTableIsNotWaitedFor) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  h.run("INSERT INTO items VALUES (1, 'here'), (2, 'here')");
  h.describe("items");
  h.begin();
  h.insert("items", {1, "wanted"});
  h.insert("items", {2, "wanted"});
  h.commit();
  apply_all(h);
  auto other = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->script("BEGIN; LOCK TABLE items IN ACCESS EXCLUSIVE MODE"));
  const auto contents = contents_of(h);
  ASSERT_EQ(contents.changes.size(), 2U);
  EXPECT_EQ(text_of(contents.changes[0]), "INSERT items id* 1|-|- name wanted|-|-");
  EXPECT_NE(contents.changes[0].problem.find("lock timeout"), std::string::npos) << contents.changes[0].problem;
  EXPECT_NE(contents.changes[1].problem.find("not looked for"), std::string::npos) << contents.changes[1].problem;
}

// Each row can be read in time; all of them together cannot.
TEST(ParkedContents, WhatIsLeftWhenTimeIsUpIsNotLookedFor) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  h.run("INSERT INTO items SELECT id, 'here' FROM generate_series(1, 100) id");
  h.describe("items");
  h.begin();
  for (int id = 1; id <= 100; ++id) h.insert("items", {id, "wanted"});
  h.commit();
  apply_all(h);
  // Without an index each look reads them all.
  h.run(
      "ALTER TABLE items DROP CONSTRAINT items_pkey; "
      "INSERT INTO items SELECT id, 'another' FROM generate_series(101, 400000) id");
  auto looker = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(looker) << looker.error().message;
  const auto id = std::stoll(h.select("SELECT id FROM thalweg.error_queue"));
  const auto begun = std::chrono::steady_clock::now();
  const auto contents = read_parked(*looker, "teststream", id, std::chrono::seconds(1));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  ASSERT_TRUE(contents) << contents.error().message;
  ASSERT_EQ(contents->changes.size(), 100U);
  EXPECT_EQ(text_of(contents->changes[0]), "INSERT items id* 1|-|1 name wanted|-|here");
  EXPECT_EQ(contents->changes[0].problem, "");
  EXPECT_EQ(contents->changes[99].problem, "not looked for: out of time");
  EXPECT_EQ(found(contents->changes[99]), "not looked for");
}

// A tool that must say what it has not shown, and never bytes as if they were text.
TEST(ParkedContents, RawBytesAreTextOnlyWhereTheyCanBeRead) {
  ApplyHarness h;
  h.run("CREATE TYPE mood AS ENUM ('calm')");
  h.run("CREATE TABLE moods (id int PRIMARY KEY, m mood)");
  h.describe("moods");
  const std::string long_text = std::string(1023, 'x') + "\u20AC" + std::string(10, 'y');
  h.begin();
  for (const std::string& bytes : {std::string("\xFF\xFF\xFF\xFF"), std::string("two\nlines"), long_text,
                                   std::string(511, '\1'), std::string(512, '\1'), std::string(2000, '\x80')}) {
    h.insert("moods", {1, bytes});
  }
  h.commit();
  apply_all(h);
  const auto contents = contents_of(h);
  ASSERT_EQ(contents.changes.size(), 6U);
  const auto shown = [&](size_t change) -> const ShownValue& { return contents.changes[change].columns[1].wanted; };
  EXPECT_EQ(text_of(shown(0)), "raw \\xffffffff");
  EXPECT_EQ(text_of(shown(1)), "raw two\nlines");
  EXPECT_EQ(text_of(shown(2)), "raw " + long_text.substr(0, 1023));
  EXPECT_EQ(shown(3).text.size(), 2U + 2 * 511);
  for (const size_t whole : {0, 1, 3}) EXPECT_FALSE(shown(whole).cut) << whole;
  for (const size_t part : {2, 4, 5}) EXPECT_TRUE(shown(part).cut) << part;
  EXPECT_TRUE(shown(5).text.starts_with("\\x8080")) << shown(5).text;
}

TEST(ParkedContents, OnlyTheFirstChangesOfManyAreShown) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text)");
  h.run("INSERT INTO items VALUES (150, 'in the way')");
  h.describe("items");
  h.begin();
  for (int id = 1; id <= 150; ++id) h.insert("items", {id, "x"});
  h.commit();
  apply_all(h);
  const auto contents = contents_of(h);
  EXPECT_EQ(contents.changes_total, 150U);
  EXPECT_EQ(contents.changes.size(), telemetry::kParkedChangesShownMax);
}

std::string page_of(ApplyHarness& h, const telemetry::ChangesPart& part) {
  const auto contents = read_parked(h.connection(), "teststream", 1, std::chrono::seconds(9), part);
  if (!contents) return std::string(base::name_of(contents.error().code));
  if (contents->changes.empty()) return contents->next_after ? "none, and more" : "none";
  const auto& first = contents->changes.front();
  const auto& last = contents->changes.back();
  return fmt::format("{}:{} to {}:{} next {}", first.number,
                     first.columns.empty() ? "" : text_of(first.columns[0].wanted), last.number,
                     last.columns.empty() ? "" : text_of(last.columns[0].wanted), contents->next_after.value_or(0));
}

// The server reads only the pieces with the page; without a note of where they begin, all before it.
TEST(ParkedContents, ItsChangesComeInPages) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, body text); INSERT INTO items VALUES (1, 'in place')");
  h.run("CREATE TABLE gone (id int)");
  h.describe("items");
  h.describe("gone");
  h.begin();
  for (int i = 1; i <= 249; ++i) h.insert("items", {i, std::string(200'000, 'x')});
  h.truncate("gone");
  h.commit();
  apply_all(h);
  ASSERT_EQ(h.select("SELECT count(*) > 5, min(first_change) FROM thalweg.error_queue_chunk"), "t|1");
  const auto look = [&] {
    EXPECT_EQ(page_of(h, {.limit = 100}), "1:1 to 100:100 next 100");
    EXPECT_EQ(page_of(h, {.after = 100, .limit = 100}), "101:101 to 200:200 next 200");
    EXPECT_EQ(page_of(h, {.after = 200, .limit = 100}), "201:201 to 250: next 0");
    EXPECT_EQ(page_of(h, {.after = 248, .limit = 1}), "249:249 to 249:249 next 249");
    EXPECT_EQ(page_of(h, {.after = 250}), "none");
    EXPECT_EQ(page_of(h, {.only = 222}), "222:222 to 222:222 next 0");
    EXPECT_EQ(page_of(h, {.only = 251}), "unknown_error_transaction");
    EXPECT_EQ(page_of(h, {.only = 0}), "unknown_error_transaction");
    const telemetry::ParkedEdit left_out{.left_out = true, .reason = "a duplicate"};
    for (const uint64_t number : {1U, 222U, 250U}) {
      EXPECT_TRUE(edit_parked(h.connection(), "teststream", 1, number, left_out)) << number;
    }
    EXPECT_FALSE(edit_parked(h.connection(), "teststream", 1, 251, left_out));
    EXPECT_TRUE(read_parked(h.connection(), "teststream", 1, std::chrono::seconds(9), {.only = 222})->changes[0].edit);
  };
  look();
  // Nothing of those between is read.
  h.run("UPDATE thalweg.error_queue_chunk SET frames = 'unreadable' WHERE chunk = 2");
  EXPECT_EQ(page_of(h, {.after = 240, .limit = 2}), "241:241 to 242:242 next 242");
}

TEST(ParkedContents, ItsPagesDoNotNeedTheNotes) {
  for (const char* older : {"UPDATE thalweg.error_queue_chunk SET first_change = NULL",
                            "ALTER TABLE thalweg.error_queue_chunk DROP COLUMN first_change"}) {
    ApplyHarness h;
    h.run("CREATE TABLE items (id int PRIMARY KEY, body text); INSERT INTO items VALUES (1, 'in place')");
    h.describe("items");
    h.begin();
    for (int i = 1; i <= 60; ++i) h.insert("items", {i, std::string(400'000, 'x')});
    h.commit();
    apply_all(h);
    h.run(older);
    EXPECT_EQ(page_of(h, {.after = 55, .limit = 3}), "56:56 to 58:58 next 58");
    EXPECT_EQ(page_of(h, {.only = 60}), "60:60 to 60:60 next 0");
  }
}

std::string repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

// For the audit log, which keeps what is discarded.
TEST(ParkedContents, ValuesAreWholeForWhoeverAsks) {
  ApplyHarness h;
  h.run("CREATE TYPE mood AS ENUM ('calm')");
  h.run("CREATE TABLE kinds (id int PRIMARY KEY, body text, image bytea, m mood)");
  h.run("INSERT INTO kinds VALUES (1, repeat('there ', 50000), repeat('z', 3000000)::bytea, 'calm')");
  h.describe("kinds");
  const std::string body = repeated("é€", 60'000);  // 300 kB
  const std::string image(5'000'000, '\xff');
  const std::string strange(3000, 'x');
  const std::string unreadable = std::string(2000, 'x') + std::string(1, '\0') + std::string(2000, 'y');
  h.begin();
  h.insert("kinds", {1, body, image, strange});
  h.insert("kinds", {2, "short", std::string(9'000'000, '\0'), unreadable});
  h.commit();
  apply_all(h);
  const auto look = [&](bool whole) {
    auto part = read_parked(h.connection(), "teststream", 1, std::chrono::seconds(9), {.whole = whole});
    EXPECT_TRUE(part) << part.error().message;
    return part ? std::move(*part) : ParkedContents{};
  };
  const auto cut = look(false);
  ASSERT_EQ(cut.changes.size(), 2U);
  for (const auto& column : cut.changes[0].columns) {
    EXPECT_EQ(column.wanted.cut, column.name != "id") << column.name;
    EXPECT_LE(column.wanted.text.size(), telemetry::kParkedValueBytesMax);
  }
  EXPECT_TRUE(cut.changes[0].columns[1].wanted.text == body.substr(0, 1022)) << "no half a character";

  const auto whole = look(true);
  ASSERT_EQ(whole.changes.size(), 1U) << "the first is more than a page has room for";
  EXPECT_EQ(whole.next_after, 1U);
  const auto& columns = whole.changes[0].columns;
  for (const auto& column : columns) {
    EXPECT_FALSE(column.wanted.cut || column.now.cut) << column.name;
    EXPECT_EQ(column.wanted.hash, cut.changes[0].columns[&column - columns.data()].wanted.hash) << column.name;
  }
  EXPECT_TRUE(columns[1].wanted.text == body);
  EXPECT_TRUE(columns[2].wanted.text == "\\x" + repeated("ff", 5'000'000));
  EXPECT_EQ(text_of(columns[3].wanted), "raw " + strange);
  EXPECT_TRUE(columns[1].now.text == repeated("there ", 50'000));
  EXPECT_TRUE(columns[2].now.text == "\\x" + repeated("7a", 3'000'000));

  auto second = read_parked(h.connection(), "teststream", 1, std::chrono::seconds(9), {.after = 1, .whole = true});
  ASSERT_TRUE(second) << second.error().message;
  ASSERT_EQ(second->changes.size(), 1U);
  EXPECT_FALSE(second->next_after);
  const auto& more = second->changes[0].columns;
  EXPECT_TRUE(more[2].wanted.text == "\\x" + repeated("00", 9'000'000)) << "too large to be written by the server";
  EXPECT_TRUE(more[3].wanted.text.starts_with("\\x7878")) << "a part of it is no text";
  EXPECT_EQ(more[3].wanted.text.size(), 2 + 2 * unreadable.size());
  EXPECT_FALSE(more[2].wanted.cut || more[3].wanted.cut);
}

// The answer has a bound: a row with more has its first values whole, and tells that the others are not.
TEST(ParkedContents, WhatIsTooMuchForAnAnswerStaysCut) {
  ApplyHarness h;
  h.run("CREATE TABLE images (id int PRIMARY KEY, a bytea, b bytea, c bytea, d text); INSERT INTO images VALUES (1)");
  h.describe("images");
  const std::string image(8'000'000, '\1');
  h.begin();
  h.insert("images", {1, image, image, image, std::string(5000, 'd')});
  h.insert("images", {2, std::string(3000, '\2'), nullptr, nullptr, "short"});
  h.commit();
  apply_all(h);
  const auto part = read_parked(h.connection(), "teststream", 1, std::chrono::seconds(9), {.whole = true});
  ASSERT_TRUE(part) << part.error().message;
  ASSERT_EQ(part->changes.size(), 1U);
  const auto& columns = part->changes[0].columns;
  EXPECT_EQ(columns[1].wanted.text.size(), 16'000'002U);
  EXPECT_EQ(columns[2].wanted.text.size(), 16'000'002U);
  EXPECT_TRUE(columns[3].wanted.cut);
  EXPECT_LE(columns[3].wanted.text.size(), telemetry::kParkedValueBytesMax);
  EXPECT_EQ(columns[3].wanted.bytes, 16'000'002U);
  EXPECT_EQ(columns[4].wanted.text, std::string(5000, 'd'));
}

// Those of a page only are looked up, and a TRUNCATE is shown whole.
TEST(ParkedContents, OneOfManyTablesIsOpenedAtOnce) {
  ApplyHarness h;
  h.run(
      "DO $$ BEGIN FOR i IN 1..300 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY)', i); END LOOP; END $$");
  h.run("INSERT INTO t1 VALUES (1)");
  for (int i = 1; i <= 300; ++i) h.describe(fmt::format("t{}", i));
  h.begin();
  for (int i = 1; i <= 300; ++i) h.insert(fmt::format("t{}", i), {1});
  h.commit();
  apply_all(h);
  h.run("ALTER TABLE t150 RENAME TO elsewhere");
  const auto part = read_parked(h.connection(), "teststream", 1, std::chrono::seconds(9), {.after = 148, .limit = 3});
  ASSERT_TRUE(part) << part.error().message;
  ASSERT_EQ(part->changes.size(), 3U);
  EXPECT_EQ(part->changes[0].table_name, "t149");
  EXPECT_EQ(part->changes[0].rows_found, 0U);
  EXPECT_NE(part->changes[1].problem, "");
  EXPECT_EQ(part->changes[2].table_name, "t151");
}

}  // namespace
}  // namespace thalweg::apply
