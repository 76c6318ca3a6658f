#include "apply/parked_failure.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <fmt/format.h>

#include "apply/apply_harness.h"
#include "apply/error_queue.h"

// Where a parked transaction failed: the number of the change, and what the server named.

namespace thalweg::apply {
namespace {

using telemetry::ParkedEdit;

void apply_all(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  h.parameters.parallelism = 1;  // they are parked one after the other
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
}

void leave_out(ApplyHarness& h, uint64_t number) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(opened);
  ASSERT_TRUE(edit_parked(*opened, "teststream", 1, number, ParkedEdit{.left_out = true, .reason = "a duplicate"}));
}

uint64_t failed_change(ApplyHarness& h, int64_t id = 1) {
  const auto found = find_parked(h.connection(), "teststream", id);
  EXPECT_TRUE(found) << found.error().message;
  return found ? found->failed_change : 999;
}

uint64_t fails_when_tried(ApplyHarness& h, int64_t id = 1) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  EXPECT_TRUE(opened);
  const auto tried = dry_run_parked(std::move(*opened), "teststream", id);
  EXPECT_TRUE(tried && tried->error);
  return tried ? tried->failed_change : 999;
}

TEST(ParkedFailure, TheChangeIsThatOfItsPlace) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name varchar(8)); INSERT INTO items VALUES (7, 'in place')");
  h.describe("items");
  h.begin();  // more than one sync
  for (int i = 100; i < 1300; ++i) h.insert("items", {i, "x"});
  h.insert("items", {7, "seven"});
  h.insert("items", {8, "eight"});
  h.commit();
  h.begin();  // no such row
  h.insert("items", {20, "x"});
  h.insert("items", {21, "x"});
  h.update("items", {22, "missing"});
  h.commit();
  h.begin();  // the very first
  h.insert("items", {40, "much too long"});
  h.commit();
  apply_all(h);
  EXPECT_EQ(failed_change(h, 1), 1201U);
  EXPECT_EQ(failed_change(h, 2), 3U);
  EXPECT_EQ(failed_change(h, 3), 1U);
}

TEST(ParkedFailure, ATruncateIsAChange) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY); CREATE TABLE gone (id int PRIMARY KEY)");
  h.run("CREATE TABLE refers (id int PRIMARY KEY REFERENCES gone)");
  h.describe("items");
  h.describe("gone");
  h.begin();
  h.insert("items", {1});
  h.truncate("gone");
  h.insert("items", {2});
  h.commit();
  apply_all(h);
  EXPECT_EQ(failed_change(h), 2U);
}

TEST(ParkedFailure, ASpilledTransactionsToo) {
  ApplyHarness h;
  h.parameters.txn_lcr_spill_threshold = 100;
  h.run("CREATE TABLE items (id int PRIMARY KEY, name text); INSERT INTO items VALUES (900, 'in place')");
  h.describe("items");
  h.begin();
  for (int i = 1; i <= 1000; ++i) h.insert("items", {i, std::string(300, 'x')});
  h.commit();
  apply_all(h);
  EXPECT_EQ(failed_change(h), 900U);
  EXPECT_EQ(fails_when_tried(h), 900U);
}

TEST(ParkedFailure, OneAtTheCommitIsThatOfNoChange) {
  ApplyHarness h;
  h.run("CREATE TABLE wholes (id int PRIMARY KEY)");
  h.run("CREATE TABLE items (id int PRIMARY KEY, whole int REFERENCES wholes DEFERRABLE INITIALLY DEFERRED)");
  h.run(
      "DO $$ DECLARE t name; BEGIN FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'items'::regclass LOOP "
      "EXECUTE format('ALTER TABLE items ENABLE ALWAYS TRIGGER %I', t); END LOOP; END $$");
  h.describe("items");
  h.insert_one("items", {8, 80});
  apply_all(h);
  EXPECT_EQ(failed_change(h), 0U);
  EXPECT_EQ(fails_when_tried(h), 0U);
  const auto causes = parked_causes(h.connection(), "teststream");
  ASSERT_TRUE(causes && causes->size() == 1);
  EXPECT_EQ((*causes)[0].table, "\"public\".\"items\"");
  EXPECT_EQ((*causes)[0].object, "items_whole_fkey");
}

