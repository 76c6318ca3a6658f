#include "queue/backlog_consumer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace thalweg::queue {

using base::Result;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr size_t kBatchFramesMax = 512;                    // while the agent may wait for the lock
constexpr uint64_t kBatchBytesMax = uint64_t{1} << 20;     // and so many bytes
constexpr uint64_t kUnsyncedBytesMax = uint64_t{8} << 20;  // then it syncs at once
constexpr std::chrono::milliseconds kSyncInterval{100};    // else so often

}  // namespace

BacklogConsumer::BacklogConsumer(LcrQueue& queue, size_t consumer, spill::SpillSpace& space, const base::Clock& clock,
                                 BacklogOptions options)
    : queue_(queue),
      consumer_(consumer),
      space_(space),
      clock_(clock),
      options_(std::move(options)),
      begun_(clock.steady_now()),
      memory_(queue, consumer, space),
      from_(options_.from),
      synced_at_(begun_),
      logged_(options_.from.value) {
  memory_.set_doorbell(&bell_);
  if (options_.on_disk_for.count() > 0) on_disk_ = true;
}

Result<const std::byte*> BacklogConsumer::browse(std::chrono::microseconds timeout) {
  if (!run_.empty()) return run_.data();
  if (!joined_) join();
  if (!on_disk_.load(std::memory_order_relaxed)) return browse_memory(timeout);
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    const uint32_t seen = bell_.ticket();
    {
      const std::lock_guard lock(mutex_);
      auto run = log_ ? log_->next_run() : Result<std::span<const std::byte>>{};
      // The disk has no room for the frames through which the log is read. Those that were read are applied meanwhile,
      // which makes room.
      const bool is_stuck = !run && run.error().code == base::ErrorCode::disk_full;
      if (!run && !is_stuck) return std::unexpected(std::move(run).error());
      if (run && !run->empty()) {
        run_ = *run;
        return run_.data();
      }
      if (is_stuck) {
        failure_ = std::move(run).error();
      } else if (may_leave_disk()) {
        on_disk_.store(false, std::memory_order_relaxed);
        failure_.reset();
        taken_.follow(ledger_);
      } else {
        auto taken = take_batch();
        note_durability();
        failure_ = taken ? std::nullopt : std::optional(taken.error());
        if (taken && *taken) continue;
      }
    }
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline - steady_clock::now());
    if (!on_disk_.load(std::memory_order_relaxed)) return browse_memory(std::max(left, std::chrono::microseconds{0}));
    if (left.count() <= 0) return nullptr;
    bell_.wait(seen, left);
  }
}

Result<const std::byte*> BacklogConsumer::browse_memory(std::chrono::microseconds timeout) {
  const bool ends_here = at_ == nullptr && taken_.is_between_transactions();  // what it has browsed it gets again
  if (ends_here && cut_asked_.load(std::memory_order_relaxed)) {
    is_cut_.store(true, std::memory_order_release);
    if (timeout.count() > 0) bell_.wait(bell_.ticket(), timeout);
    return nullptr;
  }
  THALWEG_ASSIGN(at_, memory_.browse(timeout));
  return at_;
}

void BacklogConsumer::dequeue() {
  if (run_.empty()) {
    consumed_.store(true, std::memory_order_release);
    taken_.took(lcr::FrameView::trusted(at_));
    at_ = nullptr;
    return memory_.dequeue();
  }
  run_ = run_.subspan(lcr::FrameView::trusted(run_.data()).header().length);
}

void BacklogConsumer::release() {
  if (run_.empty()) memory_.release();
}

// A reader that begins without a log would lack the descriptions with which the log begins.
bool BacklogConsumer::may_leave_disk() const {
  const bool has_tables = log_ != nullptr || ledger_.tables().empty();
  return has_tables && attended_ && !stay_ && !cut_asked_.load(std::memory_order_relaxed) &&
         clock_.steady_now() - begun_ >= options_.on_disk_for;
}

