#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "control/managed_streams.h"

namespace thalweg::control {

// An engine without streams that counts what reached it.
class NoStreams : public ManagedStreams {
 public:
  base::Result<void> put_desired(DesiredState) override { return reached(); }
  EngineStatus engine() const override { return {}; }
  std::vector<StreamStatus> status() const override { return {}; }
  EngineStats stats() const override { return {}; }
  base::Result<void> retry(const StreamTarget&) override { return reached(); }
  base::Result<ParkedListView> errors(const StreamTarget&, const telemetry::ParkedPart&) override {
    ++requests;
    return ParkedListView{};
  }
  base::Result<telemetry::ParkedTree> error_tree(const StreamTarget&, int64_t, const telemetry::TreePart&) override {
    return telemetry::ParkedTree{};
  }
  base::Result<ParkedContentsView> error_contents(const StreamTarget&, int64_t,
                                                  const telemetry::ChangesPart&) override {
    ++requests;
    return ParkedContentsView{};
  }
  base::Result<telemetry::LoggedConflicts> conflicts(const StreamTarget&, const telemetry::ConflictPart&) override {
    ++requests;
    return telemetry::LoggedConflicts{};
  }
  base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const StreamTarget&) override {
    ++requests;
    return std::vector<telemetry::LoggedCount>{};
  }
  base::Result<telemetry::TransactionSamples> transactions(const std::string&) override {
    ++requests;
    return telemetry::TransactionSamples{};
  }
  base::Result<telemetry::MarkerTrail> markers(const std::string&) override {
    ++requests;
    return telemetry::MarkerTrail{};
  }
  base::Result<void> place_marker(const std::string&, const std::string&, const std::string&) override {
    return reached();
  }
  base::Result<telemetry::SearchList> searches(const std::string&) override {
    ++requests;
    return telemetry::SearchList{};
  }
  base::Result<telemetry::SearchStatus> begin_search(const std::string&, telemetry::SearchRequest) override {
    ++requests;
    return telemetry::SearchStatus{};
  }
  base::Result<telemetry::FoundPart> search(const std::string&, const std::string&,
                                            const telemetry::SearchPart&) override {
    ++requests;
    return telemetry::FoundPart{};
  }
  base::Result<void> end_search(const std::string&, const std::string&) override { return reached(); }
  base::Result<ExecutionState> execute_error(const StreamTarget&, const telemetry::ParkedChoice&) override {
    ++requests;
    return ExecutionState::done;
  }
  base::Result<DryRunView> dry_run_error(const StreamTarget&, int64_t, const std::string&) override {
    ++requests;
    return DryRunView{};
  }
  base::Result<void> edit_error(const StreamTarget&, int64_t, uint64_t, const std::optional<telemetry::ParkedEdit>&,
                                const std::string&) override {
    return reached();
  }
  base::Result<void> drop_error(const StreamTarget&, int64_t) override { return reached(); }
  base::Result<void> copy_table(const StreamTarget&, const TableRef&) override { return reached(); }
  base::Result<void> accept_table(const StreamTarget&, const TableRef&) override { return reached(); }
  base::Result<std::vector<RehearsalProblem>> rehearse(const RehearsalRequest&) override {
    ++requests;
    return std::vector<RehearsalProblem>{};
  }
  base::Result<std::vector<RuleProblem>> check_rules(const RulesCheckRequest&) override {
    ++requests;
    return std::vector<RuleProblem>{};
  }
  base::Result<RulesTrial> test_rules(const RulesTrialRequest&) override {
    ++requests;
    return RulesTrial{};
  }
  base::Result<std::string> request_identity(const std::string&) override {
    ++requests;
    return "csr";
  }
  base::Result<IdentityView> install_identity(const std::string&, const std::string&) override {
    ++requests;
    return IdentityView{};
  }

  std::atomic<uint64_t> requests{0};

 private:
  base::Result<void> reached() {
    ++requests;
    return {};
  }
};

}  // namespace thalweg::control