TEST(ParkedFailure, AnExecutionThatFailsElsewhereTellsWhere) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY, n int CHECK (n < 100))");
  h.run("INSERT INTO items VALUES (2, 0), (5, 0)");
  h.describe("items");
  h.begin();
  for (int i = 1; i <= 6; ++i) h.insert("items", {i, i == 6 ? 600 : i});
  h.commit();
  h.begin();
  h.update("items", {2, 22});
  h.commit();
  apply_all(h);
  EXPECT_EQ(failed_change(h, 1), 2U);
  EXPECT_EQ(failed_change(h, 2), 0U) << "it waits, and has not failed";
  for (const uint64_t number : {2U, 3U}) leave_out(h, number);
  EXPECT_EQ(fails_when_tried(h), 5U) << "numbered as it came, with those that are left out";
  EXPECT_EQ(failed_change(h), 2U) << "a dry run changes nothing";
  EXPECT_FALSE(h.execute_error(1));
  EXPECT_EQ(failed_change(h), 5U);
  leave_out(h, 5);
  EXPECT_FALSE(h.execute_error(1));
  EXPECT_EQ(failed_change(h), 6U);
}

// It writes another message, and leaves the column as it is.
TEST(ParkedFailure, WhatAnOlderEngineHasWrittenSinceIsNotMistaken) {
  ApplyHarness h;
  h.run("CREATE TABLE items (id int PRIMARY KEY); INSERT INTO items VALUES (2)");
  h.describe("items");
  h.begin();
  h.insert("items", {1});
  h.insert("items", {2});
  h.commit();
  apply_all(h);
  EXPECT_EQ(failed_change(h), 2U);
  h.run("UPDATE thalweg.error_queue SET message = 'another'");
  EXPECT_EQ(failed_change(h), 0U);
  h.run("ALTER TABLE thalweg.error_queue DROP COLUMN failure");
  h.run("ALTER TABLE thalweg.error_queue_chunk DROP COLUMN first_change");
  EXPECT_EQ(failed_change(h), 0U) << "nor where it has made the table";
  EXPECT_TRUE(parked_causes(h.connection(), "teststream"));
  EXPECT_FALSE(h.execute_error(1));
  EXPECT_EQ(failed_change(h), 2U) << "the column is there again";
}

// The names come in fields of their own, whatever the language of the message.
TEST(ParkedFailure, CausesAreToldApartWithoutTheWordsOfTheServer) {
  ApplyHarness h;
  h.run("CREATE DOMAIN small AS int CONSTRAINT small_enough CHECK (VALUE < 10)");
  h.run("CREATE TABLE items (id int PRIMARY KEY, n int NOT NULL, s small, CONSTRAINT dear CHECK (n < 100))");
  h.describe("items");
  h.run("ALTER TABLE items ADD CONSTRAINT cheap CHECK (n > -100)");
  h.insert_one("items", {1, 500, 1});
  h.insert_one("items", {2, -500, 1});
  h.insert_one("items", {3, nullptr, 1});
  h.insert_one("items", {4, 1, 50});
  h.insert_one("items", {5, 600, 1});
  apply_all(h);
  const auto objects = [&] {
    std::string text;
    const auto causes = parked_causes(h.connection(), "teststream");
    EXPECT_TRUE(causes) << causes.error().message;
    for (const auto& cause : *causes) text += fmt::format("{} {}, ", cause.object, cause.transactions);
    return text;
  };
  const std::string apart = objects();
  for (const char* object : {"dear 2", "cheap 1", "n 1", "small_enough 1"}) {
    EXPECT_NE(apart.find(object), std::string::npos) << apart;
  }
  h.run(
      "UPDATE thalweg.error_queue SET message = regexp_replace(message, ': .*', ': anders gesagt'), failure = "
      "failure || jsonb_build_object('of', hashtextextended(regexp_replace(message, ': .*', ': anders gesagt'), "
      "0)::text)");
  EXPECT_EQ(objects(), apart);
}

}  // namespace
}  // namespace thalweg::apply
