#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apply/apply_harness.h"
#include "apply/error_queue.h"
#include "apply/parked_contents.h"
#include "apply/parked_edits.h"

// Changes of parked transactions that operators leave out, or give other values.

namespace thalweg::apply {
namespace {

using base::ErrorCode;
using telemetry::ParkedEdit;

const ParkedEdit kLeftOut{.left_out = true, .reason = "a duplicate"};

// Parks a transaction of six changes, of which the first and the second do not fit, and one that waits behind it. Their
// ids are 1 and 2.
void park_two(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name varchar(8), n int); CREATE TABLE gone (id int)");
  h.run("INSERT INTO items VALUES (1, 'in place', 1), (3, 'three', 3), (4, 'four', 4); INSERT INTO gone VALUES (1)");
  h.describe("items");
  h.describe("gone");
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "much too long", 20});
  h.update("items", {3, Unchanged{}, 30});
  h.remove("items", {4, nullptr, nullptr});
  h.truncate("gone");
  h.insert("items", {6, "six", 60});
  h.commit();
  h.begin();
  h.update("items", {2, "again", 22});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  ASSERT_EQ(h.select("SELECT id, code FROM thalweg.error_queue ORDER BY id"), "1|apply_conflict,2|parked_behind");
}

base::Result<void> edit(ApplyHarness& h, uint64_t number, const std::optional<ParkedEdit>& edit, int64_t id = 1) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  if (!opened) return std::unexpected(opened.error());
  return edit_parked(*opened, "teststream", id, number, edit);
}

base::Result<DryRun> dry_run(ApplyHarness& h, int64_t id) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  if (!opened) return std::unexpected(opened.error());
  return dry_run_parked(std::move(*opened), "teststream", id);
}

std::string items(ApplyHarness& h) { return h.select("SELECT id, name, n FROM items ORDER BY id"); }

TEST(ParkedEdits, RowsAreLeftOutAndTheOthersAppliedInOneTransaction) {
  ApplyHarness h;
  park_two(h);
  const std::string frames = h.select("SELECT error_id, md5(frames) FROM thalweg.error_queue_chunk ORDER BY error_id");
  for (const uint64_t number : {1U, 4U, 5U}) ASSERT_TRUE(edit(h, number, kLeftOut));
  auto tried = dry_run(h, 1);
  ASSERT_TRUE(tried && tried->error);
  EXPECT_EQ(tried->error->sqlstate, "22001") << tried->error->message;
  ASSERT_TRUE(edit(h, 2, ParkedEdit{.left_out = true, .reason = "too long"}));
  tried = dry_run(h, 1);
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_FALSE(tried->error) << tried->error->message;
  EXPECT_EQ(std::pair(tried->edited, tried->left_out), std::pair(uint64_t{0}, uint64_t{4}));
  EXPECT_EQ(items(h), "1|in place|1,3|three|3,4|four|4") << "nothing of the dry run stays";
  EXPECT_EQ(h.select("SELECT error_id, md5(frames) FROM thalweg.error_queue_chunk ORDER BY error_id"), frames);
  const auto listed = list_parked(h.connection(), "teststream", {.roots_only = true});
  EXPECT_EQ(std::pair((*listed)[0].edited, (*listed)[0].left_out), std::pair(uint64_t{0}, uint64_t{4}));

  // The transaction behind it finds no row 2, and says so.
  const auto executed = h.execute_error(1);
  ASSERT_FALSE(executed);
  EXPECT_EQ(items(h), "1|in place|1,3|three|30,4|four|4,6|six|60");
  EXPECT_EQ(h.select("SELECT id FROM gone"), "1");
  EXPECT_EQ(h.select("SELECT id, code FROM thalweg.error_queue"), "2|apply_conflict");
}

