#include "control/stats_history.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

namespace thalweg::control {
namespace {

using nlohmann::json;

// An engine whose wall clock is one second later at each look.
class Ticking final : public ManagedStreams {
 public:
  base::Result<void> put_desired(DesiredState) override { return {}; }
  EngineStatus engine() const override { return {}; }
  std::vector<StreamStatus> status() const override {
    StreamStatus stream;
    stream.id = "k3j2h1g4";
    stream.state = State::replicating;
    stream.applied = {7};
    return {stream};
  }
  EngineStats stats() const override {
    EngineStats out;
    out.sampled_at = {++seconds * 1'000'000};
    out.streams.push_back({.id = "k3j2h1g4", .components = {}, .latency = {}, .tables = {}});
    return out;
  }
  base::Result<void> retry(const StreamTarget&) override { return {}; }
  base::Result<ParkedListView> errors(const StreamTarget&, const telemetry::ParkedPart&) override { return {}; }
  base::Result<telemetry::ParkedTree> error_tree(const StreamTarget&, int64_t, const telemetry::TreePart&) override {
    return telemetry::ParkedTree{};
  }
  base::Result<ParkedContentsView> error_contents(const StreamTarget&, int64_t,
                                                  const telemetry::ChangesPart&) override {
    return {};
  }
  base::Result<void> edit_error(const StreamTarget&, int64_t, uint64_t, const std::optional<telemetry::ParkedEdit>&,
                                const std::string&) override {
    return {};
  }
  base::Result<telemetry::LoggedConflicts> conflicts(const StreamTarget&, const telemetry::ConflictPart&) override {
    return {};
  }
  base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const StreamTarget&) override { return {}; }
  base::Result<telemetry::TransactionSamples> transactions(const std::string&) override { return {}; }
  base::Result<telemetry::MarkerTrail> markers(const std::string&) override { return telemetry::MarkerTrail{}; }
  base::Result<void> place_marker(const std::string&, const std::string&, const std::string&) override { return {}; }
  base::Result<telemetry::SearchList> searches(const std::string&) override { return telemetry::SearchList{}; }
  base::Result<telemetry::SearchStatus> begin_search(const std::string&, telemetry::SearchRequest) override {
    return telemetry::SearchStatus{};
  }
  base::Result<telemetry::FoundPart> search(const std::string&, const std::string&,
                                            const telemetry::SearchPart&) override {
    return telemetry::FoundPart{};
  }
  base::Result<void> end_search(const std::string&, const std::string&) override { return {}; }
  base::Result<ExecutionState> execute_error(const StreamTarget&, const telemetry::ParkedChoice&) override {
    return {};
  }
  base::Result<DryRunView> dry_run_error(const StreamTarget&, int64_t, const std::string&) override { return {}; }
  base::Result<void> drop_error(const StreamTarget&, int64_t) override { return {}; }
  base::Result<std::vector<RehearsalProblem>> rehearse(const RehearsalRequest&) override {
    return std::vector<RehearsalProblem>{};
  }
  base::Result<std::vector<RuleProblem>> check_rules(const RulesCheckRequest&) override {
    return std::vector<RuleProblem>{};
  }
  base::Result<RulesTrial> test_rules(const RulesTrialRequest&) override { return RulesTrial{}; }
  base::Result<void> copy_table(const StreamTarget&, const TableRef&) override { return {}; }
  base::Result<void> accept_table(const StreamTarget&, const TableRef&) override { return {}; }
  base::Result<std::string> request_identity(const std::string&) override { return ""; }
  base::Result<IdentityView> install_identity(const std::string&, const std::string&) override { return {}; }

  mutable std::atomic<int64_t> seconds{0};
};

json ask(const StatsHistory& history, int64_t since) { return json::parse(history.answer({since})); }

TEST(StatsHistory, GivesWhatCameSinceInOrderAndForgetsTheOldest) {
  Ticking engine;
  using std::chrono::milliseconds;
  const StatsHistory history(engine, {.interval = milliseconds(1), .span = milliseconds(50), .answer_bytes_max = 2000});
  while (engine.seconds < 200) std::this_thread::yield();
  json all = ask(history, 0);
  const std::string oldest = all["samples"][0]["sampled_at"];
  EXPECT_GE(oldest, "1970-01-01T00:02:25");  // at most 50 of 200 are left
  EXPECT_TRUE(all["more"]);                  // 50 are more than 2000 bytes
  const json& stream = all["samples"][0]["streams"][0];
  EXPECT_EQ(stream["positions"]["applied"], "0/7");
  EXPECT_EQ(stream["phase"], "REPLICATING");

  // Page by page: every second once, in its order.
  int64_t since = engine.seconds * 1'000'000;
  while (engine.seconds < since / 1'000'000 + 30) std::this_thread::yield();
  int64_t expected = since / 1'000'000;
  bool more = true;
  while (more && expected < since / 1'000'000 + 20) {
    const json page = ask(history, expected * 1'000'000);
    for (const json& sample : page["samples"]) {
      ++expected;
      EXPECT_EQ(sample["sampled_at"], fmt::format("1970-01-01T00:{:02}:{:02}.000000Z", expected / 60, expected % 60));
    }
    more = page["more"];
  }
  EXPECT_GE(expected, since / 1'000'000 + 20);
  EXPECT_TRUE(ask(history, int64_t{1} << 60)["samples"].empty());
}

}  // namespace
}  // namespace thalweg::control
