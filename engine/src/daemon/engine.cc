#include "daemon/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "control/old_form.h"
#include "daemon/operator_connection.h"
#include "daemon/rule_sets.h"
#include "daemon/rules_check.h"
#include "daemon/rules_trial.h"
#include "instantiation/rehearsal.h"
#include "shipment/archives_file.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using control::DesiredState;
using control::StreamDefinition;
namespace fs = std::filesystem;

std::string hostname() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t clock_nanos(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Nothing that a destination has not got may be forgotten.
base::Result<void> check_destinations(const StreamDefinition& next, const StreamDefinition& before,
                                      const control::StreamStatus& now) {
  if (now.state == control::State::dropped) return {};
  const auto adopted = control::adopt_id(before, next);
  for (const control::DestinationStatus& destination : now.destinations) {
    const bool is_renamed = adopted && destination.id == control::kOldFormId;
    if (is_renamed || next.find(destination.id) != nullptr || destination.state == control::State::dropped) continue;
    return base::fail(ErrorCode::desired_state_conflict,
                      fmt::format("Destination {} of stream {} is left out but has not been DROPPED: what it has not "
                                  "taken would be lost",
                                  destination.id, now.id));
  }
  for (const control::DestinationDefinition& destination : before.destinations) {
    const control::DestinationDefinition* const same = next.find(destination.id);
    if (!destination.backlog || same == nullptr || same->backlog) continue;
    return base::fail(ErrorCode::desired_state_conflict,
                      fmt::format("Destination {} of stream {} has a backlog: it keeps one", destination.id, now.id));
  }
  return {};
}

constexpr size_t kSampleBytesMax = size_t{32} << 20;  // of the rows that rules are tried on

std::unexpected<base::Error> busy_with_actions() {
  return base::fail(ErrorCode::database_busy, "Other requests for parked transactions and tables are under way");
}

}  // namespace

Engine::Engine(fs::path state_directory, const base::Clock& clock)
    : state_directory_(std::move(state_directory)), clock_(clock), started_at_(clock.unix_now()) {}

Engine::~Engine() = default;  // streams drain and join

base::Result<std::unique_ptr<Engine>> Engine::open(const fs::path& state_directory, const fs::path& key_file,
                                                   const base::Clock& clock, Peering::Address receives_at) {
  std::error_code error;
  fs::create_directories(state_directory / "streams", error);
  if (!error) fs::create_directories(state_directory / "spill", error);
  if (error) return std::unexpected(base::file_error(error.value(), "create folders in " + state_directory.string()));

  std::unique_ptr<Engine> engine(new Engine(state_directory, clock));
  THALWEG_ASSIGN(engine->identity_, Identity::open(state_directory / "identity"));
  engine->peering_ = std::make_unique<Peering>(*engine->identity_, std::move(receives_at));
  THALWEG_TRY(engine->read_desired(key_file));
  return engine;
}

base::Result<void> Engine::read_desired(const fs::path& key_file) {
  std::string text;
  const bool exists = fs::exists(desired_file());
  if (exists) {
    THALWEG_ASSIGN(text, base::read_file(desired_file(), 2 * control::kDesiredBytesMax));
  }
  const bool is_sealed = Seal::is_sealed(text);
  // A key that is made now would not read what there is.
  THALWEG_ASSIGN(Seal seal, Seal::open(key_file, !is_sealed));
  seal_.emplace(std::move(seal));
  if (!exists) return {};
  base::Result<std::string> opened = is_sealed ? seal_->read(text) : base::Result<std::string>(text);
  base::Result<DesiredState> desired =
      opened ? control::parse_stored_desired(*opened) : base::Result<DesiredState>(std::unexpected(opened.error()));
  if (!desired) {
    return base::fail(
        ErrorCode::state_directory_failed,
        fmt::format(
            "{} cannot be used ({}). Its streams may hold WAL at their sources: restore the file, or send the desired "
            "state again after moving it away.",
            desired_file().string(), desired.error().message));
  }
  if (!is_sealed) {
    THALWEG_TRY(write_desired(text));
    base::log_event(base::LogLevel::info, "desired_state_encrypted", {{"file", desired_file().string()}});
  }
  revision_ = desired->revision;
  reconcile(*desired);
  return {};
}

