#include "daemon/stream.h"

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "base/log.h"
#include "daemon/healing.h"
#include "daemon/source_servers.h"
#include "daemon/stream_removal.h"

// The supervisor's half of Stream; what the control API reads is in stream_view.cc.

namespace thalweg::daemon {
namespace {

using base::Error;
using base::ErrorCode;
using control::DesiredStatus;
using control::StreamDefinition;

constexpr std::chrono::milliseconds kLook{100};  // between two looks at a running pipeline
constexpr std::chrono::milliseconds kDrainPatience{30'000};
constexpr std::chrono::seconds kLookPatience{5};

bool is_same_branch(const control::DestinationDefinition& from, const control::DestinationDefinition& to) {
  return from.id == to.id && from.status == to.status && from.force == to.force && from.conninfo == to.conninfo &&
         from.send_to == to.send_to && !control::needs_restart(from.parameters, to.parameters);
}

// What capture, queue and apply are built from. The rest can change under a running pipeline.
bool needs_another_pipeline(const StreamDefinition& from, const StreamDefinition& to) {
  return from.source.conninfo != to.source.conninfo || from.destination.conninfo != to.destination.conninfo ||
         from.send_to != to.send_to || from.receive_from != to.receive_from || from.tables != to.tables ||
         from.inserts_only != to.inserts_only || from.accepted_code != to.accepted_code ||
         control::needs_restart(from.parameters, to.parameters) ||
         !std::ranges::equal(from.destinations, to.destinations, is_same_branch);
}

}  // namespace

Stream::Stream(StreamDefinition definition, const std::filesystem::path& state_directory, const base::Clock& clock,
               Peering& peering)
    : id_(definition.id),
      spill_directory_(state_directory / "spill" / definition.id),
      clock_(clock),
      peering_(peering),
      memory_(state_directory / "streams", definition.id),
      progress_(clock),
      desired_(std::move(definition)),
      backoff_(std::hash<std::string>{}(id_)) {
  if (auto remembered = memory_.load(); remembered && remembered->fingerprint == control::fingerprint(desired_)) {
    status_ = remembered->status == "DROPPED" ? "DROPPED" : "ABORTED";
    error_ = remembered->error;
    has_news_ = false;
  } else if (desired_.status != DesiredStatus::disabled) {
    status_ = "ENABLED";
    phase_ = desired_.status == DesiredStatus::dropped ? "DROPPING" : "INITIALIZING";
  }
  watch_tables(desired_);
  supervisor_ = std::jthread([this] { supervise(); });
}

Stream::~Stream() {
  request_stop();
  supervisor_.join();
}

void Stream::desire(StreamDefinition definition) {
  std::lock_guard lock(mutex_);
  if (definition == desired_) return;
  // Live parameters and names reach a running pipeline through watch(); everything else interrupts.
  if (definition.status != desired_.status || definition.force != desired_.force ||
      needs_another_pipeline(desired_, definition)) {
    interrupt_ = true;
  }
  desired_ = std::move(definition);
  watch_tables(desired_);
  has_news_ = true;
  changed_.notify_all();
}

// A stream that does not run has its tables watched just the same.
void Stream::watch_tables(const StreamDefinition& definition) {
  watch_of("").watch(definition);
  for (const control::DestinationDefinition& one : definition.destinations) {
    StreamDefinition branch = control::branch_of(definition, one);
    if (definition.status != DesiredStatus::enabled) branch.status = definition.status;
    watch_of(one.id).watch(branch);
  }
}

TableWatch& Stream::watch_of(const std::string& destination) const {
  std::lock_guard lock(watches_lock_);
  std::unique_ptr<TableWatch>& watch = watches_[destination];
  if (!watch) watch = std::make_unique<TableWatch>(clock_);
  return *watch;
}

base::Result<void> Stream::retry(const std::string& destination) {
  if (!destination.empty()) {
    THALWEG_TRY(check_destination(destination));
    std::shared_lock lock(pipeline_lock_);
    if (Branch* const branch = fan_out_ ? fan_out_->find(destination) : nullptr) branch->retry();
    return {};
  }
  std::lock_guard lock(mutex_);
  if (status_ != "ABORTED" && !retry_at_) return {};  // it works, or is already trying
  clear_memory();  // what was accepted holds after a crash, too: the next engine would leave the stream ABORTED
  retry_asked_ = true;
  has_news_ = true;
  changed_.notify_all();
  return {};
}

void Stream::clear_memory() {
  if (auto cleared = memory_.clear(); !cleared)
    base::log_error("stream_memory_failed", cleared.error(), {{"stream", id_}});
}

void Stream::request_stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  interrupt_ = true;
  abandon_ = true;
  changed_.notify_all();
}

void Stream::forget() { clear_memory(); }

StreamDefinition Stream::desired() const {
  std::lock_guard lock(mutex_);
  return desired_;
}

void Stream::observe(std::string_view status, std::string_view phase) {
  std::lock_guard lock(mutex_);
  if (status_ == status && phase_ == phase) return;
  status_ = status;
  phase_ = phase;
  base::log_event(base::LogLevel::info, "stream_state", {{"stream", id_}, {"status", status}, {"phase", phase}});
}

void Stream::set_phase(std::string_view phase) { observe("ENABLED", phase); }

void Stream::clear_error() {
  std::lock_guard lock(mutex_);
  error_.reset();
  retry_at_.reset();
}

bool Stream::has_error() const {
  std::lock_guard lock(mutex_);
  return error_.has_value();
}

void Stream::supervise() {
  while (true) {
    StreamDefinition definition;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return has_news_ || stopping_; });
      if (stopping_) break;
      has_news_ = false;
      retry_asked_ = false;
      interrupt_ = false;
      definition = desired_;
    }
    if (definition.status == DesiredStatus::dropped) {
      be_dropped(definition);
    } else {
      remember_fresh_start();
      if (definition.status == DesiredStatus::enabled) {
        be_enabled();
      } else {
        be_disabled();
      }
    }
  }
  ended_ = true;
}

