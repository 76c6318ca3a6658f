#include "daemon/destination.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "base/log.h"
#include "daemon/healing.h"
#include "daemon/stream_removal.h"

// The sessions of a destination with a backlog, and what becomes of its errors; one try at it is in destination_try.cc,
// one without a backlog in destination_direct.cc, what the control API reads in destination_view.cc.

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using base::Lsn;
namespace fs = std::filesystem;

constexpr std::chrono::minutes kOnDiskFirst{1};  // of one that fell behind; doubling
constexpr std::chrono::minutes kOnDiskLast{30};
constexpr std::chrono::seconds kLookPatience{5};
constexpr std::chrono::minutes kSessionPauseLast{2};  // every session interrupts all destinations

// A log's number says of which session it is, and the timeline that the source was on: its upper half, zero in the logs
// of earlier engines (docs/formats/spill.md).
uint64_t log_id(int timeline, uint64_t session) { return static_cast<uint64_t>(timeline) << 32 | session; }
int timeline_of(const spill::DurableLog& log) { return static_cast<int>(log.id() >> 32); }

uint64_t limit_bytes(const control::StreamParameters& parameters) {
  return static_cast<uint64_t>(parameters.queue_spill_limit_mb) << 20;
}

}  // namespace

Destination::Destination(DestinationOptions options)
    : options_(std::move(options)),
      space_(options_.directory, limit_bytes(options_.definition.parameters), *options_.clock,
             spill::SpillSpace::kFreeBytesMin, "queue_spill_limit_mb"),
      session_backoff_(std::hash<std::string>{}(options_.id), kSessionPauseLast),
      id_(options_.id),
      parameters_(options_.definition.parameters),
      backoff_(std::hash<std::string>{}(options_.definition.id + options_.id)) {}

Destination::~Destination() { end(); }

std::string Destination::file_folder(uint64_t number) const {
  return (options_.directory / "backlog" / fmt::format("{:010}", number)).string();
}

// --- a session

void Destination::begin_session(const SourceSlot& slot) {
  {
    std::unique_lock lock(session_lock_);  // confirmed() belongs to anybody
    from_ = slot.confirmed_flush;
  }
  if (source_ != slot.identity) durable_ = 0;  // a position in another history, perhaps
  source_ = slot.identity;
  history_ = slot.history;
  stop_ = false;
  drain_ = false;
  needs_session_ = false;
  unpublished_ = false;
  caught_up_ = false;
  ended_ = false;
  begun_at_ = std::chrono::steady_clock::now();
  session_due_.reset();
}

void Destination::begin_removal() {
  begin_session({});
  thread_ = std::jthread([this] {
    be_dropped();
    ended_ = true;
  });
}

base::Result<void> Destination::begin(queue::LcrQueue& queue, size_t consumer, const SourceSlot& slot,
                                      const std::atomic<uint64_t>& source_end) {
  begin_session(slot);
  source_end_ = &source_end;
  THALWEG_TRY(base::make_folders(options_.directory / "backlog"));
  THALWEG_TRY(base::make_folders(options_.directory / "apply"));
  THALWEG_ASSIGN(const size_t removed, space_.clear());  // what was not durable
  static_cast<void>(removed);
  {
    std::unique_lock lock(session_lock_);
    own_log_ = UINT64_MAX;
    auto opened = open_logs(from_);
    logs_unread_ = !opened;
    // The destination's, not the stream's: it says so, and its frames wait on disk.
    if (!opened) give_up_or_wait(opened.error());
    own_log_ = next_log_;
    backlog_ = std::make_unique<queue::BacklogConsumer>(
        queue, consumer, space_, *options_.clock,
        queue::BacklogOptions{.folder = file_folder(next_log_),
                              .session = log_id(source_.timeline, next_log_),
                              .from = from_,
                              .on_disk_for = on_disk_for_,
                              .segment_bytes = options_.backlog_segment_bytes});
    ++next_log_;
  }
  thread_ = std::jthread([this] {
    run();
    ended_ = true;
  });
  return {};
}

// Of earlier sessions. Those of which nothing was synced hold nothing that does not come again.
base::Result<void> Destination::open_logs(Lsn from) {
  old_logs_.clear();
  strays_.clear();
  replayed_ = 0;
  auto opened = find_logs();
  if (!opened) old_logs_.clear();
  // Which timeline a log of an earlier engine comes from, the destination knows. An engine that only sends does not.
  const bool knows_later = !options_.definition.send_to && history_.timeline() > 1;
  if (opened && !knows_later) set_strays_aside(history_.timeline());
  for (const auto& log : old_logs_) {
    if (is_history(*log, knows_later ? 0 : history_.timeline())) {
      replayed_ = std::max(replayed_.load(), log->synced().value);
    }
  }
  if (opened && !old_logs_.empty()) {
    base::log_event(base::LogLevel::info, "backlog_found",
                    {{"stream", options_.definition.id},
                     {"destination", options_.id},
                     {"logs", old_logs_.size()},
                     {"bytes", space_.use().bytes},
                     {"from", base::to_string(old_logs_.front()->from())},
                     {"to", base::to_string(old_logs_.back()->synced())},
                     {"capture_from", base::to_string(from)}});
  }
  return opened;
}