base::Result<void> Engine::write_desired(std::string_view text) const {
  THALWEG_ASSIGN(const std::string sealed, seal_->close(text));
  return base::write_file_atomically(desired_file(), sealed, 0600);
}

bool Engine::stop(std::chrono::seconds patience) {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  abandon_ = true;
  auto streams = all();
  for (const auto& stream : streams) stream->request_stop();
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (!std::ranges::all_of(streams, [](const auto& stream) { return stream->has_ended(); })) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

base::Result<void> Engine::check_successor(const DesiredState& next) const {
  std::lock_guard lock(mutex_);
  if (stopping_) return base::fail(ErrorCode::engine_stopping, "The engine is stopping");
  if (next.revision < revision_) {
    return base::fail(ErrorCode::desired_state_conflict,
                      fmt::format("Revision {} is older than the stored {}", next.revision, revision_));
  }
  for (const auto& [id, stream] : streams_) {
    const control::StreamStatus status = stream->status();
    const auto found = std::ranges::find(next.streams, id, &StreamDefinition::id);
    const bool kept = found != next.streams.end();
    if (kept) THALWEG_TRY(check_destinations(*found, stream->desired(), status));
    if (!kept && status.state != control::State::dropped) {
      return base::fail(
          ErrorCode::desired_state_conflict,
          fmt::format("Stream {} is left out but has not been DROPPED: its slot would hold WAL forever", id));
    }
  }
  return {};
}

void Engine::add_unknown(DesiredState& desired) const {
  std::lock_guard lock(mutex_);
  for (const auto* ids : {&desired.kept, &desired.dropped}) {
    for (const std::string& id : *ids) {
      const auto found = streams_.find(id);
      if (found == streams_.end()) continue;  // it is gone, as whoever asks wants in the end
      StreamDefinition own = found->second->desired();
      if (ids == &desired.dropped) own.status = control::DesiredStatus::dropped;
      desired.streams.push_back(std::move(own));
    }
  }
  desired.kept.clear();
  desired.dropped.clear();
}

base::Result<void> Engine::put_desired(DesiredState desired) {
  std::lock_guard one_at_a_time(put_mutex_);
  add_unknown(desired);
  THALWEG_TRY(check_successor(desired));
  if (auto stored = write_desired(control::serialise(desired)); !stored) {
    stored.error().message =
        fmt::format("The desired state stays at revision {}: {}", revision_, stored.error().message);
    return stored;
  }
  {
    std::lock_guard lock(mutex_);
    revision_ = desired.revision;
  }
  base::log_event(base::LogLevel::info, "desired_state",
                  {{"revision", desired.revision}, {"streams", desired.streams.size()}});
  reconcile(desired);
  return {};
}

void Engine::reconcile(const DesiredState& desired) {
  std::vector<std::shared_ptr<Stream>> gone;  // joined outside the lock
  std::lock_guard lock(mutex_);
  for (const StreamDefinition& definition : desired.streams) {
    auto found = streams_.find(definition.id);
    if (found == streams_.end()) {
      streams_.emplace(definition.id,
                       std::make_shared<Stream>(definition, desired.revision, state_directory_, clock_, *peering_));
    } else {
      found->second->desire(definition, desired.revision);
    }
  }
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (std::ranges::find(desired.streams, at->first, &StreamDefinition::id) != desired.streams.end()) {
      ++at;
      continue;
    }
    at->second->forget();
    gone.push_back(at->second);
    at = streams_.erase(at);
  }
}

std::vector<std::shared_ptr<Stream>> Engine::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Stream>> out;
  for (const auto& [id, stream] : streams_) out.push_back(stream);
  return out;
}

base::Result<std::shared_ptr<Stream>> Engine::find(std::string_view stream_id) const {
  std::lock_guard lock(mutex_);
  auto found = streams_.find(stream_id);
  if (found == streams_.end())
    return base::fail(ErrorCode::unknown_stream, fmt::format("There is no stream {}", stream_id));
  return found->second;
}

control::EngineStatus Engine::engine() const {
  std::vector<std::string> wal_archives = shipment::archive_names(state_directory_ / shipment::kArchivesFile);
  std::lock_guard lock(mutex_);
  return {.version = THALWEG_VERSION,
          .started_at = started_at_,
          .hostname = hostname(),
          .pid = ::getpid(),
          .desired_revision = revision_,
          .identity = identity_->view(),
          .propagation_listen = peering_->listen_address(),
          .wal_archives = std::move(wal_archives)};
}