// What was remembered belongs to a definition, or to an error, that is history now.
void Stream::remember_fresh_start() {
  clear_memory();
  clear_error();
  backoff_.reset();
  in_use_since_.reset();
}

void Stream::be_disabled() { observe("DISABLED", "STOPPED"); }

StartContext Stream::start_context(const StreamDefinition& definition) {
  return {.destination = "",
          .shares_capture = definition.receive_from && definition.receive_from->shared_capture,
          .spill_directory = spill_directory_,
          .clock = &clock_,
          .peering = &peering_,
          .progress = &progress_,
          .work = {.stop = &interrupt_, .board = &board_},
          .set_phase = [this](std::string_view phase) { set_phase(phase); }};
}

void Stream::be_enabled() {
  while (!is_interrupted()) {
    const StreamDefinition definition = desired();
    if (!has_error()) set_phase("INITIALIZING");  // a try after an error stays RETRYING until it works
    auto ran = run_once(definition);
    if (ran || is_interrupted()) break;
    base::Error error = std::move(ran).error();
    if (!heals_by_itself(definition, error)) {
      // A table's trouble shows in many ways; the next start stops the table, if that is what is wanted.
      watch_of("").look_now(kLookPatience, error.table);
      const auto trouble = watch_of("").unresolved();
      if (trouble && definition.parameters.stops_tables()) continue;
      return abort_with(definition, trouble.value_or(error));
    }
    wait_to_retry(error);
  }
  // Interrupted: by the engine's stop, or by news that the supervisor takes up next.
  std::lock_guard lock(mutex_);
  if (!stopping_) has_news_ = true;
}

