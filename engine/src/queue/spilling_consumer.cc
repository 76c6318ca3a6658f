#include "queue/spilling_consumer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace thalweg::queue {

namespace {

constexpr size_t kMoveFramesMax = 512;                 // in one batch, while the agent may wait for the lock
constexpr uint64_t kMoveBytesMax = uint64_t{1} << 20;  // and so many bytes

SpillingOptions with_bounds(SpillingOptions options, const LcrQueue& queue) {
  const LcrQueueGauges gauges = queue.gauges();
  if (options.lag_frames_max == 0) options.lag_frames_max = std::max<uint64_t>(gauges.capacity / 2, 1);
  if (options.lag_bytes_max == 0) options.lag_bytes_max = gauges.memory_bytes / 2;
  return options;
}

}  // namespace

void add_to(telemetry::ComponentSample& sample, const QueueSpillStatistics& statistics) {
  sample.counters.emplace_back("spilled_lcrs", statistics.spilled_lcrs);
  sample.counters.emplace_back("spilled_bytes", statistics.spilled_bytes);
  sample.gauges.emplace_back("spill_frames", static_cast<int64_t>(statistics.waiting_frames));
  sample.gauges.emplace_back("spill_bytes", static_cast<int64_t>(statistics.use.bytes));
  sample.gauges.emplace_back("spill_age_us", statistics.use.age.count());
}

SpillingConsumer::SpillingConsumer(LcrQueue& queue, size_t consumer, spill::SpillSpace& space, SpillingOptions options)
    : queue_(queue), consumer_(consumer), space_(space), options_(with_bounds(std::move(options), queue)) {
  queue_.set_doorbell(consumer_, bell_);
}

void SpillingConsumer::set_doorbell(base::Doorbell* bell) {
  bell_ = bell;
  queue_.set_doorbell(consumer_, bell);
}

base::Result<const std::byte*> SpillingConsumer::browse(std::chrono::microseconds timeout) {
  using std::chrono::steady_clock;
  if (!run_.empty()) return run_.data();
  const auto deadline = timeout.count() > 0 ? steady_clock::now() + timeout : steady_clock::time_point{};
  while (true) {
    const uint32_t seen = bell_->ticket();
    {
      const std::lock_guard lock(mutex_);
      if (log_) {
        THALWEG_TRY(next_run());
        if (!run_.empty()) return run_.data();
        end_spilling();
      }
      const std::byte* const frame = queue_.browse(consumer_, std::chrono::microseconds{0});
      held_ = frame != nullptr;
      if (held_) return frame;
    }
    if (timeout.count() <= 0) return nullptr;
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return nullptr;
    bell_->wait(seen, left);
  }
}

void SpillingConsumer::dequeue() {
  if (!run_.empty()) {
    const size_t length = lcr::FrameView::trusted(run_.data()).header().length;
    run_ = run_.subspan(length);
    given_frames_.add();
    given_bytes_.add(length);
    return;
  }
  const std::lock_guard lock(mutex_);
  queue_.dequeue(consumer_);
  held_ = false;
}

void SpillingConsumer::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
}

base::Result<void> SpillingConsumer::next_run() {
  if (!reader_) reader_ = log_->read();
  THALWEG_ASSIGN(run_, reader_->next_run());
  log_->drop_before(reader_->segment());
  if (!run_.empty()) return {};
  tail_ = log_->take_buffered();
  run_ = tail_;
  return {};
}

void SpillingConsumer::end_spilling() {
  reader_.reset();
  log_.reset();
  tail_ = {};
  failure_.reset();
  spilling_flag_.store(false, std::memory_order_relaxed);
}

bool SpillingConsumer::lags_too_far() const {
  const ConsumerLag lag = queue_.lag(consumer_);
  if (lag.frames <= options_.lag_frames_max && lag.bytes <= options_.lag_bytes_max) return false;
  if (!options_.compare_with_others || queue_.consumers() == 1) return true;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (size_t i = 0; i < queue_.consumers(); ++i) {
    if (i != consumer_) least = std::min(least, queue_.lag(i).frames);
  }
  return least < lag.frames / 2;
}

bool SpillingConsumer::move() {
  const std::lock_guard lock(mutex_);
  if (discarding_) return throw_away();
  if (!log_) {
    if (!lags_too_far()) return false;
    log_ = std::make_unique<spill::SpillLog>(space_, options_.label);
    episodes_.add();
    spilling_flag_.store(true, std::memory_order_relaxed);
  }
  if (held_) return false;
  uint64_t bytes = 0;
  size_t frames = 0;
  while (frames < kMoveFramesMax && bytes < kMoveBytesMax) {
    const std::byte* const at = queue_.browse(consumer_, std::chrono::microseconds{0});
    if (at == nullptr) break;
    const auto frame = lcr::FrameView::trusted(at);
    if (auto appended = log_->append(frame.bytes()); !appended) {
      failure_ = std::move(appended).error();
      return false;
    }
    bytes += frame.header().length;
    ++frames;
    if (lcr::is_change(frame.kind())) spilled_lcrs_.add();
    queue_.dequeue(consumer_);
  }
  failure_.reset();
  spilled_frames_.add(frames);
  spilled_bytes_.add(bytes);
  return frames > 0;
}

bool SpillingConsumer::throw_away() {
  if (log_) {
    run_ = {};
    end_spilling();
    given_frames_.set(spilled_frames_.get());
    given_bytes_.set(spilled_bytes_.get());
  }
  bool thrown = false;
  for (size_t i = 0; i < kMoveFramesMax && queue_.browse(consumer_, std::chrono::microseconds{0}) != nullptr; ++i) {
    queue_.dequeue(consumer_);
    thrown = true;
  }
  return thrown;
}

void SpillingConsumer::discard() {
  const std::lock_guard lock(mutex_);
  discarding_ = true;
  held_ = false;
}

QueueSpillStatistics SpillingConsumer::statistics() const {
  const std::lock_guard lock(mutex_);
  // Reads the given-back counters first: so they never exceed the spilled ones.
  const uint64_t given_frames = given_frames_.get();
  const uint64_t given_bytes = given_bytes_.get();
  return {.spilling = log_ != nullptr,
          .spilled_frames = spilled_frames_.get(),
          .spilled_lcrs = spilled_lcrs_.get(),
          .spilled_bytes = spilled_bytes_.get(),
          .waiting_frames = spilled_frames_.get() - given_frames,
          .waiting_bytes = spilled_bytes_.get() - given_bytes,
          .episodes = episodes_.get(),
          .use = space_.use(),
          .failure = failure_};
}

}  // namespace thalweg::queue