std::vector<control::StreamStatus> Engine::status() const {
  std::vector<control::StreamStatus> out;
  for (const auto& stream : all()) out.push_back(stream->status());
  return out;
}

control::EngineStats Engine::stats() const {
  control::EngineStats out;
  out.sampled_at = clock_.unix_now();
  out.monotonic_ns = clock_nanos(CLOCK_MONOTONIC);
  out.resident_bytes = resident_bytes();
  out.cpu_ns = clock_nanos(CLOCK_PROCESS_CPUTIME_ID);
  std::error_code error;
  const fs::space_info disk = fs::space(state_directory_ / "spill", error);  // may be a disk of its own
  if (!error) {
    out.disk_total_bytes = disk.capacity;
    out.disk_free_bytes = disk.available;
  }
  for (const auto& stream : all()) out.streams.push_back(stream->stats());
  return out;
}

base::Result<std::vector<control::RehearsalProblem>> Engine::rehearse(const control::RehearsalRequest& request) {
  const Place place = take_place(rehearsals_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other rehearsals are under way");
  instantiation::RehearsalOptions options{
      request.source_conninfo, request.destination_conninfo, {}, {}, {}, {}, &abandon_};
  for (const control::TableRef& table : request.tables) options.tables.push_back({table.schema, table.table});
  for (const control::TableRef& table : request.inserts_only) options.inserts_only.insert({table.schema, table.table});
  for (const auto& [table, steps] : request.transformations) {
    options.transformations[{table.schema, table.table}] = steps_of(steps, {});
  }
  for (const auto& [table, there] : request.names) {
    options.names.add({table.schema, table.table}, {there.schema, there.table});
  }
  THALWEG_ASSIGN(const auto found, instantiation::rehearse(options));
  std::vector<control::RehearsalProblem> out;
  for (const instantiation::Problem& problem : found) {
    out.push_back({.outcome = std::string(name_of(problem.outcome)),
                   .part = problem.part,
                   .table = problem.table,
                   .name = problem.name,
                   .message = problem.message,
                   .sqlstate = problem.sqlstate,
                   .statement = problem.statement,
                   .cure = problem.cure,
                   .cure_sql = problem.cure_sql});
  }
  return out;
}

base::Result<std::vector<control::RuleProblem>> Engine::check_rules(const control::RulesCheckRequest& request) {
  const Place place = take_place(rule_checks_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other checks of rules are under way");
  THALWEG_ASSIGN(pg::Connection source,
                 open_for_operator(request.source_conninfo, "thalweg rules check", {.abandon = &abandon_}));
  return find_rule_troubles(source, request, RulesTime(abandon_));
}

base::Result<control::RulesTrial> Engine::test_rules(const control::RulesTrialRequest& request) {
  const Place place = take_place(rule_checks_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other checks of rules are under way");
  THALWEG_ASSIGN(pg::Connection source, open_for_operator(request.source_conninfo, "thalweg rules test",
                                                          {.abandon = &abandon_, .answer_bytes_max = kSampleBytesMax}));
  return try_rules(source, request, RulesTime(abandon_),
                   [&](const control::RecentChanges& recent) -> base::Result<capture::TappedChanges> {
                     THALWEG_ASSIGN(const std::shared_ptr<Stream> stream, find(recent.stream));
                     const Place tap = take_place(taps_);
                     if (!tap) return base::fail(ErrorCode::database_busy, "Other tests of rules wait for changes");
                     auto taken = stream->recent_changes(request.table, recent.limit, recent.patience);
                     if (taken && taken->end == capture::TapEnd::closed) {
                       return base::fail(ErrorCode::engine_stopping, "The engine is stopping");
                     }
                     return taken;
                   });
}

base::Result<std::string> Engine::request_identity(const std::string& name) { return identity_->request(name); }

base::Result<control::IdentityView> Engine::install_identity(const std::string& certificate, const std::string& ca) {
  THALWEG_ASSIGN(control::IdentityView view, identity_->install(certificate, ca));
  THALWEG_TRY(peering_->renew());
  base::log_event(base::LogLevel::info, "identity_installed", {{"name", view.name}, {"fingerprint", view.fingerprint}});
  return view;
}

base::Result<void> Engine::retry(const control::StreamTarget& target) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  return stream->retry(target.destination);
}

base::Result<telemetry::LoggedConflicts> Engine::conflicts(const control::StreamTarget& target,
                                                           const telemetry::ConflictPart& part) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(listings_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other lists of transactions or conflicts are being read");
  return stream->conflicts(target.destination, part);
}

base::Result<std::vector<telemetry::LoggedCount>> Engine::conflict_counts(const control::StreamTarget& target) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(listings_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other lists of transactions or conflicts are being read");
  return stream->conflict_counts(target.destination);
}

base::Result<control::ParkedListView> Engine::errors(const control::StreamTarget& target,
                                                     const telemetry::ParkedPart& part) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(listings_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other lists of parked transactions are being read");
  return stream->errors(target.destination, part);
}

base::Result<telemetry::ParkedTree> Engine::error_tree(const control::StreamTarget& target, int64_t error_id,
                                                       const telemetry::TreePart& part) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(listings_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other lists of parked transactions are being read");
  return stream->error_tree(target.destination, error_id, part);
}

base::Result<control::ParkedContentsView> Engine::error_contents(const control::StreamTarget& target, int64_t error_id,
                                                                 const telemetry::ChangesPart& part) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(openings_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other parked transactions are being opened or tried");
  return stream->error_contents(target.destination, error_id, part);
}

base::Result<telemetry::TransactionSamples> Engine::transactions(const std::string& stream) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->transactions();
}

base::Result<telemetry::MarkerTrail> Engine::markers(const std::string& stream) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->markers();
}

