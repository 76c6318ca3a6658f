#include "daemon/independent_destination.h"

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "base/log.h"
#include "daemon/row_security.h"
#include "daemon/source_objects.h"

// Its sessions, and what becomes of its errors; one try at it is in independent_destination_try.cc, its pauses and its
// end in independent_destination_desired.cc, what the control API reads in independent_destination_view.cc.

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using base::Lsn;
using Ending = DestinationCourse::Ending;
using Phase = DestinationCourse::Phase;

constexpr std::chrono::minutes kOnDiskFirst{1};  // of one that fell behind; doubling
constexpr std::chrono::minutes kOnDiskLast{30};
constexpr std::chrono::seconds kLookPatience{5};
constexpr std::chrono::minutes kSessionPauseLast{2};  // every session interrupts all destinations

}  // namespace

IndependentDestination::IndependentDestination(const DestinationOptions& options)
    : Destination(options, {.apply = options.directory / "apply", .rules = options.directory.parent_path()}),
      mined_wal_(mining_folder(options_.directory.parent_path())),
      space_(options_.directory, options_.delivery.destination.parameters.queue_spill_limit_bytes(), *options_.clock,
             spill::SpillSpace::kFreeBytesMin, "queue_spill_limit_mb"),
      session_backoff_(std::hash<std::string>{}(options_.delivery.destination.id), kSessionPauseLast),
      course_(options_.delivery.destination.status, options_.delivery.destination.force),
      rules_(options_.delivery.destination.rules),
      logs_(space_, options_.directory / "backlog", options_.delivery.stream.id, options_.delivery.destination.id),
      backoff_(std::hash<std::string>{}(options_.delivery.stream.id + options_.delivery.destination.id)) {}

IndependentDestination::~IndependentDestination() { end(); }

// --- a session

void IndependentDestination::begin_own_session(const SourceSlot& slot) {
  begin_session(slot);
  begun_at_ = std::chrono::steady_clock::now();
  session_due_.reset();
  std::lock_guard lock(mutex_);
  course_.begin();
  session_wish_ = SessionWish::none;
  lacks_from_ = {};
  caught_up_ = false;
}

void IndependentDestination::begin_removal() {
  begin_own_session({});
  thread_ = std::jthread([this] {
    be_dropped();
    enter(Phase::ended);
  });
}

void IndependentDestination::rest() {
  if (is_dropped()) begin_removal();
}

base::Result<void> IndependentDestination::begin(SessionStart& session) {
  if (is_dropped()) {
    begin_removal();
    return {};
  }
  const Lsn lacked = lacks_from();
  begin_own_session(session.slot);
  source_end_ = &session.source_end;
  THALWEG_TRY(base::make_folders(options_.directory / "backlog"));
  THALWEG_TRY(base::make_folders(options_.directory / "apply"));
  THALWEG_ASSIGN(const size_t removed, space_.clear());  // what was not durable
  static_cast<void>(removed);
  {
    std::unique_lock lock(session_lock_);
    // A destination knows the timeline of an earlier engine's logs. An engine that only sends does not.
    auto opened = logs_.begin_session(session.slot.history, !sends() && session.slot.history.timeline() > 1);
    // The destination's, not the stream's: it says so, and its frames wait on disk. One that has given up keeps its
    // error: whoever retries it meets this one.
    if (!opened && !has_given_up()) give_up_or_wait(opened.error());
    if (lacked && from_ <= lacked) logs_.give_up();
    EarlierLogs::Own own = logs_.own(source_.timeline);
    backlog_ = std::make_unique<queue::BacklogConsumer>(
        session.queue, session.next_consumer++, space_, *options_.clock,
        queue::BacklogOptions{.folder = std::move(own.folder),
                              .session = own.id,
                              .from = from_,
                              .on_disk_for = on_disk_for_,
                              .segment_bytes = options_.backlog_segment_bytes});
  }
  await_effect();
  session.spillables.push_back(backlog_.get());
  thread_ = std::jthread([this] {
    run();
    enter(Phase::ended);
  });
  return {};
}

void IndependentDestination::drain() { end_session(!needs_session()); }

void IndependentDestination::request_stop() { end_session(false); }

void IndependentDestination::end_session(bool drain) {
  {
    std::lock_guard lock(mutex_);
    course_.end(drain && backlog_ && !backlog_->statistics().on_disk);  // one that is behind keeps what is on disk
  }
  changed_.notify_all();
}

bool IndependentDestination::has_ended() const {
  std::lock_guard lock(mutex_);
  return course_.phase() == Phase::ended;
}

