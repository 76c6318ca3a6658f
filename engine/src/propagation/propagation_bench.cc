// LCRs through sender and receiver over loopback: TLS with each compression, and plain TCP for what TLS costs.

#include <benchmark/benchmark.h>

#include "propagation/propagation_harness.h"

namespace thalweg::propagation {
namespace {

constexpr uint64_t kFrames = 1'000'000;

void run(benchmark::State& state) {
  TestCertificates certificates;
  const bool tls = state.range(0) != 0;
  std::vector<std::vector<std::byte>> frames;
  for (uint64_t i = 0; i < 4'000; ++i) frames.push_back(make_numbered_frame(i));
  for (auto _ : state) {
    ReceivingEngine b(tls ? std::optional(certificates.issue("b")) : std::nullopt);
    b.start_receiver([](ReceiverOptions& options) { options.ack_interval = std::chrono::milliseconds(100); });
    SendingEngine a(b.port.port(), tls ? std::optional(certificates.issue("a")) : std::nullopt);
    a.start_sender([&](SenderOptions& options) {
      options.compression = static_cast<Compression>(state.range(1));
      options.batch_bytes = size_t{128} << 10;
      options.window_bytes = size_t{64} << 20;
    });
    if (!a.sender->await_receiver(kPatience)) {
      state.SkipWithError("no connection");
      return;
    }
    const auto begin = std::chrono::steady_clock::now();
    std::thread producer([&] {
      for (uint64_t i = 0; i < kFrames; ++i) {
        const auto& frame = frames[i % frames.size()];
        std::span<std::byte> memory;
        while (memory.empty()) memory = a.queue->reserve(frame.size(), std::chrono::milliseconds(100));
        std::memcpy(memory.data(), frame.data(), frame.size());
        a.queue->enqueue();
      }
      a.queue->flush();
    });
    for (uint64_t i = 0; i < kFrames;) {
      if (b.queue->browse(0, std::chrono::milliseconds(100)) == nullptr) continue;
      b.queue->dequeue(0);
      ++i;
    }
    producer.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const auto sample = a.sender->sample();
    state.counters["frames_per_s"] = static_cast<double>(kFrames) / seconds;
    state.counters["MB_per_s"] = static_cast<double>(counter_of(sample, "bytes")) / 1e6 / seconds;
    state.counters["packed_ratio"] =
        static_cast<double>(counter_of(sample, "bytes")) / static_cast<double>(counter_of(sample, "packed_bytes"));
  }
}

BENCHMARK(run)
    ->ArgNames({"tls", "compression"})
    ->Args({0, 0})
    ->Args({1, 0})
    ->Args({1, 1})
    ->Args({1, 2})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace thalweg::propagation

BENCHMARK_MAIN();