bool BacklogConsumer::move() {
  const std::lock_guard lock(mutex_);
  if (discarding_) return memory_.move();
  if (!on_disk_.load(std::memory_order_relaxed)) {
    if (attended_ || consumed_.load(std::memory_order_acquire)) return memory_.move();
    on_disk_.store(true, std::memory_order_relaxed);
  }
  auto taken = take_batch();
  if (taken) {
    if (auto synced = sync_if_due(false); !synced) taken = std::unexpected(synced.error());
  }
  note_durability();
  if (taken) {
    failure_.reset();
    return *taken;
  }
  failure_ = std::move(taken).error();
  return false;
}

Result<bool> BacklogConsumer::take_batch() {
  uint64_t bytes = 0;
  size_t frames = 0;
  for (; frames < kBatchFramesMax && bytes < kBatchBytesMax; ++frames) {
    const bool spilled = memory_.is_spilling();
    THALWEG_ASSIGN(const std::byte* const at, spilled ? next_spilled() : queue_.browse(consumer_, 0us));
    if (at == nullptr) break;
    const auto frame = lcr::FrameView::trusted(at);
    auto appended = append(frame);
    if (appended) bytes += frame.header().length;
    if (spilled) {
      if (appended) memory_.dequeue();
      memory_.release();
    } else if (appended) {
      queue_.dequeue(consumer_);
    }
    THALWEG_TRY(std::move(appended));
  }
  return frames > 0;
}

// An agent that was cut was behind: what had been spilled for it comes before what is in the queue.
Result<const std::byte*> BacklogConsumer::next_spilled() {
  auto next = memory_.browse(0us);
  is_lost_ = !next;
  return next;
}

Result<void> BacklogConsumer::append(const lcr::FrameView& frame) {
  if (!log_) {
    THALWEG_ASSIGN(log_, spill::DurableLog::create(space_, options_.folder, options_.session, from_));
    undescribed_.clear();
  }
  const bool is_described = undescribed_.empty();  // no: the disk was full in the midst of it
  if (is_described && ledger_.is_between_transactions() && log_->segment_bytes() >= options_.segment_bytes) {
    THALWEG_TRY(log_->end_segment());
  }
  // A reader may begin with this segment, once those before it are gone.
  if (is_described && log_->segment_bytes() == 0 && !log_->has_buffered()) {
    for (const auto& [relation, table] : ledger_.tables()) undescribed_.push_back(relation);
  }
  for (; !undescribed_.empty(); undescribed_.pop_back()) {
    THALWEG_TRY(log_->append(ledger_.tables().at(undescribed_.back())));
  }
  const uint32_t segment = log_->segment();
  THALWEG_TRY(log_->append(frame.bytes()));
  ledger_.appended(frame, segment);
  const uint32_t length = frame.header().length;
  unsynced_bytes_ += length;
  appended_bytes_ += length;
  if (lcr::is_change(frame.kind())) ++appended_lcrs_;
  return {};
}

Result<void> BacklogConsumer::sync_if_due(bool now) {
  if (!log_ || ledger_.position() <= log_->synced()) return {};
  if (!now && log_->sync_failure()) return {};
  const auto time = clock_.steady_now();
  if (!now && unsynced_bytes_ < kUnsyncedBytesMax && time - synced_at_ < kSyncInterval) return {};
  THALWEG_TRY(log_->sync(ledger_.position()));
  unsynced_bytes_ = 0;
  synced_at_ = time;
  logged_.store(log_->synced().value, std::memory_order_release);
  return {};
}

void BacklogConsumer::note_durability() {
  not_durable_.store(is_lost_ || (log_ && log_->sync_failure()), std::memory_order_relaxed);
}

void BacklogConsumer::join() {
  const std::lock_guard lock(mutex_);
  attended_ = true;
  joined_ = true;
}

bool BacklogConsumer::cut() {
  const std::lock_guard lock(mutex_);
  cut_asked_.store(true, std::memory_order_relaxed);
  return on_disk_.load(std::memory_order_relaxed);
}

base::Lsn BacklogConsumer::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_.committed();
}

