#include "propagation/sender.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "propagation/agent_thread.h"
#include "propagation/batch_packer.h"
#include "propagation/messages.h"
#include "propagation/send_window.h"
#include "propagation/sender_link.h"

namespace thalweg::propagation {

using base::ErrorCode;

namespace {

base::Result<void> check(const SenderOptions& options) {
  const auto invalid = [](std::string message) { return base::fail(ErrorCode::invalid_request, std::move(message)); };
  if (!options.security.tls && !options.security.plain_on_loopback) return invalid("a sender needs TLS files");
  if (options.window_bytes < size_t{4} << 20) return invalid("a sender's window has at least 4 MiB");
  if (options.batch_bytes < 4096 || options.batch_bytes > kBatchRawBytesMax || options.batch_bytes % 8 != 0) {
    return invalid(fmt::format("a batch has 4096 to {} bytes, in multiples of 8", kBatchRawBytesMax));
  }
  for (const auto* name : {&options.engine, &options.peer_engine, &options.stream_id}) {
    if (name->empty() || name->size() > 255) return invalid("names of engines and streams have 1 to 255 bytes");
  }
  return {};
}

}  // namespace

struct Sender::State {
  explicit State(SenderOptions given)
      : options(std::move(given)),
        window(options.window_bytes, kBatchHeaderBytes + options.batch_bytes),
        link(options, window, shared,
             {.welcomed = [this](const Welcome& by) { welcomed(by); },
              .broken = [this](const base::Error& why) { broken(why); }}) {}

  void welcomed(const Welcome& by) {
    {
      const std::lock_guard lock(mutex);
      link_error.reset();
      if (!welcome) welcome = by;
    }
    changed.notify_all();
    base::log_event(
        base::LogLevel::info, "propagation_connected",
        {{"stream", options.stream_id}, {"engine", options.peer_engine}, {"durable", base::to_string(by.durable)}});
  }

  void broken(const base::Error& why) {
    bool is_new = false;
    {
      const std::lock_guard lock(mutex);
      is_new = !link_error || link_error->message != why.message;
      link_error = why;
    }
    changed.notify_all();
    if (is_new) base::log_error("propagation_link_broken", why);
  }

  void run_link() {
    const auto ended = link.run();
    if (!ended) {
      const std::lock_guard lock(mutex);
      error = ended.error();
    }
    end();
  }

  // Packs from the first welcome on: only then it is known what the receiver can decompress, and which frames it knows.
  void run_packer() {
    shared.packer_state.set("INITIALIZING PROPAGATION RECEIVER");
    std::optional<Welcome> accepted;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return welcome || ending(); });
      accepted = welcome;
    }
    if (accepted) {
      const bool known = (accepted->compressions >> static_cast<unsigned>(options.compression) & 1U) != 0;
      BatchPacker packer(options, known ? options.compression : Compression::none, accepted->version, window, shared,
                         [this] { link.wake(); });
      if (auto packed = packer.run(); !packed) {
        const std::lock_guard lock(mutex);
        error = packed.error();
      }
    }
    end();
    shared.packer_state.set("STOPPED");
  }

  bool ending() const {
    return shared.stop.load(std::memory_order_acquire) || shared.drain.load(std::memory_order_acquire);
  }

  // Ends both threads.
  void end() {
    {
      const std::lock_guard lock(mutex);  // so that no waiter misses the change between its look and its sleep
      shared.stop.store(true, std::memory_order_release);
    }
    changed.notify_all();
    window.interrupt();
    link.wake();
  }

  const SenderOptions options;
  SenderShared shared;
  SendWindow window;
  SenderLink link;
  std::thread link_thread, packer_thread;
  std::atomic<int> threads_running{0};

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<Welcome> welcome;         // guarded: the first one
  std::optional<base::Error> error;       // guarded
  std::optional<base::Error> link_error;  // guarded
};

Sender::Sender(SenderOptions options) : state_(std::make_unique<State>(std::move(options))) {}

Sender::~Sender() {
  request_stop(false);
  join();
}

base::Result<void> Sender::start() {
  THALWEG_TRY(check(state_->options));
  State* state = state_.get();
  state->threads_running.store(2, std::memory_order_release);
  state->link_thread = start_agent([state] {
    state->run_link();
    state->threads_running.fetch_sub(1, std::memory_order_acq_rel);
  });
  state->packer_thread = start_agent([state] {
    state->run_packer();
    state->threads_running.fetch_sub(1, std::memory_order_acq_rel);
  });
  return {};
}

