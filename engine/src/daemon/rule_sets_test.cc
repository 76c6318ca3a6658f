#include "daemon/rule_sets.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/file.h"
#include "daemon/rules_time.h"
#include "daemon/sessions.h"
#include "support/engine_directory.h"

namespace thalweg::daemon {
namespace {

control::StreamDefinition example() {
  const auto text = base::read_file(test::engine_directory() + "/contract/desired.rules.example.json");
  EXPECT_TRUE(text);
  const auto parsed = control::parse_desired(*text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed->streams.front();
}

TEST(RuleSetsTest, TheDocumentsRulesAreTheCaptures) {
  const capture::StreamRules rules = stream_rules(example());
  EXPECT_EQ(rules.source, "orders");
  EXPECT_EQ(rules.plain_tables, (std::set<capture::TableKey>{{"public", "customers"}}));
  ASSERT_EQ(rules.tables.size(), 3U);
  const rules::RuleSets& orders = rules.tables.at({"public", "orders"});
  EXPECT_FALSE(orders.negative);
  ASSERT_EQ(orders.positive->size(), 1U);
  EXPECT_TRUE(orders.positive->front().subset);
  EXPECT_EQ(orders.positive->front().kinds, rules::kEveryKind);
  EXPECT_EQ(orders.positive->front().condition, "region = 'north'");
  const rules::RuleSets& events = rules.tables.at({"public", "events"});
  EXPECT_FALSE(events.positive);
  EXPECT_EQ(events.negative->front().kinds, rules::kDelete | rules::kTruncate);
  EXPECT_EQ(events.negative->back().name, "no_tests");
  EXPECT_EQ(events.negative->front().scope, rules::Scope::table);
  EXPECT_EQ(events.negative->back().scope, rules::Scope::schema);
  EXPECT_TRUE(rules.tables.at({"public", "audit"}).positive->empty());
}

TEST(RuleSetsTest, ADestinationsRulesAreItsOwn) {
  const control::StreamDefinition stream = example();
  const capture::StreamRules rules = destination_rules(control::delivery_to(stream, stream.destinations.front()));
  EXPECT_EQ(rules.source, "orders");
  ASSERT_EQ(rules.tables.size(), 1U);
  EXPECT_EQ(rules.tables.at({"public", "customers"}).negative->front().name, "no_guests");
  EXPECT_EQ(rules.tables.at({"public", "customers"}).negative->front().on_error, rules::OnError::as_false);
  EXPECT_EQ(rules.plain_tables,
            (std::set<capture::TableKey>{{"public", "audit"}, {"public", "events"}, {"public", "orders"}}));
}

// Rules take effect at one position: the sessions that are running do not take others up.
TEST(RuleSetsTest, OtherRulesEndTheSessions) {
  const control::StreamDefinition before = example();
  control::StreamDefinition after = before;
  EXPECT_TRUE(goes_on_with(before, after));
  after.rules.at({"public", "orders"}).positive->front().on_error = control::OnRuleError::as_true;
  EXPECT_FALSE(goes_on_with(before, after)) << "a policy is a part of its rule";
  after = before;
  after.rules.begin()->second.negative.emplace();
  EXPECT_FALSE(goes_on_with(before, after));
}

TEST(RuleSetsTest, TheDocumentsTransformationsAreTheCaptures) {
  const auto text = base::read_file(test::engine_directory() + "/contract/desired.transformations.example.json");
  ASSERT_TRUE(text);
  const auto parsed = control::parse_desired(*text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const control::StreamDefinition& before = parsed->streams.front();
  const capture::StreamRules rules = stream_rules(before);
  const capture::TableKey people("public", "people");
  EXPECT_TRUE(rules.tables.at(people).negative);
  EXPECT_EQ(rules.plain_tables, (std::set<capture::TableKey>{{"public", "countries"}}));
  const transform::Steps& steps = rules.transformations.at(people);
  ASSERT_EQ(steps.size(), 8U);
  EXPECT_EQ(steps[1].to, "email");
  EXPECT_EQ(steps[2].mask,
            (transform::Mask{.kind = transform::MaskKind::partial, .value = {}, .keep_first = 1, .keep_last = 4}));
  EXPECT_EQ(steps[3].mask.value, "1970-01-01");
  EXPECT_EQ(steps[5].mask.kind, transform::MaskKind::hash);
  EXPECT_EQ(steps[5].mask.key, before.mask_key);
  EXPECT_EQ(steps[6].columns.size(), 5U);
  EXPECT_EQ(steps[7].type, "text");
  EXPECT_EQ(steps[7].value, "north");
  const transform::Steps& of_visits = rules.transformations.at({"public", "visits"});
  EXPECT_EQ(of_visits.at(0).expression, "coalesce(name, 'guest ' || id::text)");
  EXPECT_EQ(of_visits.at(1).kind, transform::StepKind::cast_column);
  EXPECT_EQ(of_visits.at(1).type, "double precision");

  control::StreamDefinition after = before;
  after.rules.clear();
  EXPECT_FALSE(stream_rules(after).tables.at(people).has_any());
  after = before;
  after.transformations.clear();
  EXPECT_FALSE(goes_on_with(before, after));
  after = before;
  after.mask_key += "!";
  EXPECT_FALSE(goes_on_with(before, after));
}

// Only one that reads the queue itself cannot read on with other rules of its own.
TEST(RuleSetsTest, OtherRulesOfADestinationWithABacklogDoNot) {
  control::StreamDefinition before = example();
  control::StreamDefinition after = before;
  after.destinations.front().rules.clear();
  EXPECT_FALSE(goes_on_with(before, after));
  before.destinations.front().backlog = after.destinations.front().backlog = true;
  EXPECT_TRUE(goes_on_with(before, after));
  // But where they are the first to read the transaction, it is to come whole from now on.
  control::RulesDefinition reads;
  reads.negative.emplace().push_back({.name = "not_back", .operations = {}, .condition = "tag = 'archive'"});
  after.destinations.front().rules.emplace(after.tables.front(), std::move(reads));
  EXPECT_FALSE(goes_on_with(before, after));
  EXPECT_TRUE(stream_rules(after).reads_transaction);
  EXPECT_FALSE(stream_rules(before).reads_transaction);
}

// A check of rules that goes on holds up the engine's end.
TEST(RuleSetsTest, TheTimeForACheckEndsWithTheEngine) {
  std::atomic<bool> abandon{false};
  const RulesTime time(abandon);
  EXPECT_TRUE(time.check());
  abandon = true;
  const auto ended = time.check();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, base::ErrorCode::database_busy);
}

}  // namespace
}  // namespace thalweg::daemon