base::Result<void> Stream::run_once(const StreamDefinition& definition) {
  if (definition.fans_out()) return run_fan_out(definition);
  const uint64_t error_changes = error_changes_;
  THALWEG_ASSIGN(const StreamDefinition at_server, with_server_to_read(definition));
  THALWEG_ASSIGN(StartedStream started, start_stream(at_server, start_context(definition)));
  watch_of("").refresh();
  {
    std::unique_lock lock(pipeline_lock_);
    pipeline_ = std::move(started.pipeline);
    if (error_changes_ != error_changes && pipeline_->apply() != nullptr) pipeline_->apply()->note_errors_changed();
  }
  clear_error();
  in_use_since_.reset();
  set_phase("CATCHING UP");
  auto begun = std::chrono::steady_clock::now();
  auto watched = watch(definition, started.constraints_from);
  backoff_.worked(std::chrono::steady_clock::now() - begun);
  base::Lsn applied = pipeline_->positions().applied;
  if (watched) {
    observe("ENABLED", "DRAINING");
    stop_pipeline(true);
    // The tables agree now with one state of the source: indexes and constraints that had to wait can be made.
    if (!is_interrupted() && started.constraints_from)
      return add_late_constraints(at_server, start_context(definition), applied);
  } else {
    stop_pipeline(false);
  }
  return watched;
}

base::Result<void> Stream::run_fan_out(const StreamDefinition& definition) {
  THALWEG_ASSIGN(const StreamDefinition at_server, with_server_to_read(definition));
  StreamDefinition in_effect = definition;
  const auto on_capture = [this] {
    clear_error();
    in_use_since_.reset();
  };
  const auto set_phase_and_parameters = [&](std::string_view phase) {
    set_phase(phase);
    take_up_live_parameters(in_effect);
  };
  const auto goes_on = [this] {
    std::lock_guard lock(mutex_);
    return !stopping_ && desired_.status == DesiredStatus::enabled;
  };
  {
    std::unique_lock lock(pipeline_lock_);
    fan_out_ =
        std::make_unique<FanOut>(FanOutOptions{.definition = at_server,
                                               .spill_directory = spill_directory_,
                                               .clock = &clock_,
                                               .peering = &peering_,
                                               .board = &board_,
                                               .stop = &interrupt_,
                                               .goes_on = goes_on,
                                               .set_phase = set_phase_and_parameters,
                                               .on_capture = on_capture,
                                               .watch_of = [this](const std::string& id) { return &watch_of(id); }});
  }
  const auto begun = std::chrono::steady_clock::now();
  auto ran = fan_out_->run();
  backoff_.worked(std::chrono::steady_clock::now() - begun);
  std::unique_lock lock(pipeline_lock_);
  fan_out_.reset();
  return ran;
}

void Stream::take_up_live_parameters(StreamDefinition& in_effect) {
  {
    std::lock_guard lock(mutex_);
    if (interrupt_) return;
    has_news_ = false;  // what does not interrupt is taken up right here
    if (desired_ == in_effect) return;
    in_effect = desired_;
  }
  fan_out_->set_parameters(in_effect);
}

// Returns when interrupted, when late constraints can be added, or when a table has to be stopped; fails when the
// pipeline does, or with a table's trouble.
base::Result<void> Stream::watch(const StreamDefinition& definition, base::Lsn constraints_from) {
  control::StreamParameters in_effect = definition.parameters;
  while (!is_interrupted()) {
    if (auto failed = pipeline_->failure()) return std::unexpected(*failed);
    observe_pipeline();
    if (auto trouble = watch_of("").unresolved()) {
      if (definition.parameters.stops_tables()) return {};  // the next start does it
      return std::unexpected(std::move(*trouble));
    }
    const base::Lsn applied = pipeline_->positions().applied;
    if (constraints_from && applied >= constraints_from) return {};

    std::unique_lock lock(mutex_);
    if (!interrupt_) has_news_ = false;  // what does not interrupt is taken up right here
    if (desired_.parameters != in_effect && !interrupt_) {
      in_effect = desired_.parameters;
      lock.unlock();
      pipeline_->set_parameters(in_effect);
      lock.lock();
    }
    changed_.wait_for(lock, kLook, [&] { return interrupt_.load(); });
  }
  return {};
}

