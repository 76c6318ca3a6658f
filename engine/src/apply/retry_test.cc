#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "apply/apply_harness.h"

// Retries and parking by error policies; error_policy_test.cc tests which policy decides.

namespace thalweg::apply {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";
constexpr const char* kQueue = "SELECT code FROM thalweg.error_queue ORDER BY commit_lsn";

ErrorPolicy retry(int times, std::chrono::seconds delay, ErrorAction then) {
  return {.action = ErrorAction::retry, .times = times, .delay = delay, .after_retries = then};
}

void wait_for_retries(ApplyHarness& h, uint64_t retries) {
  while (h.apply().status().running && h.counter("APPLY COORDINATOR", "retried_transactions") < retries) {
    std::this_thread::yield();
  }
  ASSERT_EQ(h.counter("APPLY COORDINATOR", "retried_transactions"), retries);
}

// One of row 5, which is not there, with one that depends on it, and one that does not. Where the first commits.
base::Lsn write_history(ApplyHarness& h) {
  h.run(kItems);
  h.describe("items");
  h.begin();
  h.update("items", {5, "five", 5});
  const base::Lsn failing = h.commit();
  h.begin();
  h.update("items", {5, "five again", 55});
  h.commit();
  h.insert_one("items", {1, "one", 1});
  return failing;
}

TEST(Retries, OthersGoOnUntilTheCauseIsGone) {
  ApplyHarness h;
  write_history(h);
  h.parameters.error_policies = {retry(1, 3600s, ErrorAction::stop)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  while (h.select("SELECT name FROM items") != "one") std::this_thread::yield();
  EXPECT_LT(h.apply().status().applied, h.end());
  h.run("INSERT INTO items VALUES (5, 'here now', 0)");
  h.parameters.error_policies = {retry(2, 3600s, ErrorAction::stop)};  // does not wait for the hour
  h.apply().set_parameters(h.parameters);
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 5"), "five again");
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kQueue), "");
}

TEST(Retries, AreFollowedByAStop) {
  ApplyHarness h;
  write_history(h);
  h.parameters.disable_on_error = false;
  h.parameters.error_policies = {retry(3, 0s, ErrorAction::stop)};
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::apply_conflict);
  EXPECT_TRUE(error->message.ends_with(": the destination has no such row; retried 3 times before")) << error->message;
  EXPECT_EQ(error->operation, base::RowOperation::update);
  EXPECT_TRUE(error->is_row_missing);
  EXPECT_EQ(error->retries, 3);
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_transactions"), 3U);
  EXPECT_EQ(h.select(kQueue), "");
}

TEST(Retries, AreFollowedByTheErrorQueue) {
  ApplyHarness h;
  write_history(h);
  h.parameters.error_policies = {retry(3, 0s, ErrorAction::park)};
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_transactions"), 3U) << "those behind it are parked at once";
  EXPECT_EQ(h.select(kQueue), "apply_conflict,parked_behind");
  EXPECT_EQ(h.apply().parked_transactions(), 2U);
  EXPECT_EQ(h.select("SELECT name FROM items"), "one");
}

