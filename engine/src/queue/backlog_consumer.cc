#include "queue/backlog_consumer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace thalweg::queue {

using base::Result;
using std::chrono::steady_clock;

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
      synced_at_(begun_),
      logged_(options_.from.value) {
  memory_.set_doorbell(&bell_);
  if (options_.on_disk_for.count() > 0) on_disk_ = true;
}

Result<const std::byte*> BacklogConsumer::browse(std::chrono::microseconds timeout) {
  if (!run_.empty()) return run_.data();
  if (!joined_) join();
  if (!on_disk_.load(std::memory_order_relaxed)) return memory_.browse(timeout);
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    const uint32_t seen = bell_.ticket();
    {
      const std::lock_guard lock(mutex_);
      if (log_) {
        THALWEG_ASSIGN(run_, log_->next_run());
        if (!run_.empty()) return run_.data();
      }
      if (may_leave_disk()) {
        on_disk_.store(false, std::memory_order_relaxed);
      } else {
        auto taken = take_batch();
        note_durability();
        failure_ = taken ? std::nullopt : std::optional(taken.error());
        if (taken && *taken) continue;
      }
    }
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline - steady_clock::now());
    if (!on_disk_.load(std::memory_order_relaxed)) return memory_.browse(std::max(left, std::chrono::microseconds{0}));
    if (left.count() <= 0) return nullptr;
    bell_.wait(seen, left);
  }
}

void BacklogConsumer::dequeue() {
  if (run_.empty()) {
    consumed_.store(true, std::memory_order_release);
    return memory_.dequeue();
  }
  run_ = run_.subspan(lcr::FrameView::trusted(run_.data()).header().length);
}

void BacklogConsumer::release() {
  if (run_.empty()) memory_.release();
}

bool BacklogConsumer::may_leave_disk() const {
  return attended_ && !stay_ && clock_.steady_now() - begun_ >= options_.on_disk_for;
}

bool BacklogConsumer::move() {
  const std::lock_guard lock(mutex_);
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
    const std::byte* const at = queue_.browse(consumer_, std::chrono::microseconds{0});
    if (at == nullptr) break;
    const auto frame = lcr::FrameView::trusted(at);
    THALWEG_TRY(append(frame));
    bytes += frame.header().length;
    queue_.dequeue(consumer_);
  }
  return frames > 0;
}

Result<void> BacklogConsumer::append(const lcr::FrameView& frame) {
  if (!log_) {
    THALWEG_ASSIGN(log_, spill::DurableLog::create(space_, options_.folder, options_.session, options_.from));
  }
  if (ledger_.is_between_transactions() && log_->segment_bytes() >= options_.segment_bytes) {
    THALWEG_TRY(log_->end_segment());
  }
  // A reader may begin with this segment, once those before it are gone.
  if (log_->segment_bytes() == 0 && !log_->has_buffered()) {
    for (const auto& [relation, table] : ledger_.tables()) THALWEG_TRY(log_->append(table));
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

void BacklogConsumer::note_durability() { not_durable_.store(log_ && log_->sync_failure(), std::memory_order_relaxed); }

void BacklogConsumer::join() {
  const std::lock_guard lock(mutex_);
  attended_ = true;
  joined_ = true;
}

bool BacklogConsumer::leave() {
  const std::lock_guard lock(mutex_);
  run_ = {};
  joined_ = false;
  memory_.release();
  if (consumed_.load(std::memory_order_acquire) || memory_.is_spilling()) return false;
  attended_ = false;
  if (log_) {
    log_->rewind();
    on_disk_.store(true, std::memory_order_relaxed);
  }
  return true;
}

void BacklogConsumer::confirm(base::Lsn durable) {
  const std::lock_guard lock(mutex_);
  if (!log_) return;
  const bool passed = !on_disk_.load(std::memory_order_relaxed) && durable >= ledger_.position();
  if (passed) {
    log_->remove();
    log_.reset();
    ledger_ = {};
    note_durability();
    return;
  }
  log_->drop_before(ledger_.first_needed(durable, log_->segment()));
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
    // What was not synced comes again from the source.
    base::log_error("backlog_not_synced", synced.error(), {{"folder", options_.folder.string()}});
  }
}

BacklogStatistics BacklogConsumer::statistics() const {
  const uint64_t queued = queue_.lag(consumer_).frames;
  const QueueSpillStatistics in_memory = memory_.statistics();
  const std::lock_guard lock(mutex_);
  BacklogStatistics out;
  out.on_disk = on_disk_.load(std::memory_order_relaxed) && log_ != nullptr;
  out.frames = queued + in_memory.waiting_frames + (log_ ? log_->frames_left() : 0);
  out.lcrs = log_ ? log_->changes_left() : 0;
  out.spilled_lcrs = appended_lcrs_ + in_memory.spilled_lcrs;
  out.spilled_bytes = appended_bytes_ + in_memory.spilled_bytes;
  out.not_durable = log_ && log_->sync_failure();
  out.failure = out.not_durable ? log_->sync_failure() : failure_ ? failure_ : in_memory.failure;
  return out;
}

}  // namespace thalweg::queue
