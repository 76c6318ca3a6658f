#include "daemon/stream.h"

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "base/log.h"
#include "control/old_form.h"
#include "daemon/former_backlog.h"
#include "daemon/kind_change.h"
#include "daemon/row_security.h"
#include "daemon/source_servers.h"
#include "daemon/stream_removal.h"
#include "daemon/stream_status.h"
#include "shipment/archives_file.h"

// The supervisor's part of a Stream; stream_view.cc has the reads of the control API.

namespace thalweg::daemon {
namespace {

using base::Error;
using base::ErrorCode;
using control::CaptureKind;
using control::DesiredStatus;
using control::StreamDefinition;

constexpr std::chrono::seconds kLookPatience{5};

// The only destination that takes changes is paused, so nothing is captured.
bool is_paused_with_destination(const StreamDefinition& definition) {
  const auto* const direct = direct_destination(definition);
  return direct != nullptr && direct->status == DesiredStatus::disabled;
}

CaptureKind other_kind(CaptureKind kind) { return kind == CaptureKind::wal ? CaptureKind::logical : CaptureKind::wal; }

State first_state(const StreamDefinition& definition) {
  if (definition.status == DesiredStatus::dropped) return State::dropping;
  const bool is_paused = definition.status == DesiredStatus::disabled || is_paused_with_destination(definition);
  return is_paused ? State::disabled : State::initializing;
}

}  // namespace

Stream::Stream(StreamDefinition definition, uint64_t revision, const std::filesystem::path& state_directory,
               const base::Clock& clock, Peering& peering)
    : id_(definition.id),
      spill_directory_(state_directory / "spill" / definition.id),
      archives_file_(state_directory / shipment::kArchivesFile),
      clock_(clock),
      peering_(peering),
      memory_(state_directory / "streams", definition.id),
      desired_(std::move(definition)),
      revision_(revision),
      life_(first_state(desired_)),
      backoff_(std::hash<std::string>{}(id_)) {
  if (auto remembered = memory_.load(); remembered && remembered->fingerprint == control::fingerprint(desired_)) {
    life_ = Lifecycle(remembered->state);
    error_ = remembered->error;
    has_news_ = false;
  }
  watch_tables(desired_);
  supervisor_ = std::jthread([this] { supervise(); });
}

Stream::~Stream() {
  request_stop();
  supervisor_.join();
}

void Stream::desire(StreamDefinition definition, uint64_t revision) {
  bool masks_otherwise = false;
  {
    std::lock_guard lock(mutex_);
    revision_ = revision;
    if (definition == desired_) return;
    masks_otherwise = definition.transformations != desired_.transformations;
    take_desired(std::move(definition));
  }
  // They have found what may be masked from now on.
  if (masks_otherwise) searches_.end_all();
}

void Stream::take_desired(StreamDefinition definition) {
  if (const auto id = control::adopt_id(desired_, definition)) adopt(*id);
  // Changes with which the sessions can go on reach them through take_up(); any other change interrupts.
  if (definition.status != desired_.status || definition.force != desired_.force ||
      !goes_on_with(desired_, definition)) {
    interrupt_ = true;
  }
  if (retry_at_) retry_asked_ = true;  // there are none now, and what changed may be what they lacked
  desired_ = std::move(definition);
  watch_tables(desired_);
  has_news_ = true;
  changed_.notify_all();
}

// The destination of a document without a list gets the name that it has in the list, while it runs.
void Stream::adopt(const std::string& id) {
  const std::string former(control::kOldFormId);
  const auto adopted = std::ranges::find(desired_.destinations, former, &control::DestinationDefinition::id);
  adopted->id = id;
  {
    std::lock_guard lock(memories_lock_);
    auto memory = memories_.extract(former);
    memory.key() = id;
    memories_.insert(std::move(memory));
  }
  executions_.rename(former, id);
  if (auto named = name_former_backlog(spill_directory_, id); !named) {
    base::log_error("former_backlog_not_named", named.error(), {{"stream", id_}, {"destination", id}});
  }
  std::shared_lock lock(sessions_lock_);
  Destination* const found = sessions_ ? sessions_->find(former) : nullptr;
  if (found != nullptr) found->rename(id);
  // A start that is under way still has the other name; a backlog is in a folder of that name.
  if (found == nullptr || adopted->backlog) interrupt_ = true;
}

// A stream that does not run has its tables watched just the same.
void Stream::watch_tables(const StreamDefinition& definition) {
  for (const control::DestinationDefinition& destination : definition.destinations) {
    memory_of(destination.id).tables.watch(control::delivery_to(definition, destination));
  }
}

DestinationMemory& Stream::memory_of(const std::string& destination) const {
  std::lock_guard lock(memories_lock_);
  std::unique_ptr<DestinationMemory>& memory = memories_[destination];
  if (!memory) {
    memory = std::make_unique<DestinationMemory>(clock_, spill_directory_ / ("in-effect-" + destination + ".json"));
  }
  return *memory;
}

base::Result<void> Stream::retry(const std::string& destination) {
  if (!destination.empty()) {
    const StreamDefinition definition = desired();
    THALWEG_TRY(desired_of(destination));
    if (const auto* const direct = direct_destination(definition); direct == nullptr || direct->id != destination) {
      std::shared_lock lock(sessions_lock_);
      if (Destination* const found = sessions_ ? sessions_->find(destination) : nullptr) found->retry();
      return {};
    }
  }
  std::lock_guard lock(mutex_);
  if (life_.state() != State::aborted && !retry_at_) return {};  // it works, or is already trying
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
  tap_.close();
  searches_.close();
  changed_.notify_all();
}

void Stream::forget() { clear_memory(); }

StreamDefinition Stream::desired() const {
  std::lock_guard lock(mutex_);
  return desired_;
}

void Stream::observe(State state) {
  std::lock_guard lock(mutex_);
  observe_locked(state);
}

void Stream::observe_locked(State state) {
  if (!life_.enter(state)) return;
  base::log_event(base::LogLevel::info, "stream_state",
                  {{"stream", id_}, {"status", life_.names().status}, {"phase", life_.names().phase}});
}

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

// Forgets what belongs to an earlier definition, or to an error that is over.
void Stream::remember_fresh_start() {
  clear_memory();
  clear_error();
  backoff_.reset();
  in_use_.reset();
}

void Stream::be_disabled() {
  {
    std::lock_guard lock(mutex_);
    taken_up_.reset();
  }
  {
    std::lock_guard lock(memories_lock_);
    for (const auto& [destination, memory] : memories_) memory->retries.clear();
  }
  observe(State::disabled);
}

void Stream::be_enabled() {
  while (!is_interrupted()) {
    const StreamDefinition definition = desired();
    // A try after an error stays RETRYING until it works.
    if (!has_error() && !is_paused_with_destination(definition)) observe(State::initializing);
    const auto begun = std::chrono::steady_clock::now();
    auto ran = run_sessions(definition);
    backoff_.worked(std::chrono::steady_clock::now() - begun);
    if (is_interrupted()) break;
    if (ran) continue;  // the stream has changed its capture_kind
    base::Error error = std::move(ran).error();
    if (!heals_by_itself(definition, error)) {
      const StreamDefinition now = desired();  // names may have changed
      const auto* const direct = direct_destination(now);
      if (direct == nullptr) return abort_with(now, error);
      // A table's trouble shows in many ways; the next start stops the table, if that is what is wanted.
      TableWatch& tables = memory_of(direct->id).tables;
      tables.look_now(kLookPatience, error.table);
      const auto trouble = tables.unresolved();
      if (trouble && direct->parameters.stops_tables()) continue;
      if (trouble) return abort_with(now, *trouble);
      return abort_with(now, with_row_security(error, control::delivery_to(now, *direct), &abandon_));
    }
    wait_to_retry(error);
  }
  // Interrupted: by the engine's stop, or by news that the supervisor takes up next.
  std::lock_guard lock(mutex_);
  if (!stopping_) has_news_ = true;
}

base::Result<void> Stream::run_sessions(const StreamDefinition& definition) {
  THALWEG_TRY(move_former_backlog(spill_directory_, definition));
  THALWEG_ASSIGN(const StreamDefinition at_server, with_server_to_read(definition));
  if (at_server.source.reads_standby && at_server.source.conninfo.role == base::ServerRole::primary) {
    base::log_event(base::LogLevel::info, "source_read_at_primary",
                    {{"stream", definition.id}, {"reason", "the stream's slot is there"}});
  }
  const bool captures = !is_paused_with_destination(definition);
  StreamDefinition by_present_kind = at_server;
  const DatabaseWork work{.stop = &interrupt_, .board = &board_};
  if (captures) {
    THALWEG_ASSIGN(by_present_kind.capture_kind, present_kind(at_server, work, spill_directory_));
  }
  StreamDefinition in_effect = definition;
  const auto on_capture = [this] {
    clear_error();
    in_use_.reset();
  };
  const auto goes_on = [this] {
    std::lock_guard lock(mutex_);
    return !stopping_ && desired_.status == DesiredStatus::enabled;
  };
  {
    std::unique_lock lock(sessions_lock_);
    sessions_ = std::make_unique<Sessions>(
        SessionsOptions{.definition = by_present_kind,
                        .spill_directory = spill_directory_,
                        .archives_file = archives_file_,
                        .wanted_kind = captures ? std::optional(at_server.capture_kind) : std::nullopt,
                        .clock = &clock_,
                        .peering = &peering_,
                        .board = &board_,
                        .tap = &tap_,
                        .stop = &interrupt_,
                        .goes_on = goes_on,
                        .set_state = [this](State state) { observe(state); },
                        .on_capture = on_capture,
                        .on_look = [&] { take_up(in_effect); },
                        .note_trouble = [this](const std::optional<Error>& trouble) { note_trouble(trouble); },
                        .memory_of = [this](const std::string& id) { return &memory_of(id); }});
  }
  note_taken_up(definition);
  auto ran = sessions_->run();
  const bool is_ready = ran && sessions_->changes_kind() && !is_interrupted();
  {
    std::unique_lock lock(sessions_lock_);
    sessions_.reset();
  }
  if (!is_ready) return ran;
  by_present_kind.capture_kind = other_kind(by_present_kind.capture_kind);
  return switch_kind(by_present_kind, work, spill_directory_);
}

void Stream::take_up(StreamDefinition& in_effect) {
  {
    std::lock_guard lock(mutex_);
    if (interrupt_) return;
    has_news_ = false;  // what does not interrupt is taken up right here
    if (desired_ == in_effect) return;
    in_effect = desired_;
  }
  sessions_->take_up(in_effect);
  note_taken_up(in_effect);
}

void Stream::note_taken_up(const StreamDefinition& definition) {
  auto taken_up = std::make_shared<TakenUp>(TakenUp{.definition = definition, .judging = {}});
  for (const control::DestinationDefinition& destination : definition.destinations) {
    taken_up->judging[destination.id] = judging(control::delivery_to(definition, destination));
  }
  std::lock_guard lock(mutex_);
  taken_up_ = std::move(taken_up);
}

// A part that recovers by itself, such as a link to another engine, makes the stream RETRYING as well.
void Stream::note_trouble(const std::optional<Error>& trouble) {
  std::lock_guard lock(mutex_);
  if (trouble) {
    if (!error_ || error_->error.message != trouble->message) {
      error_ = control::ReportedError{*trouble, clock_.unix_now()};
    }
    return observe_locked(State::retrying);
  }
  if (!error_) return;
  error_.reset();
  retry_at_.reset();
  observe_locked(State::catching_up);
}

bool Stream::heals_by_itself(const StreamDefinition& definition, const Error& error) {
  if (daemon::heals_by_itself(error)) return true;
  if (error.code == ErrorCode::corrupt_frame) return definition.receive_from.has_value();  // it is sent again
  return error.code == ErrorCode::stream_in_use && in_use_.lasts();
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
  if (life_.state() != State::dropping) observe_locked(State::retrying);
  changed_.wait_for(lock, delay, [&] { return interrupt_.load() || retry_asked_; });
  retry_asked_ = false;
}

void Stream::abort_with(const StreamDefinition& definition, const Error& error) {
  base::log_error("stream_aborted", error, {{"stream", id_}});
  control::ReportedError reported{error, clock_.unix_now()};
  if (auto stored =
          memory_.store({.state = State::aborted, .error = reported, .fingerprint = control::fingerprint(definition)});
      !stored) {
    base::log_error("stream_memory_failed", stored.error(), {{"stream", id_}});
  }
  {
    std::lock_guard lock(mutex_);
    error_ = reported;
    retry_at_.reset();
  }
  observe(State::aborted);
}

void Stream::be_dropped(const StreamDefinition& definition) {
  clear_error();
  searches_.end_all();
  while (!is_interrupted()) {
    observe(State::dropping);
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
              memory_.store({.state = State::dropped, .error = left, .fingerprint = control::fingerprint(definition)});
          !stored) {
        base::log_error("stream_memory_failed", stored.error(), {{"stream", id_}});
      }
      for (const auto& destination : definition.destinations) memory_of(destination.id).progress.clear();
      {
        std::lock_guard lock(mutex_);
        error_ = left;
        retry_at_.reset();
      }
      return observe(State::dropped);
    }
    if (is_interrupted()) break;
    if (!heals_by_itself(definition, removed.error())) return abort_with(definition, removed.error());
    wait_to_retry(removed.error());
  }
  std::lock_guard lock(mutex_);
  if (!stopping_) has_news_ = true;
}

}  // namespace thalweg::daemon