base::Result<base::Lsn> Sender::await_receiver(std::chrono::milliseconds timeout) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.changed.wait_for(lock, timeout, [&] { return state.welcome || state.error || state.ending(); });
  if (state.welcome) return state.welcome->durable;
  if (state.error) return std::unexpected(*state.error);
  if (state.link_error) return std::unexpected(*state.link_error);
  if (state.ending()) return base::fail(ErrorCode::engine_stopping, "the sender stops");
  return base::fail(ErrorCode::engine_unreachable,
                    fmt::format("engine {} at {}:{} did not answer within {} ms", state.options.peer_engine,
                                state.options.host, state.options.port, timeout.count()));
}

void Sender::request_stop(bool drain) {
  State& state = *state_;
  if (!drain) {
    state.end();
    return;
  }
  {
    const std::lock_guard lock(state.mutex);
    state.shared.drain.store(true, std::memory_order_release);
  }
  state.changed.notify_all();
}

void Sender::join() {
  if (state_->packer_thread.joinable()) state_->packer_thread.join();
  if (state_->link_thread.joinable()) state_->link_thread.join();
}

SenderStatus Sender::status() const {
  const State& state = *state_;
  SenderStatus status;
  status.running = state.threads_running.load(std::memory_order_acquire) > 0;
  status.connected = state.shared.connected.load(std::memory_order_acquire);
  status.durable = durable();
  status.breaks = state.shared.breaks.get();
  status.state = status.running && !status.connected ? "CONNECTING" : state.shared.packer_state.get();
  const std::lock_guard lock(state.mutex);
  status.error = state.error;
  status.link_error = state.link_error;
  return status;
}

base::Lsn Sender::durable() const { return {state_->shared.durable.load(std::memory_order_acquire)}; }

const std::atomic<uint64_t>& Sender::durable_lsn() const { return state_->shared.durable; }

void Sender::add_to(telemetry::MarkerTrail& trail) const {
  trail.stages.push_back(
      {.component = "PROPAGATION SENDER", .stage = "SEND", .passages = state_->shared.markers.read()});
}

telemetry::ComponentSample Sender::sample() const {
  const State& state = *state_;
  const SenderShared& shared = state.shared;
  const bool connected = shared.connected.load(std::memory_order_acquire);
  const bool running = state.threads_running.load(std::memory_order_acquire) > 0;
  const auto link_time = shared.link_time.sample();
  const auto gauge = [](uint64_t value) { return static_cast<int64_t>(value); };
  telemetry::ComponentSample out{
      .type = "PROPAGATION SENDER",
      .name = "propagation sender",
      .sub_component = {},
      .state = running && !connected ? "CONNECTING" : shared.packer_state.get(),
      .time_ns = shared.packer_time.sample(),
      .counters = {{"lcrs", shared.lcrs.get()},
                   {"batches", shared.batches.get()},
                   {"bytes", shared.bytes.get()},
                   {"packed_bytes", shared.packed_bytes.get()},
                   {"bytes_sent", shared.bytes_sent.get()},
                   {"batches_resent", shared.batches_resent.get()},
                   {"acknowledgements", shared.acks.get()},
                   {"breaks", shared.breaks.get()},
                   {"link_busy_ns", link_time[static_cast<size_t>(telemetry::Activity::busy)]},
                   {"link_network_ns", link_time[static_cast<size_t>(telemetry::Activity::network)]}},
      .gauges = {{"connected", connected ? 1 : 0},
                 {"window_bytes", gauge(state.window.capacity())},
                 {"window_used_bytes", gauge(state.window.used())},
                 {"latency_us", gauge(shared.latency_us.get())},
                 {"round_trip_us", gauge(shared.round_trip_us.get())},
                 {"kernel_round_trip_us", gauge(shared.kernel_round_trip_us.get())},
                 {"peer_free_bytes", gauge(shared.peer_free_bytes.get())}}};
  if (const auto latency = shared.markers.latency_micros()) out.gauges.emplace_back("marker_latency_us", *latency);
  return out;
}

}  // namespace thalweg::propagation