base::Result<void> Destination::find_logs() {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(options_.directory / "backlog", error), end; !error && entry != end;
       entry.increment(error)) {
    numbers.push_back(std::strtoull(entry->path().filename().c_str(), nullptr, 10));
  }
  if (error) return std::unexpected(base::file_error(error.value(), "list " + options_.directory.string()));
  std::ranges::sort(numbers);
  if (!numbers.empty()) next_log_ = std::max(next_log_, numbers.back() + 1);
  for (const uint64_t number : numbers) {
    if (number >= own_log_) break;
    THALWEG_ASSIGN(auto log, spill::DurableLog::open(space_, file_folder(number)));
    if (!log) continue;
    if (log->synced() <= log->from()) {
      log->remove();
      continue;
    }
    old_logs_.push_back(std::move(log));
  }
  return {};
}

bool Destination::is_history(const spill::DurableLog& log, int timeline_if_untold) const {
  const int told = timeline_of(log);
  return history_.holds(told != 0 ? told : timeline_if_untold, log.synced());
}

void Destination::set_strays_aside(int timeline_if_untold) {
  const auto stays = [&](const auto& log) { return is_history(*log, timeline_if_untold); };
  const auto strays = std::stable_partition(old_logs_.begin(), old_logs_.end(), stays);
  for (auto log = strays; log != old_logs_.end(); ++log) {
    base::log_event(base::LogLevel::warning, "backlog_of_another_history",
                    {{"stream", options_.definition.id},
                     {"destination", options_.id},
                     {"from", base::to_string((*log)->from())},
                     {"to", base::to_string((*log)->synced())},
                     {"timeline", timeline_of(**log)},
                     {"source_timeline", history_.timeline()}});
    strays_.push_back(std::move(*log));
  }
  old_logs_.erase(strays, old_logs_.end());
}

void Destination::request_stop(bool drain) {
  if (reads_queue()) {
    if (consumer_) consumer_->request_stop(drain);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    // One that is behind keeps what it has on disk.
    if (drain && is_live_ && !is_starting_ && !backlog_->statistics().on_disk) {
      drain_ = true;
    } else {
      stop_ = true;
    }
  }
  changed_.notify_all();
}

// A link that breaks now is not waited for (the receiver may have been stopped first): the source keeps what it lacks.
bool Destination::has_ended() const {
  if (!reads_queue()) return ended_;
  return !consumer_ || !consumer_->is_running() || consumer_->trouble();
}

void Destination::end() {
  request_stop(false);
  if (reads_queue() && consumer_) consumer_->join();
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(session_lock_);
  if (backlog_) {
    backlog_->close();
    replayed_ = std::max(replayed_.load(), backlog_->logged().value);
  }
  backlog_.reset();
  old_logs_.clear();
  strays_.clear();
}

void Destination::tend_backlog() {
  if (!backlog_ || needs_session_) return;
  if (!backlog_->not_durable() && !unpublished_) return session_due_.reset();
  const auto now = std::chrono::steady_clock::now();
  if (!session_due_) {
    session_backoff_.worked(now - begun_at_);
    session_due_ = now + session_backoff_.next();
    if (const auto failure = backlog_->statistics().failure) {
      base::log_error("backlog_not_durable", *failure,
                      {{"stream", options_.definition.id}, {"destination", options_.id}});
    }
  }
  needs_session_ = now >= *session_due_;
}

void Destination::keep_to_disk() {
  if (backlog_->statistics().on_disk) return;
  on_disk_for_ = std::clamp<std::chrono::milliseconds>(on_disk_for_ * 2, kOnDiskFirst, kOnDiskLast);
  needs_session_ = true;
  base::log_event(base::LogLevel::warning, "destination_behind",
                  {{"stream", options_.definition.id}, {"destination", options_.id}});
}

Lsn Destination::confirmed() const {
  std::shared_lock lock(session_lock_);
  Lsn out = std::max({from_, Lsn{durable_.load(std::memory_order_acquire)}, Lsn{replayed_.load()}});
  if (backlog_) out = std::max(out, backlog_->logged());
  return out;
}

// --- its thread