// Transactions that a group parks before it waits for a retry count once, and can be executed meanwhile.
TEST(Retries, TheErrorQueueCanBeExecutedMeanwhile) {
  ApplyHarness h;
  h.run(kItems);
  h.run("CREATE TABLE other (id int PRIMARY KEY, name text)");
  h.describe("items");
  h.describe("other");
  h.parameters.parallelism = 1;
  h.begin();
  h.update("other", {1, "missing"});
  h.commit();
  h.begin();
  h.update("items", {5, "five", 5});
  h.commit();
  h.parameters.error_policies = {{.table = "\"public\".\"other\"", .action = ErrorAction::park},
                                 retry(1, 3600s, ErrorAction::stop)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  while (h.apply().parked_transactions() != 1) std::this_thread::yield();
  h.run("INSERT INTO other VALUES (1, 'here now'); INSERT INTO items VALUES (5, 'here now', 0)");
  ASSERT_TRUE(h.execute_error(1));
  while (h.apply().parked_transactions() != 0) std::this_thread::yield();
  h.parameters.error_policies.pop_back();
  h.apply().set_parameters(h.parameters);
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  EXPECT_EQ(h.select("SELECT items.name, other.name FROM items, other"), "five|missing");
  EXPECT_EQ(h.apply().parked_transactions(), 0U);
}

// A stop does not wait for the retry. The next start gets the transaction again.
TEST(Retries, AStopDoesNotWaitForOne) {
  ApplyHarness h;
  write_history(h);
  h.parameters.error_policies = {retry(1, 3600s, ErrorAction::park)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT name FROM items"), "one");
  EXPECT_LT(h.apply().status().confirmed, h.end());
  h.run("INSERT INTO items VALUES (5, 'here now', 0)");
  error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT string_agg(name, ',' ORDER BY id) FROM items"), "one,five again");
}

// A transient error, or another destination of its stream, may have apply start again.
TEST(Retries, AreCountedOnByTheNextApply) {
  ApplyHarness h;
  Retries kept;
  h.retries = &kept;
  const base::Lsn failing = write_history(h);
  h.parameters.error_policies = {retry(2, 3600s, ErrorAction::stop)};
  for (int starts = 0; starts < 3; ++starts) {
    ASSERT_TRUE(h.start());
    h.feed();
    while (h.apply().transactions().retrying == 0) std::this_thread::yield();
    EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_transactions"), starts == 0 ? 1U : 0U) << "it waits on";
    EXPECT_EQ(h.apply().transactions().next_retry->number, 1);
    if (starts < 2) h.stop_abruptly();
  }
  const auto of_row_5 = [&] { return kept.find(failing, {700}); };
  ASSERT_TRUE(of_row_5());
  h.parameters.error_policies = {retry(2, 0s, ErrorAction::stop)};
  h.apply().set_parameters(h.parameters);
  while (h.apply().status().running) std::this_thread::yield();
  const auto error = h.finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::apply_conflict);
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_transactions"), 1U) << "the second of two";
  EXPECT_FALSE(of_row_5()) << "it has stopped for good: the next start counts from the first";
}

TEST(Retries, AreForgottenOnceTheTransactionHasCommitted) {
  ApplyHarness h;
  Retries kept;
  h.retries = &kept;
  const base::Lsn failing = write_history(h);
  h.parameters.error_policies = {retry(1, 3600s, ErrorAction::stop)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  EXPECT_TRUE(kept.find(failing, {700}));
  h.run("INSERT INTO items VALUES (5, 'here now', 0)");
  h.parameters.error_policies = {retry(2, 0s, ErrorAction::stop)};
  h.stop_abruptly();
  const auto error = h.start_and_finish();  // other policies: it does not wait for the hour
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 5"), "five again");
  EXPECT_FALSE(kept.find(failing, {700}));
}

TEST(Retries, AreShownWhileTheyAreWaitedFor) {
  ApplyHarness h;
  write_history(h);
  h.parameters.error_policies = {retry(4, 3600s, ErrorAction::stop)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  telemetry::TransactionSamples now = h.apply().transactions();
  while (now.retrying == 0) now = h.apply().transactions();
  EXPECT_EQ(now.retrying, 1U);
  ASSERT_TRUE(now.next_retry);
  EXPECT_EQ(now.next_retry->number, 1);
  EXPECT_EQ(now.next_retry->times, 4);
  EXPECT_EQ(now.next_retry->error.code, ErrorCode::apply_conflict);
  const auto failed = std::ranges::find(now.shown, "WAIT RETRY", &telemetry::TransactionSample::state);
  ASSERT_NE(failed, now.shown.end());
  EXPECT_EQ(failed->xid, base::Xid{700});
  ASSERT_TRUE(failed->retry);
  EXPECT_EQ(failed->retry->at, now.next_retry->at);
  const int64_t wait = failed->retry->at.value - base::SystemClock().unix_now().value;
  EXPECT_GT(wait, 3'500'000'000);
  EXPECT_LE(wait, 3'600'000'000);
  EXPECT_EQ(std::ranges::count_if(now.shown, [](const auto& one) { return one.retry.has_value(); }), 1);
}

// Each lasts as long as the pause between two looks.
TEST(Retries, AreShownHoweverShort) {
  ApplyHarness h;
  write_history(h);
  h.parameters.error_policies = {retry(100, 1s, ErrorAction::stop)};
  ASSERT_TRUE(h.start());
  h.feed();
  const auto shown = [&] {
    const auto next = h.apply().transactions().next_retry;
    return next ? next->number : 0;
  };
  for (int number = 1; number <= 3; ++number) {
    while (shown() != number) {
      ASSERT_LE(h.counter("APPLY COORDINATOR", "retried_transactions"), static_cast<uint64_t>(number));
      std::this_thread::yield();
    }
  }
  h.stop_abruptly();
}

TEST(Retries, WhatEndsTheReaderIsToldAllTheSame) {
  ApplyHarness h;
  write_history(h);
  h.parameters.error_policies = {retry(1, 3600s, ErrorAction::park)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  h.commit();  // of nothing that began
  const auto error = h.finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::corrupt_frame);
}

// With commits in the source's order nothing waits for its turn behind a retry, with its locks.
TEST(Retries, InCommitOrderOthersWaitWithoutLocks) {
  ApplyHarness h;
  write_history(h);
  h.parameters.commit_serialization = CommitSerialization::full;
  h.parameters.error_policies = {retry(1, 3600s, ErrorAction::park)};
  ASSERT_TRUE(h.start());
  h.feed();
  wait_for_retries(h, 1);
  while (h.select("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'thalweg % applier %' AND "
                  "datname = current_database() AND state <> 'idle'") != "0") {
    std::this_thread::yield();
  }
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "0");
  h.parameters.error_policies.clear();
  h.parameters.disable_on_error = false;
  h.apply().set_parameters(h.parameters);
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  EXPECT_EQ(h.select("SELECT name FROM items"), "one");
  EXPECT_EQ(h.select(kQueue), "apply_conflict,parked_behind");
}

}  // namespace
}  // namespace thalweg::apply