base::Result<void> Engine::place_marker(const std::string& stream, const std::string& id, const std::string& label) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->place_marker(id, label);
}

base::Result<telemetry::SearchList> Engine::searches(const std::string& stream) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->searches();
}

base::Result<telemetry::SearchStatus> Engine::begin_search(const std::string& stream,
                                                           telemetry::SearchRequest request) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->begin_search(std::move(request), take_place(searches_));
}

base::Result<telemetry::FoundPart> Engine::search(const std::string& stream, const std::string& id,
                                                  const telemetry::SearchPart& part) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->search(id, part);
}

base::Result<void> Engine::end_search(const std::string& stream, const std::string& id) {
  THALWEG_ASSIGN(const std::shared_ptr<Stream> found, find(stream));
  return found->end_search(id);
}

base::Result<control::ExecutionState> Engine::execute_error(const control::StreamTarget& target,
                                                            const telemetry::ParkedChoice& choice) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(actions_);
  if (!place) return busy_with_actions();
  return stream->execute_error(target.destination, choice);
}

base::Result<control::DryRunView> Engine::dry_run_error(const control::StreamTarget& target, int64_t error_id,
                                                        const std::string& role) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(openings_);
  if (!place) return base::fail(ErrorCode::database_busy, "Other parked transactions are being opened or tried");
  return stream->dry_run_error(target.destination, error_id, role);
}

base::Result<void> Engine::edit_error(const control::StreamTarget& target, int64_t error_id, uint64_t change,
                                      const std::optional<telemetry::ParkedEdit>& edit, const std::string& version) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(actions_);
  if (!place) return busy_with_actions();
  return stream->edit_error(target.destination, error_id, change, edit, version);
}

base::Result<void> Engine::drop_error(const control::StreamTarget& target, int64_t error_id) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(actions_);
  if (!place) return busy_with_actions();
  return stream->drop_error(target.destination, error_id);
}

base::Result<void> Engine::copy_table(const control::StreamTarget& target, const control::TableRef& table) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(actions_);
  if (!place) return busy_with_actions();
  return stream->copy_table(target.destination, table);
}

base::Result<void> Engine::accept_table(const control::StreamTarget& target, const control::TableRef& table) {
  THALWEG_ASSIGN(std::shared_ptr<Stream> stream, find(target.stream));
  const Place place = take_place(actions_);
  if (!place) return busy_with_actions();
  return stream->accept_table(target.destination, table);
}

}  // namespace thalweg::daemon