TEST(ParkedEdits, OtherValuesAreAppliedAndTheOriginalStaysBesideThem) {
  ApplyHarness h;
  park_two(h);
  ASSERT_TRUE(edit(h, 1, ParkedEdit{.values = {{"id", "5"}, {"n", std::nullopt}}, .reason = "another key"}));
  ASSERT_TRUE(edit(h, 2, ParkedEdit{.values = {{"name", "still much too long"}}, .reason = "shorter"}));
  auto tried = dry_run(h, 1);
  ASSERT_TRUE(tried && tried->error);
  EXPECT_EQ(tried->error->sqlstate, "22001");
  ASSERT_TRUE(edit(h, 2, ParkedEdit{.values = {{"name", "two"}, {"n", "twenty"}}, .reason = "shorter"}));
  tried = dry_run(h, 1);
  ASSERT_TRUE(tried && tried->error);
  EXPECT_EQ(tried->error->sqlstate, "22P02") << "the destination's type reads it: " << tried->error->message;
  ASSERT_TRUE(edit(h, 2, ParkedEdit{.values = {{"name", "two"}}, .reason = "shorter"}));
  // The key of an UPDATE: it moves the row that it would have changed. Also a value that the source did not send.
  ASSERT_TRUE(edit(h, 3, ParkedEdit{.values = {{"id", "33"}, {"name", "moved"}}, .reason = "moved"}));
  const auto contents = read_parked(h.connection(), "teststream", 1);
  ASSERT_TRUE(contents) << contents.error().message;
  const auto& second = contents->changes[1];
  EXPECT_EQ(second.number, 2U);
  EXPECT_EQ(second.columns[1].wanted.text, "much too long");
  EXPECT_EQ(second.edit->values.at("name"), "two");
  EXPECT_EQ(second.edit->reason, "shorter");
  EXPECT_FALSE(contents->changes[5].edit);
  tried = dry_run(h, 1);
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_FALSE(tried->error) << tried->error->message;
  EXPECT_EQ(std::pair(tried->edited, tried->left_out), std::pair(uint64_t{3}, uint64_t{0}));

  const auto executed = h.execute_error(1);
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(items(h), "1|in place|1,2|again|22,5|one|NULL,6|six|60,33|moved|30");
  EXPECT_EQ(h.select("SELECT count(*) FROM gone"), "0");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue_chunk"), "0");
}

TEST(ParkedEdits, OneIsTakenBack) {
  ApplyHarness h;
  park_two(h);
  ASSERT_TRUE(edit(h, 1, kLeftOut));
  ASSERT_TRUE(edit(h, 1, std::nullopt));
  EXPECT_EQ(edit(h, 1, std::nullopt).error().code, ErrorCode::unknown_error_transaction);
  const auto tried = dry_run(h, 1);
  ASSERT_TRUE(tried && tried->error);
  EXPECT_EQ(tried->error->sqlstate, "23505");
  EXPECT_EQ(h.select("SELECT edits FROM thalweg.error_queue WHERE id = 1"), "{}");
}

TEST(ParkedEdits, OneThatDoesNotFitTheChangeIsRefused) {
  ApplyHarness h;
  park_two(h);
  const ParkedEdit unknown{.values = {{"name", "x"}, {"no/such", "x"}}, .reason = "typed wrong"};
  const auto refused = edit(h, 2, unknown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(refused.error().message, "/values/no~1such: \"public\".\"items\" has no column \"no/such\"");
  const ParkedEdit fits{.values = {{"name", "x"}}, .reason = "fits"};
  for (const uint64_t number : {4U, 5U}) {
    EXPECT_EQ(edit(h, number, fits).error().code, ErrorCode::invalid_request) << "it has no new values";
  }
  for (const uint64_t number : {0U, 7U}) {
    EXPECT_EQ(edit(h, number, kLeftOut).error().code, ErrorCode::unknown_error_transaction);
    EXPECT_EQ(read_parked(h.connection(), "teststream", 1, std::chrono::seconds(1), {.only = number}).error().code,
              ErrorCode::unknown_error_transaction);
  }
  EXPECT_EQ(edit(h, 1, kLeftOut, 99).error().code, ErrorCode::unknown_error_transaction);
  EXPECT_EQ(h.select("SELECT edits FROM thalweg.error_queue WHERE id = 1"), "{}");
  const auto last = read_parked(h.connection(), "teststream", 1, std::chrono::seconds(1), {.only = 6});
  ASSERT_TRUE(last) << last.error().message;
  ASSERT_EQ(last->changes.size(), 1U);
  EXPECT_EQ(last->changes[0].number, 6U);
}

// Two operators have opened the transaction.
TEST(ParkedEdits, OneOfAnotherVersionIsRefused) {
  ApplyHarness h;
  park_two(h);
  const auto version = [&] { return find_parked(h.connection(), "teststream", 1)->edits_version; };
  const std::string seen = version();
  ASSERT_TRUE(edit_parked(h.connection(), "teststream", 1, 1, kLeftOut, seen));
  const ParkedEdit other{.values = {{"id", "5"}}, .reason = "another key"};
  const auto refused = edit_parked(h.connection(), "teststream", 1, 1, other, seen);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_request);
  EXPECT_FALSE(edit_parked(h.connection(), "teststream", 1, 1, std::nullopt, seen));
  EXPECT_TRUE(parse_edits(h.select("SELECT edits FROM thalweg.error_queue WHERE id = 1"))->at(1).left_out);
  const std::string now = version();
  EXPECT_NE(now, seen);
  ASSERT_TRUE(edit_parked(h.connection(), "teststream", 1, 1, other, now));
  ASSERT_TRUE(edit_parked(h.connection(), "teststream", 1, 1, std::nullopt, version()));
  EXPECT_EQ(version(), seen) << "as it came again";
}