void IndependentDestination::end() {
  request_stop();
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(session_lock_);
  if (backlog_) backlog_->close();
  logs_.close(backlog_ ? backlog_->logged() : Lsn{});
  backlog_.reset();
}

base::Result<void> IndependentDestination::tend() {
  if (!backlog_ || is_dropped()) return {};
  std::lock_guard lock(mutex_);
  if (session_wish_ == SessionWish::now) return {};
  if (!backlog_->not_durable() && session_wish_ == SessionWish::none) {
    session_due_.reset();
    return {};
  }
  const auto now = std::chrono::steady_clock::now();
  if (!session_due_) {
    session_backoff_.worked(now - begun_at_);
    session_due_ = now + session_backoff_.next();
    if (const auto failure = backlog_->statistics().failure) {
      base::log_error("backlog_not_durable", *failure,
                      {{"stream", options_.delivery.stream.id}, {"destination", options_.delivery.destination.id}});
    }
  }
  if (now >= *session_due_) session_wish_ = SessionWish::now;
  return {};
}

bool IndependentDestination::needs_session() const {
  std::lock_guard lock(mutex_);
  return session_wish_ == SessionWish::now && !course_.is_dropped();
}

void IndependentDestination::wish_session() {
  std::lock_guard lock(mutex_);
  session_wish_ = SessionWish::now;
}

void IndependentDestination::forget() {
  std::lock_guard lock(mutex_);
  forgotten_ = true;
}

bool IndependentDestination::is_forgotten() const {
  std::lock_guard lock(mutex_);
  return forgotten_;
}

void IndependentDestination::keep_to_disk() {
  if (backlog_->statistics().on_disk) return;
  on_disk_for_ = std::clamp<std::chrono::milliseconds>(on_disk_for_ * 2, kOnDiskFirst, kOnDiskLast);
  wish_session();
  base::log_event(base::LogLevel::warning, "destination_behind",
                  {{"stream", options_.delivery.stream.id}, {"destination", options_.delivery.destination.id}});
}

Lsn IndependentDestination::lacks_from() const {
  std::lock_guard lock(mutex_);
  return lacks_from_;
}

Lsn IndependentDestination::confirmed() const {
  std::shared_lock lock(session_lock_);
  if (const Lsn lacked = lacks_from()) return lacked;
  Lsn out = std::max({from_, durable(), logs_.logged()});
  if (backlog_) out = std::max(out, backlog_->logged());
  return out;
}

control::Delivery IndependentDestination::present_delivery() const {
  control::Delivery delivery = options_.delivery;
  std::lock_guard lock(mutex_);
  delivery.destination.rules = rules_;
  return delivery;
}

// The logs of earlier sessions.
Lsn IndependentDestination::captured_before() const {
  std::shared_lock lock(session_lock_);
  return std::max(from_, logs_.logged());
}

// --- its thread

void IndependentDestination::run() {
  while (const auto delivery = await_try()) {
    if (is_dropped()) return be_dropped();
    if (is_disabled()) {
      be_disabled();
      continue;
    }
    const auto begun = std::chrono::steady_clock::now();
    const auto ran = run_once(*delivery);
    backoff_.worked(std::chrono::steady_clock::now() - begun);
    stop_consumer();
    const bool again = leave_backlog();
    bool was_cut_short = false;
    {
      std::lock_guard lock(mutex_);
      was_cut_short = course_.is_cut_short();
      if (course_.ending() == Ending::now || (course_.ending() == Ending::drained && ran)) return;
      course_.enter(Phase::resting);
    }
    const bool lacks = static_cast<bool>(lacks_from());
    if (!ran && !was_cut_short && !lacks) note_failure(ran.error());
    if ((!again || lacks) && !await_session()) return;
  }
}

// Rests until there is something to do: a try at that delivery, or what is desired instead. None: its session ends.
std::optional<control::Delivery> IndependentDestination::await_try() {
  std::unique_lock lock(mutex_);
  // An earlier session may have given up, or have set the time of the next try.
  const auto is_due = [&] { return course_.is_due(); };
  if (life_.state() == State::aborted) {
    changed_.wait(lock, is_due);
  } else if (retry_due_) {
    changed_.wait_until(lock, *retry_due_, is_due);
  }
  if (course_.ending() != Ending::none) return std::nullopt;
  retry_due_.reset();
  control::Delivery delivery = options_.delivery;
  if (course_.pauses()) return delivery;
  delivery.destination.rules = rules_;
  if (course_.begin_try()) error_.reset();
  if (!error_) observe_locked(State::initializing);
  return delivery;
}