void Destination::run() {
  if (is_disabled()) return be_disabled();
  while (!stopping()) {
    {
      // What an earlier session decided: given up, or not to be tried before a time.
      std::unique_lock lock(mutex_);
      const auto due = [&] { return stop_ || drain_ || retry_asked_; };
      if (life_.state() == State::aborted) {
        changed_.wait(lock, due);
      } else if (retry_due_) {
        changed_.wait_until(lock, *retry_due_, due);
      }
      if (stop_ || drain_) return;
      if (retry_asked_) error_.reset();
      retry_asked_ = false;
      retry_due_.reset();
      if (!error_) observe_locked(State::initializing);
    }
    const auto begun = std::chrono::steady_clock::now();
    auto ran = run_once();
    backoff_.worked(std::chrono::steady_clock::now() - begun);
    stop_consumer();
    bool again = true;
    if (is_live_.exchange(false)) again = backlog_->leave();
    if (stopping() || (ran && drain_)) return;
    if (!ran) unpublished_ = waits_for_publication(ran.error());
    if (!ran && !heals_by_itself(ran.error()) && options_.tables != nullptr) {
      // A table's trouble shows in many ways; the next start stops the table, if that is what is wanted.
      options_.tables->look_now(kLookPatience, ran.error().table);
      const auto trouble = unresolved_trouble();
      if (!trouble || !options_.definition.parameters.stops_tables()) give_up_or_wait(trouble.value_or(ran.error()));
    } else if (!ran) {
      give_up_or_wait(ran.error());
    }
    if (!again) {
      needs_session_ = true;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || drain_; });
      return;
    }
  }
}

void Destination::be_disabled() {
  clear_error();
  observe(State::disabled);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || drain_; });
}

// `waiting`: what it is until the next try.
void Destination::give_up_or_wait(const base::Error& error, State waiting) {
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
                  {{"stream", options_.definition.id}, {"destination", options_.id}});
}

bool Destination::heals_by_itself(const base::Error& error) {
  if (daemon::heals_by_itself(error)) return true;
  if (error.code == ErrorCode::receiver_restarted) return true;
  if (backlog_ && backlog_->not_durable()) return true;  // the next session reads another
  if (error.code != ErrorCode::stream_in_use) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!in_use_since_) in_use_since_ = now;
  return now - *in_use_since_ < kInUsePatience;
}

// A table has become fit to be published since this session began, which is this engine's doing or the other's wish.
bool Destination::waits_for_publication(const base::Error& error) const {
  const bool may = error.code == ErrorCode::table_unpublished || (sends() && error.code == ErrorCode::link_refused);
  if (!may) return false;
  const auto published = options_.publishes_all({.stop = &stop_, .board = options_.board});
  return published && !*published;  // a source that does not answer is asked again after the next try
}

void Destination::be_dropped() {
  {
    std::lock_guard lock(mutex_);
    if (life_.state() == State::dropped) return;
    observe_locked(State::dropping);
  }
  while (!stopping()) {
    auto removed = remove_destination(options_.definition, {.stop = &stop_, .board = options_.board});
    if (!removed && stopping()) return;
    std::error_code error;
    if (removed && options_.backlog) fs::remove_all(options_.directory, error);
    if (removed && error) {
      removed = std::unexpected(base::file_error(error.value(), "remove " + options_.directory.string()));
    }
    if (removed) {
      clear_error();
      if (!removed->empty()) {
        std::lock_guard lock(mutex_);
        error_ = control::ReportedError{base::fail(ErrorCode::database_unreachable, *removed).error(),
                                        options_.clock->unix_now()};
      }
      if (options_.progress != nullptr) options_.progress->clear();
      return observe(State::dropped);
    }
    give_up_or_wait(removed.error(), State::dropping);
    std::unique_lock lock(mutex_);
    const auto due = [&] { return stop_ || retry_asked_; };
    if (life_.state() == State::aborted) {
      changed_.wait(lock, due);
    } else {
      changed_.wait_until(lock, *retry_due_, due);
    }
    retry_asked_ = false;
    observe_locked(State::dropping);
  }
}

StartContext Destination::start_context() {
  StartContext context{.destination = id(),
                       .joins_capture = options_.backlog || options_.definition.receive_from.has_value(),
                       .session = {},
                       .progress = options_.progress,
                       .work = {.stop = reads_queue() ? options_.stop : &stop_, .board = options_.board},
                       .on_copy = options_.on_copy};
  if (reads_queue()) return context;
  context.session = source_;
  context.on_copy = [this] { observe(State::instantiating); };
  context.check_backlog = [this](Lsn low_watermark, int came_from) {
    {
      std::unique_lock lock(session_lock_);
      set_strays_aside(came_from);
    }
    return check_reach(low_watermark);
  };
  return context;
}

std::string Destination::id() const {
  std::lock_guard lock(mutex_);
  return id_;
}

void Destination::rename(const std::string& id) {
  std::lock_guard lock(mutex_);
  id_ = id;
}

void Destination::observe(State state) {
  std::lock_guard lock(mutex_);
  observe_locked(state);
}

void Destination::observe_locked(State state) {
  if (!life_.enter(state)) return;
  base::log_event(base::LogLevel::info, "destination_state",
                  {{"stream", options_.definition.id},
                   {"destination", id_},
                   {"status", life_.names().status},
                   {"phase", life_.names().phase}});
}

void Destination::clear_error() {
  std::lock_guard lock(mutex_);
  error_.reset();
  retry_at_.reset();
}

}  // namespace thalweg::daemon