// An execution tells that nothing of it was applied.
TEST(ParkedEdits, OneWithoutAnyChangeLeavesTheQueue) {
  ApplyHarness h;
  park_two(h);
  for (const uint64_t number : {1U, 2U, 3U, 4U, 5U}) ASSERT_TRUE(edit(h, number, kLeftOut));
  const auto run = [&] {
    auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
    std::vector<int64_t> left_out;
    (void)execute_parked(std::move(*opened), "teststream", {.id = 1},
                         {.progress = {}, .left_out = [&](int64_t id) { left_out.push_back(id); }});
    return left_out;
  };
  h.run("INSERT INTO items VALUES (6, 'in place', 6)");
  EXPECT_EQ(run(), std::vector<int64_t>{}) << "it has failed";
  ASSERT_TRUE(edit(h, 6, kLeftOut));
  const auto tried = dry_run(h, 1);
  ASSERT_TRUE(tried && !tried->error);
  EXPECT_EQ(std::pair(tried->changes, tried->left_out), std::pair(uint64_t{6}, uint64_t{6}));
  EXPECT_EQ(run(), std::vector<int64_t>{1});
  EXPECT_EQ(h.select("SELECT id, code FROM thalweg.error_queue"), "2|apply_conflict");
  EXPECT_EQ(items(h), "1|in place|1,3|three|3,4|four|4,6|in place|6");
}

// An older engine made the table. Reading changes nothing; the first edit adds the column.
TEST(ParkedEdits, AQueueWithoutThemIsReadAndEdited) {
  ApplyHarness h;
  park_two(h);
  h.run("ALTER TABLE thalweg.error_queue DROP COLUMN edits");
  const auto listed = list_parked(h.connection(), "teststream");
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ((*listed)[0].left_out, 0U);
  const auto contents = read_parked(h.connection(), "teststream", 1);
  ASSERT_TRUE(contents) << contents.error().message;
  EXPECT_FALSE(contents->changes[0].edit);
  const auto edited = edit(h, 1, kLeftOut);
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ((*list_parked(h.connection(), "teststream"))[0].left_out, 1U);
}

// Somebody wrote into the queue by hand: nothing is applied of what cannot be understood.
TEST(ParkedEdits, WhatCannotBeReadIsRefused) {
  for (const char* text : {"", "[]", R"({"0": {"reason": "", "left_out": true}})", R"({"1": {"left_out": true}})",
                           R"({"x": {"reason": "", "left_out": true}})", R"({"1": {"reason": ""}})",
                           R"({"1": {"reason": "", "left_out": "yes"}})", R"({"1": {"reason": "", "values": []}})",
                           R"({"1": {"reason": "", "values": {"a": 1}}})"}) {
    EXPECT_EQ(parse_edits(text).error().code, ErrorCode::apply_failed) << text;
  }
  const ParkedEdit edited{.values = {{"a", "\"b\""}, {"c", std::nullopt}}, .reason = "d"};
  const auto again = parse_edits("{\"12\": " + edit_json(edited) + "}");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->at(12).values, edited.values);
  EXPECT_EQ(again->at(12).reason, "d");
  EXPECT_FALSE(again->at(12).left_out);
}

}  // namespace
}  // namespace thalweg::apply