bool BacklogConsumer::leave(base::Lsn durable) {
  const std::lock_guard lock(mutex_);
  run_ = {};
  at_ = nullptr;
  joined_ = false;
  memory_.release();
  cut_asked_.store(false, std::memory_order_relaxed);
  const bool was_cut = is_cut_.exchange(false, std::memory_order_acq_rel);
  if (consumed_.load(std::memory_order_acquire) || memory_.is_spilling()) {
    return was_cut && go_to_disk(durable);
  }
  attended_ = false;
  if (log_) {
    log_->rewind();
    on_disk_.store(true, std::memory_order_relaxed);
  }
  return true;
}

// All that the agent got from memory is durable at the destination: a log that begins here lacks nothing.
bool BacklogConsumer::go_to_disk(base::Lsn durable) {
  // Spilled frames are on disk twice for a while.
  if (durable < taken_.committed() || (memory_.is_spilling() && space_.use().bytes > space_.limit() / 2)) return false;
  if (log_) log_->remove();
  log_.reset();
  from_ = std::max(from_, std::min(taken_.position(), durable));
  logged_.store(std::max(logged_.load(std::memory_order_relaxed), from_.value), std::memory_order_release);
  ledger_ = BacklogLedger(std::max(from_, taken_.position()), taken_.tables());
  note_durability();
  attended_ = false;
  consumed_.store(false, std::memory_order_release);
  on_disk_.store(true, std::memory_order_relaxed);
  return true;
}

base::Lsn BacklogConsumer::begins_at() const {
  const std::lock_guard lock(mutex_);
  return log_ ? log_->from() : from_;
}

void BacklogConsumer::discard() {
  const std::lock_guard lock(mutex_);
  discarding_ = true;
  run_ = {};
  on_disk_.store(true, std::memory_order_relaxed);  // the spiller looks more often
  if (log_) log_->remove();
  log_.reset();
  ledger_ = {};
  is_lost_ = false;
  note_durability();
  memory_.discard();
}

void BacklogConsumer::confirm(base::Lsn durable) {
  const std::lock_guard lock(mutex_);
  if (!log_) return;
  const bool passed = !on_disk_.load(std::memory_order_relaxed) && durable >= ledger_.position();
  if (passed) {
    log_->remove();
    log_.reset();
    from_ = std::max(from_, ledger_.position());
    ledger_ = BacklogLedger({}, ledger_.tables());  // where nothing is taken from memory, the next log begins with them
    note_durability();
    return;
  }
  log_->drop_before(ledger_.first_needed(durable, log_->segment()), durable);
}

void BacklogConsumer::stay_on_disk(bool stay) {
  const std::lock_guard lock(mutex_);
  stay_ = stay;
  if (stay && !consumed_.load(std::memory_order_acquire) && !memory_.is_spilling()) {
    on_disk_.store(true, std::memory_order_relaxed);
  }
}

void BacklogConsumer::close() {
  const std::lock_guard lock(mutex_);
  if (auto synced = sync_if_due(true); !synced) {
    // Frames that were not synced come again from the source.
    base::log_error("backlog_not_synced", synced.error(), {{"folder", options_.folder.string()}});
  }
}

BacklogStatistics BacklogConsumer::statistics() const {
  const uint64_t queued = queue_.lag(consumer_).frames;
  const QueueSpillStatistics in_memory = memory_.statistics();
  const std::lock_guard lock(mutex_);
  BacklogStatistics out;
  out.on_disk = on_disk_.load(std::memory_order_relaxed) && log_ != nullptr;
  out.frames_on_disk = in_memory.waiting_frames + (log_ ? log_->frames_left() : 0);
  out.frames = queued + out.frames_on_disk;
  out.lcrs = log_ ? log_->changes_left() : 0;
  out.spilled_lcrs = appended_lcrs_ + in_memory.spilled_lcrs;
  out.spilled_bytes = appended_bytes_ + in_memory.spilled_bytes;
  out.not_durable = not_durable_.load(std::memory_order_relaxed);
  out.failure = log_ && log_->sync_failure() ? log_->sync_failure() : failure_ ? failure_ : in_memory.failure;
  return out;
}

}  // namespace thalweg::queue