// A pipeline that mends something by itself, a link to another engine, is RETRYING as well.
void Stream::observe_pipeline() {
  if (auto trouble = pipeline_->trouble()) {
    {
      std::lock_guard lock(mutex_);
      if (!error_ || error_->error.message != trouble->message) {
        error_ = control::ReportedError{*trouble, clock_.unix_now()};
      }
    }
    return set_phase("RETRYING");
  }
  if (has_error()) {
    clear_error();
    set_phase("CATCHING UP");
  }
  if (pipeline_->caught_up()) set_phase("REPLICATING");
}

void Stream::stop_pipeline(bool drain) {
  if (drain) pipeline_->drain(kDrainPatience);
  pipeline_->cut();
  std::unique_lock lock(pipeline_lock_);
  pipeline_.reset();
}

bool Stream::heals_by_itself(const StreamDefinition& definition, const Error& error) {
  if (daemon::heals_by_itself(error)) return true;
  if (error.code == ErrorCode::corrupt_frame) return definition.receive_from.has_value();  // it is sent again
  if (error.code != ErrorCode::stream_in_use) return false;
  // Another engine, or the sessions of one that was killed and that the server has not missed yet.
  auto now = std::chrono::steady_clock::now();
  if (!in_use_since_) in_use_since_ = now;
  return now - *in_use_since_ < kInUsePatience;
}

void Stream::wait_to_retry(const Error& error) {
  // The other engine has come back and waits for this one's new start: what was waited before is over.
  if (error.code == ErrorCode::sender_restarted || error.code == ErrorCode::receiver_restarted) backoff_.reset();
  std::chrono::milliseconds delay = backoff_.next();
  base::log_error("stream_retrying", error, {{"stream", id_}, {"delay_ms", static_cast<int64_t>(delay.count())}});
  std::unique_lock lock(mutex_);
  base::UnixMicros now = clock_.unix_now();
  error_ = control::ReportedError{error, now};
  retry_at_ = base::UnixMicros{now.value + std::chrono::microseconds(delay).count()};
  if (phase_ != "DROPPING") phase_ = "RETRYING";
  changed_.wait_for(lock, delay, [&] { return interrupt_.load() || retry_asked_; });
  retry_asked_ = false;
}

void Stream::abort_with(const StreamDefinition& definition, const Error& error) {
  base::log_error("stream_aborted", error, {{"stream", id_}});
  control::ReportedError reported{error, clock_.unix_now()};
  if (auto stored =
          memory_.store({.status = "ABORTED", .error = reported, .fingerprint = control::fingerprint(definition)});
      !stored) {
    base::log_error("stream_memory_failed", stored.error(), {{"stream", id_}});
  }
  {
    std::lock_guard lock(mutex_);
    error_ = reported;
    retry_at_.reset();
  }
  observe("ABORTED", "STOPPED");
}

void Stream::be_dropped(const StreamDefinition& definition) {
  clear_error();
  while (!is_interrupted()) {
    observe("ENABLED", "DROPPING");
    auto removed = remove_stream(definition, {.stop = &interrupt_, .board = &board_});
    if (removed) {
      std::error_code error;
      std::filesystem::remove_all(spill_directory_, error);
      if (error)
        base::log_error("spill_not_removed", base::file_error(error.value(), "remove " + spill_directory_.string()),
                        {{"stream", id_}});
      std::optional<control::ReportedError> left;
      if (!removed->empty()) {
        left = control::ReportedError{base::fail(ErrorCode::database_unreachable, *removed).error(), clock_.unix_now()};
      }
      if (auto stored =
              memory_.store({.status = "DROPPED", .error = left, .fingerprint = control::fingerprint(definition)});
          !stored) {
        base::log_error("stream_memory_failed", stored.error(), {{"stream", id_}});
      }
      progress_.clear();
      {
        std::lock_guard lock(mutex_);
        error_ = left;
        retry_at_.reset();
      }
      return observe("DROPPED", "STOPPED");
    }
    if (is_interrupted()) break;
    if (!heals_by_itself(definition, removed.error())) return abort_with(definition, removed.error());
    wait_to_retry(removed.error());
  }
  std::lock_guard lock(mutex_);
  if (!stopping_) has_news_ = true;
}

}  // namespace thalweg::daemon
