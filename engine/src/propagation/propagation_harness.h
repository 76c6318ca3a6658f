#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/log.h"
#include "propagation/receiver.h"
#include "propagation/receiver_port.h"
#include "propagation/sender.h"
#include "propagation/test_certificates.h"
#include "propagation/test_frames.h"

// Two engines' ends of a propagation in one process, over real sockets on loopback.

namespace thalweg::propagation {

// spdlog makes its logger at the first line: here, before there are threads that the thread sanitizer could not order.
inline const bool kLoggerExists = (base::log_event(base::LogLevel::info, "test_begins"), true);

// Long enough that only what hangs can use it up.
inline constexpr std::chrono::seconds kPatience{60};

// Waits until `holds`; false when that never comes.
inline bool eventually(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline uint64_t counter_of(const telemetry::ComponentSample& sample, std::string_view name) {
  for (const auto& [key, value] : sample.counters) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}
inline int64_t gauge_of(const telemetry::ComponentSample& sample, std::string_view name) {
  for (const auto& [key, value] : sample.gauges) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no gauge " << name;
  return 0;
}

// Fills a queue with numbered frames. Its thread is the queue's producer.
class NumberedProducer {
 public:
  NumberedProducer(queue::LcrQueue& queue, uint64_t from, uint64_t to, size_t large_bytes = 5'000)
      : thread_([this, &queue, from, to, large_bytes] {
          for (uint64_t i = from; i < to && !stop_; ++i) {
            const auto frame = make_numbered_frame(i, large_bytes);
            std::span<std::byte> memory;
            while (memory.empty() && !stop_) {
              queue.flush();
              memory = queue.reserve(frame.size(), std::chrono::milliseconds(20));
            }
            if (memory.empty()) break;
            std::memcpy(memory.data(), frame.data(), frame.size());
            queue.enqueue();
            enqueued_ = i + 1;
          }
          queue.flush();
        }) {}
  ~NumberedProducer() { stop(); }
  void stop() {
    stop_ = true;
    join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  uint64_t enqueued() const { return enqueued_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> enqueued_{0};
  std::thread thread_;
};

// Empties a queue and compares every frame with the one of its number. Its thread is the queue's consumer.
class NumberedChecker {
 public:
  NumberedChecker(queue::LcrQueue& queue, uint64_t from, uint64_t to, size_t large_bytes = 5'000)
      : seen_(from), thread_([this, &queue, to, large_bytes] {
          while (seen_ < to && !stop_) {
            const std::byte* frame = paused_ ? nullptr : queue.browse(0, std::chrono::milliseconds(5));
            if (frame == nullptr) {
              if (paused_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              continue;
            }
            const auto expected = make_numbered_frame(seen_, large_bytes);
            if (std::memcmp(frame, expected.data(), expected.size()) != 0) {
              wrong_ = true;
              break;
            }
            queue.dequeue(0);
            ++seen_;
          }
          extra_ = !stop_ && !wrong_ && queue.browse(0, std::chrono::microseconds(0)) != nullptr;
          finished_ = true;
        }) {}
  ~NumberedChecker() { stop(); }
  void pause(bool paused) { paused_ = paused; }
  // Waits for the last frame: true when all came, each once and unchanged, and nothing behind them.
  bool finish() {
    const bool finished = eventually([this] { return finished_.load(); });
    stop();
    return finished && !wrong_ && !extra_;
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint64_t seen() const { return seen_; }
  bool wrong() const { return wrong_; }

 private:
  std::atomic<uint64_t> seen_;
  std::atomic<bool> paused_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> wrong_{false};
  std::atomic<bool> extra_{false};
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

inline queue::LcrQueueOptions small_queue() { return {.slots = 4096, .memory_bytes = size_t{2} << 20, .consumers = 1}; }

// The receiving engine, b: a port and, for stream "stream01", a queue and a receiver that can be replaced.
class ReceivingEngine {
 public:
  explicit ReceivingEngine(std::optional<TlsFiles> tls = {}, ProtocolVersions versions = {}, uint16_t at_port = 0)
      : port({.engine = "b",
              .port = at_port,
              .security = {.tls = tls, .plain_on_loopback = !tls},
              .handshake_timeout = std::chrono::milliseconds(5'000),
              .versions = versions}) {
    EXPECT_TRUE(port.start());
  }
  ~ReceivingEngine() { receiver.reset(); }

  // A new queue and receiver, as after a restart of engine b.
  void start_receiver(const std::function<void(ReceiverOptions&)>& change = {}) {
    receiver.reset();
    queue = std::make_unique<queue::LcrQueue>(small_queue());
    ReceiverOptions options{.stream_id = "stream01",
                            .engine = "b",
                            .peer_engine = "a",
                            .queue = queue.get(),
                            .durable = [this] { return base::Lsn{durable.load()}; },
                            .clock = &clock,
                            .ack_interval = std::chrono::milliseconds(10),
                            .heartbeat_interval = std::chrono::milliseconds(100)};
    if (change) change(options);
    receiver = std::make_unique<Receiver>(std::move(options));
    const auto started = receiver->start(port);
    EXPECT_TRUE(started) << started.error().message;
  }

  base::SystemClock clock;
  std::atomic<uint64_t> durable{0x42};
  ReceiverPort port;
  std::unique_ptr<queue::LcrQueue> queue;
  std::unique_ptr<Receiver> receiver;
};

// The sending engine, a: a queue and a sender that can be replaced.
class SendingEngine {
 public:
  explicit SendingEngine(uint16_t to_port, std::optional<TlsFiles> tls = {}) : port(to_port), files(std::move(tls)) {}
  ~SendingEngine() { sender.reset(); }

  void start_sender(const std::function<void(SenderOptions&)>& change = {}) {
    sender.reset();
    queue = std::make_unique<queue::LcrQueue>(small_queue());
    frames.emplace(*queue, 0);
    SenderOptions options{.stream_id = "stream01",
                          .engine = "a",
                          .peer_engine = "b",
                          .host = "127.0.0.1",
                          .port = port,
                          .security = {.tls = files, .plain_on_loopback = !files},
                          .frames = &*frames,
                          .clock = &clock,
                          .window_bytes = size_t{4} << 20,
                          .batch_bytes = size_t{32} << 10,
                          .heartbeat_interval = std::chrono::milliseconds(100),
                          .reconnect_first = std::chrono::milliseconds(2),
                          .reconnect_last = std::chrono::milliseconds(50)};
    if (change) change(options);
    sender = std::make_unique<Sender>(std::move(options));
    const auto started = sender->start();
    EXPECT_TRUE(started) << started.error().message;
  }
  std::optional<base::Error> link_error() const { return sender->status().link_error; }
  // Waits until a try to connect has failed.
  base::Error await_link_error() const {
    EXPECT_TRUE(eventually([&] { return link_error().has_value(); }));
    return link_error().value_or(base::Error{});
  }

  base::SystemClock clock;
  uint16_t port;
  std::optional<TlsFiles> files;
  std::unique_ptr<queue::LcrQueue> queue;
  std::optional<queue::QueueFrames> frames;
  std::unique_ptr<Sender> sender;
};

}  // namespace thalweg::propagation
