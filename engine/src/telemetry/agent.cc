#include "telemetry/agent.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace thalweg::telemetry {

namespace {

constexpr std::array<std::string_view, kActivityCount> kActivityNames{
    "busy", "idle", "flow_control", "network", "execute", "commit", "dependency", "commit_order", "lock", "disk"};

uint64_t steady_nanoseconds() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count());
}

// Histogram layout. Buckets 0..15 hold the values 0..15 exactly. Every further power of two, 2^4 to 2^31, has 16
// equal steps. 16 + 28 * 16 = 464 buckets; what is longer counts in the last one.
constexpr unsigned kStepBits = 4;
constexpr uint64_t kSteps = uint64_t{1} << kStepBits;
constexpr uint64_t kMicrosMax = (uint64_t{1} << 32) - 1;
static_assert(kSteps + (32 - kStepBits) * kSteps == LatencyHistogram::kBucketCount);

size_t bucket_of(uint64_t micros) {
  if (micros < kSteps) return micros;
  const auto power = static_cast<unsigned>(std::bit_width(micros)) - 1;  // 2^power <= micros
  const uint64_t step = (micros >> (power - kStepBits)) - kSteps;        // 0..15 within the power
  return kSteps + (power - kStepBits) * kSteps + step;
}

}  // namespace

std::string_view name_of(Activity activity) {
  const auto index = static_cast<size_t>(activity);
  assert(index < kActivityCount);
  return kActivityNames[index];
}

TimeAccount::TimeAccount() : entered_at_(steady_nanoseconds()), current_(static_cast<uint8_t>(Activity::idle)) {}

// The writer makes version_ odd while it changes the three fields, and even again when they fit together.
void TimeAccount::enter(Activity activity) {
  const uint64_t now = steady_nanoseconds();
  const auto before = current_.load(std::memory_order_relaxed);
  const uint64_t spent = now - entered_at_.load(std::memory_order_relaxed);
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  // entered_at_ first: a reader that meets an agent stopped right here misses `spent`, it does not count it twice.
  entered_at_.store(now, std::memory_order_release);
  auto& total = nanoseconds_[before];
  total.store(total.load(std::memory_order_relaxed) + spent, std::memory_order_release);
  current_.store(static_cast<uint8_t>(activity), std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

Activity TimeAccount::current() const { return static_cast<Activity>(current_.load(std::memory_order_relaxed)); }

std::array<uint64_t, kActivityCount> TimeAccount::sample() const {
  std::array<uint64_t, kActivityCount> totals{};
  // An agent changes its activity per batch, so a torn read is rare; it is read again. After many tries (an agent that
  // changes without pause, or was descheduled in the middle) the last reading stands: it may miss some time, but counts
  // none twice.
  for (int attempt = 0; attempt < 64; ++attempt) {
    const uint64_t before = version_.load(std::memory_order_acquire);
    for (size_t i = 0; i < kActivityCount; ++i) totals[i] = nanoseconds_[i].load(std::memory_order_acquire);
    const uint64_t entered = entered_at_.load(std::memory_order_acquire);
    const auto running = current_.load(std::memory_order_acquire);
    const uint64_t now = steady_nanoseconds();
    if (now > entered) totals[running] += now - entered;
    const uint64_t after = version_.load(std::memory_order_acquire);
    if (before == after && before % 2 == 0) break;
  }
  return totals;
}

void LatencyHistogram::record(std::chrono::microseconds latency) {
  // Clocks of two machines may disagree: what seems to arrive before it was sent took no time.
  const auto micros = static_cast<uint64_t>(std::max<int64_t>(latency.count(), 0));
  buckets_[bucket_of(std::min(micros, kMicrosMax))].add();
}

uint64_t LatencyHistogram::upper_bound_micros(size_t bucket) {
  assert(bucket < kBucketCount);
  if (bucket < kSteps) return bucket;
  const size_t power = (bucket - kSteps) / kSteps;  // above 2^kStepBits
  const size_t step = (bucket - kSteps) % kSteps;
  return ((kSteps + step + 1) << power) - 1;
}

}  // namespace thalweg::telemetry