// Only a new session brings what its agent had taken. False: this one ends. True: it is being dropped.
bool IndependentDestination::await_session() {
  std::unique_lock lock(mutex_);
  if (!course_.is_dropped()) session_wish_ = SessionWish::now;
  changed_.wait(lock, [&] { return course_.ending() != Ending::none || course_.is_dropped(); });
  return course_.ending() == Ending::none;
}

// Whether its consumer is to end, for whatever reason.
bool IndependentDestination::is_wanted_otherwise() const {
  std::lock_guard lock(mutex_);
  return course_.is_cut_short() || course_.starts_over() || course_.ending() != Ending::none;
}

// False: what its agent had taken is lost to this session.
bool IndependentDestination::leave_backlog() {
  {
    std::lock_guard lock(mutex_);
    if (!course_.has_consumer()) return true;
  }
  return backlog_->leave(durable());
}

void IndependentDestination::note_failure(const base::Error& error) {
  const bool waits = waits_for_publication(error);
  {
    std::lock_guard lock(mutex_);
    if (session_wish_ != SessionWish::now) session_wish_ = waits ? SessionWish::when_due : SessionWish::none;
  }
  if (heals_by_itself(error) || options_.tables == nullptr) return give_up_or_wait(error);
  // A table's trouble shows in many ways; the next start stops the table, if that is what is wanted.
  options_.tables->look_now(kLookPatience, error.table);
  const auto trouble = unresolved_trouble();
  if (trouble && options_.delivery.destination.parameters.stops_tables()) return;
  give_up_or_wait(trouble ? *trouble : with_row_security(error, options_.delivery, &course_.interrupt()));
}

bool IndependentDestination::has_given_up() const {
  const std::lock_guard lock(mutex_);
  return life_.state() == State::aborted;
}

// `waiting`: what it is until the next try.
void IndependentDestination::give_up_or_wait(const base::Error& error, State waiting) {
  const bool heals = heals_by_itself(error);
  std::lock_guard lock(mutex_);
  const base::UnixMicros now = options_.clock->unix_now();
  error_ = control::ReportedError{error, now};
  retry_at_.reset();
  if (heals) {
    const auto delay = backoff_.next();
    retry_due_ = std::chrono::steady_clock::now() + delay;
    retry_at_ = base::UnixMicros{now.value + std::chrono::microseconds(delay).count()};
  }
  observe_locked(heals ? waiting : State::aborted);
  base::log_error(heals ? "destination_retrying" : "destination_aborted", error,
                  {{"stream", options_.delivery.stream.id}, {"destination", options_.delivery.destination.id}});
}

bool IndependentDestination::heals_by_itself(const base::Error& error) {
  if (daemon::heals_by_itself(error)) return true;
  if (error.code == ErrorCode::receiver_restarted) return true;
  if (backlog_ && backlog_->not_durable()) return true;  // the next session reads another
  return error.code == ErrorCode::stream_in_use && in_use_.lasts();
}

// A table has become fit to be published since this session began, which is this engine's doing or the other's wish.
bool IndependentDestination::waits_for_publication(const base::Error& error) const {
  const bool may = error.code == ErrorCode::table_unpublished || (sends() && error.code == ErrorCode::link_refused);
  if (!may) return false;
  const auto published = options_.publishes_all({.stop = &course_.interrupt(), .board = options_.board});
  return published && !*published;  // a source that does not answer is asked again after the next try
}

StartContext IndependentDestination::start_context() {
  return {.destination = id(),
          .joins_capture = true,
          .session = source_,
          .progress = options_.progress,
          .folder = mined_wal_,
          .work = {.stop = &course_.interrupt(), .board = options_.board},
          .on_copy = [this] { observe(State::instantiating); },
          .check_backlog = [this](Lsn low_watermark, int came_from) -> base::Result<void> {
            {
              std::unique_lock lock(session_lock_);
              logs_.set_strays_aside(came_from);
            }
            THALWEG_TRY(joins_backlog(low_watermark));
            return {};
          }};
}

void IndependentDestination::enter(DestinationCourse::Phase phase) {
  std::lock_guard lock(mutex_);
  course_.enter(phase);
}

void IndependentDestination::observe(State state) {
  std::lock_guard lock(mutex_);
  observe_locked(state);
}

void IndependentDestination::observe_locked(State state) {
  if (!life_.enter(state)) return;
  base::log_event(base::LogLevel::info, "destination_state",
                  {{"stream", options_.delivery.stream.id},
                   {"destination", options_.delivery.destination.id},
                   {"status", life_.names().status},
                   {"phase", life_.names().phase}});
}

void IndependentDestination::clear_error() {
  std::lock_guard lock(mutex_);
  error_.reset();
  retry_at_.reset();
}

}  // namespace thalweg::daemon
