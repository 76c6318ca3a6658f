#include "propagation/receiver.h"

#include "propagation/agent_thread.h"
#include "propagation/receiver_port_state.h"
#include "propagation/receiver_state.h"

namespace thalweg::propagation {

Receiver::Receiver(ReceiverOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Receiver::~Receiver() {
  request_stop();
  join();
}

base::Result<void> Receiver::start(ReceiverPort& port) {
  state_->running.store(true, std::memory_order_release);  // the port hands connections to running receivers only
  if (auto entered = port.state_->enter(state_); !entered) {
    state_->running.store(false, std::memory_order_release);
    return entered;
  }
  state_->port = &port;
  // The raw pointer: the owner joins before the state goes.
  state_->thread = start_agent([state = state_.get()] {
    state->run();
    state->running.store(false, std::memory_order_release);
  });
  return {};
}

void Receiver::request_stop() {
  if (state_->port != nullptr) state_->port->state_->leave(*state_);
  state_->port = nullptr;
  state_->stop();
}

void Receiver::join() {
  if (state_->thread.joinable()) state_->thread.join();
}

ReceiverStatus Receiver::status() const {
  const State& state = *state_;
  ReceiverStatus status;
  status.running = state.running.load(std::memory_order_acquire);
  status.connected = state.connected.load(std::memory_order_acquire);
  status.state = state.text.get();
  status.breaks = state.breaks.get();
  const std::lock_guard lock(state.mutex);
  status.error = state.error;
  if (!status.connected) status.link_error = state.link_error;
  return status;
}

telemetry::ComponentSample Receiver::sample() const {
  const State& state = *state_;
  telemetry::ComponentSample out{.type = "PROPAGATION RECEIVER",
                                 .name = "propagation receiver",
                                 .sub_component = {},
                                 .state = state.text.get(),
                                 .time_ns = state.time.sample(),
                                 .counters = {{"lcrs", state.lcrs.get()},
                                              {"batches", state.batches.get()},
                                              {"bytes", state.frame_bytes.get()},
                                              {"bytes_received", state.bytes_received.get()},
                                              {"breaks", state.breaks.get()}},
                                 .gauges = {{"connected", state.connected.load(std::memory_order_acquire) ? 1 : 0},
                                            {"latency_us", static_cast<int64_t>(state.latency_us.get())},
                                            {"link_latency_us", static_cast<int64_t>(state.last_batch_us.get())}}};
  if (const auto latency = state.markers.latency_micros()) out.gauges.emplace_back("marker_latency_us", *latency);
  return out;
}

void Receiver::add_to(telemetry::MarkerTrail& trail) const {
  trail.stages.push_back({.component = "PROPAGATION RECEIVER", .stage = "RECEIVE", .passages = state_->markers.read()});
}

}  // namespace thalweg::propagation
