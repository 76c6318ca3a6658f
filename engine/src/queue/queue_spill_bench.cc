// Cost of queue spill: a consumer that may spill beside a plain one while both keep up, and the way over the disk.
//
// Method: one thread. A round enqueues 8192 row frames of about 200 bytes and then takes them all; only the taking is
// timed. Rounds of both kinds alternate; medians. Over the disk: the same frames, moved to segments, then taken.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "lcr/frame_samples.h"
#include "queue/spilling_consumer.h"

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr size_t kFrames = 8192;
constexpr int kRounds = 101;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::vector<std::byte>> make_frames() {
  std::vector<std::vector<std::byte>> frames;
  for (size_t i = 0; i < kFrames; ++i) {
    const auto number = std::to_string(i * 7919);
    const lcr::SampleColumns columns{
        {'b', number.substr(0, 4)}, {'t', "entry number " + number}, {'n', ""}, {'t', std::string(90, 'a') + number}};
    frames.push_back(lcr::make_sample_row(lcr::FrameKind::insert, 0, 0, nullptr, &columns));
  }
  return frames;
}

void fill(LcrQueue& queue, const std::vector<std::vector<std::byte>>& frames) {
  for (const auto& frame : frames) {
    const auto memory = queue.reserve(frame.size(), 0us);
    require(!memory.empty());
    std::ranges::copy(frame, memory.begin());
    queue.enqueue();
  }
  queue.flush();
}

template <typename Take>
double seconds_of(Take take) {
  const auto start = std::chrono::steady_clock::now();
  take();
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void take_all(SpillingConsumer& consumer) {
  for (size_t i = 0; i < kFrames; ++i) {
    const auto frame = consumer.browse(0us);
    require(frame.has_value() && *frame != nullptr);
    consumer.dequeue();
  }
}

void run() {
  std::string directory = "/tmp/thalweg_queue_spill_bench_XXXXXX";
  require(mkdtemp(directory.data()) != nullptr);
  const base::SystemClock clock;
  spill::SpillSpace space(directory, uint64_t{4} << 30, clock);
  LcrQueue plain({.slots = 16'384, .memory_bytes = 64 << 20, .consumers = 1});
  LcrQueue other({.slots = 16'384, .memory_bytes = 64 << 20, .consumers = 1});
  SpillingConsumer keeps_up(other, 0, space);
  LcrQueue lagging({.slots = 16'384, .memory_bytes = 64 << 20, .consumers = 1});
  SpillingConsumer lags(lagging, 0, space, {.label = "bench", .lag_frames_max = 1});
  const auto frames = make_frames();
  size_t bytes = 0;
  for (const auto& frame : frames) bytes += frame.size();
  std::vector<double> by_plain, by_memory, moved, by_disk;
  uint64_t disk_bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    fill(plain, frames);
    by_plain.push_back(seconds_of([&] {
      for (size_t i = 0; i < kFrames; ++i) {
        require(plain.browse(0, 0us) != nullptr);
        plain.dequeue(0);
      }
    }));
    fill(other, frames);
    by_memory.push_back(seconds_of([&] { take_all(keeps_up); }));
    fill(lagging, frames);
    moved.push_back(seconds_of([&] {
      while (lags.move()) {
      }
    }));
    disk_bytes = space.use().bytes;
    by_disk.push_back(seconds_of([&] { take_all(lags); }));
    require(lags.browse(0us).value() == nullptr);  // back in memory
  }
  std::filesystem::remove_all(directory);
  const auto ns = [](const std::vector<double>& seconds) { return median(seconds) * 1e9 / kFrames; };
  const auto rate = [&](const std::vector<double>& seconds) {
    return static_cast<double>(bytes) / 1e6 / median(seconds);
  };
  std::printf("plain consumer, memory:    %6.1f ns a frame\n", ns(by_plain));
  std::printf("spilling consumer, memory: %6.1f ns a frame\n", ns(by_memory));
  std::printf("moved to disk:             %6.1f ns a frame, %.0f MB/s\n", ns(moved), rate(moved));
  std::printf("taken from disk:           %6.1f ns a frame, %.0f MB/s\n", ns(by_disk), rate(by_disk));
  std::printf("on disk: %.2f of the frames' bytes\n", static_cast<double>(disk_bytes) / static_cast<double>(bytes));
}

}  // namespace
}  // namespace thalweg::queue

int main() {
  thalweg::queue::run();
  return 0;
}
