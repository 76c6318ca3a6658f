#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "control/managed_streams.h"
#include "daemon/identity.h"
#include "daemon/peering.h"
#include "daemon/places.h"
#include "daemon/seal.h"
#include "daemon/stream.h"

namespace thalweg::daemon {

// All streams of this engine, and the desired state on its disk. Thread-safe: a mutex guards the map and the file.
class Engine final : public control::ManagedStreams {
 public:
  // Reads <state_directory>/desired.json and begins to reconcile. A file that cannot be read, or that says nothing
  // this engine understands, is an error: to go on without it would forget slots that hold WAL. One that an older
  // engine left in the clear is encrypted. `key_file`: with what, see Seal; `receives_at`: where other engines send to.
  static base::Result<std::unique_ptr<Engine>> open(const std::filesystem::path& state_directory,
                                                    const std::filesystem::path& key_file, const base::Clock& clock,
                                                    Peering::Address receives_at = {});
  ~Engine() override;

  // Every stream drains and ends, within `patience`. False: some did not; the process may exit all the same, what is
  // not applied is read again. Requests of operators that wait for a database are given up.
  bool stop(std::chrono::seconds patience);

  base::Result<void> put_desired(control::DesiredState desired) override;
  control::EngineStatus engine() const override;
  std::vector<control::StreamStatus> status() const override;
  control::EngineStats stats() const override;
  base::Result<void> retry(const control::StreamTarget& target) override;
  base::Result<telemetry::LoggedConflicts> conflicts(const control::StreamTarget& target,
                                                     const telemetry::ConflictPart& part) override;
  base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const control::StreamTarget& target) override;
  base::Result<control::ParkedListView> errors(const control::StreamTarget& target,
                                               const telemetry::ParkedPart& part) override;
  base::Result<telemetry::TransactionSamples> transactions(const std::string& stream) override;
  base::Result<telemetry::MarkerTrail> markers(const std::string& stream) override;
  base::Result<void> place_marker(const std::string& stream, const std::string& id, const std::string& label) override;
  base::Result<telemetry::SearchList> searches(const std::string& stream) override;
  base::Result<telemetry::SearchStatus> begin_search(const std::string& stream,
                                                     telemetry::SearchRequest request) override;
  base::Result<telemetry::FoundPart> search(const std::string& stream, const std::string& id,
                                            const telemetry::SearchPart& part) override;
  base::Result<void> end_search(const std::string& stream, const std::string& id) override;
  base::Result<telemetry::ParkedTree> error_tree(const control::StreamTarget& target, int64_t error_id,
                                                 const telemetry::TreePart& part) override;
  base::Result<control::ParkedContentsView> error_contents(const control::StreamTarget& target, int64_t error_id,
                                                           const telemetry::ChangesPart& part) override;
  base::Result<control::ExecutionState> execute_error(const control::StreamTarget& target,
                                                      const telemetry::ParkedChoice& choice) override;
  base::Result<control::DryRunView> dry_run_error(const control::StreamTarget& target, int64_t error_id,
                                                  const std::string& role) override;
  base::Result<void> edit_error(const control::StreamTarget& target, int64_t error_id, uint64_t change,
                                const std::optional<telemetry::ParkedEdit>& edit, const std::string& version) override;
  base::Result<void> drop_error(const control::StreamTarget& target, int64_t error_id) override;
  base::Result<std::vector<control::RehearsalProblem>> rehearse(const control::RehearsalRequest& request) override;
  base::Result<std::vector<control::RuleProblem>> check_rules(const control::RulesCheckRequest& request) override;
  base::Result<control::RulesTrial> test_rules(const control::RulesTrialRequest& request) override;
  base::Result<void> copy_table(const control::StreamTarget& target, const control::TableRef& table) override;
  base::Result<void> accept_table(const control::StreamTarget& target, const control::TableRef& table) override;
  base::Result<std::string> request_identity(const std::string& name) override;
  base::Result<control::IdentityView> install_identity(const std::string& certificate, const std::string& ca) override;

 private:
  Engine(std::filesystem::path state_directory, const base::Clock& clock);
  std::filesystem::path desired_file() const { return state_directory_ / "desired.json"; }
  base::Result<void> read_desired(const std::filesystem::path& key_file);
  base::Result<void> write_desired(std::string_view text) const;
  void add_unknown(control::DesiredState& desired) const;
  base::Result<void> check_successor(const control::DesiredState& next) const;
  void reconcile(const control::DesiredState& desired);
  base::Result<std::shared_ptr<Stream>> find(std::string_view stream_id) const;
  std::vector<std::shared_ptr<Stream>> all() const;

  const std::filesystem::path state_directory_;
  const base::Clock& clock_;
  const base::UnixMicros started_at_;
  std::optional<Seal> seal_;            // has a value once open; Immutable
  std::unique_ptr<Identity> identity_;  // neither is null once open; both outlive the streams
  std::unique_ptr<Peering> peering_;
  Places rehearsals_{3};
  Places rule_checks_{3};
  Places taps_{2};                    // those that wait for changes; fewer, so that other checks find a place
  Places listings_{4};                // of parked transactions
  Places openings_{2};                // and dry runs, of one of them
  Places searches_{2};                // in the WAL, while they run
  Places actions_{4};                 // on parked transactions and on tables
  std::atomic<bool> abandon_{false};  // Writer: stop(). Readers: connections of rehearsals and checks
  std::mutex put_mutex_;              // one desired document at a time
  mutable std::mutex mutex_;
  uint64_t revision_ = 0;
  bool stopping_ = false;
  std::map<std::string, std::shared_ptr<Stream>, std::less<>> streams_;
};

}  // namespace thalweg::daemon
