#include "propagation/receiver_port.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/log.h"
#include "propagation/agent_thread.h"
#include "propagation/receiver_port_state.h"

namespace thalweg::propagation {

using base::ErrorCode;

namespace {

constexpr size_t kAcceptsInTurn = 64;                     // then those that are here have their turn
constexpr std::chrono::milliseconds kTellInterval{1000};  // between two refusals in the log

base::Error make_error(ErrorCode code, std::string message) { return base::fail(code, std::move(message)).error(); }

}  // namespace

base::Result<void> ReceiverPort::State::enter(std::shared_ptr<Receiver::State> receiver) {
  const std::lock_guard lock(mutex);
  const std::string& stream = receiver->options.stream_id;
  if (!receivers.emplace(stream, receiver).second) {
    return base::fail(ErrorCode::invalid_request, fmt::format("stream {} already has a receiver", stream));
  }
  return {};
}

void ReceiverPort::State::leave(const Receiver::State& receiver) {
  const std::lock_guard lock(mutex);
  const auto found = receivers.find(receiver.options.stream_id);
  if (found != receivers.end() && found->second.get() == &receiver) receivers.erase(found);
}

base::Result<void> ReceiverPort::State::load_certificates() {
  if (!options.security.tls) return {};
  THALWEG_ASSIGN(SslContext context, make_tls_context(TlsRole::server, *options.security.tls));
  const std::lock_guard lock(mutex);
  tls = std::move(context);
  return {};
}

void ReceiverPort::State::run() {
  std::vector<pollfd> polled;
  while (!stop_requested.load(std::memory_order_acquire)) {
    const bool paused = std::chrono::steady_clock::now() < accept_again;
    polled.assign({wake.polled(), {.fd = paused ? -1 : listener.descriptor(), .events = POLLIN, .revents = 0}});
    Time next = paused ? accept_again : Time::max();
    for (const auto& handshake : handshakes) {
      polled.push_back({.fd = handshake->connection.descriptor(),
                        .events = handshake->connection.events(true, false),
                        .revents = 0});
      next = std::min(next, handshake->deadline);
    }
    int timeout = -1;
    if (next != Time::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
      timeout = static_cast<int>(std::max<int64_t>(left.count(), 0));
    }
    poll(polled.data(), polled.size(), timeout);
    if (polled[0].revents != 0) wake.clear();
    std::erase_if(handshakes, [this](const auto& handshake) {
      if (!advance(*handshake)) return false;
      strangers.leave(handshake->number);
      return true;
    });
    if (polled[1].revents != 0) accept_waiting();
  }
  handshakes.clear();
}

void ReceiverPort::State::accept_waiting() {
  for (size_t accepted = 0; accepted < kAcceptsInTurn; ++accepted) {
    auto socket = accept_from(listener);
    if (!socket) return pause_accepting(socket.error());
    accept_failing = false;
    if (!socket->is_open()) return;
    enter(*std::move(socket));
  }
}

void ReceiverPort::State::enter(base::File socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) return;  // gone already
  std::shared_ptr<SSL_CTX> context;
  {
    const std::lock_guard lock(mutex);
    ++gauges.accepted;
    context = tls;
  }
  Ssl ssl;
  if (context) {
    auto session = make_tls_session(context.get(), TlsRole::server, socket.descriptor(), {});
    if (!session) return note_refusal(session.error());
    ssl = std::move(*session);  // keeps the context alive by itself
  }
  auto handshake =
      std::make_unique<Handshake>(Handshake{.number = ++last_number,
                                            .connection = Connection(std::move(socket), std::move(ssl)),
                                            .deadline = std::chrono::steady_clock::now() + options.handshake_timeout});
  if (advance(*handshake)) return;
  if (const auto oldest = strangers.enter(handshake->number, base::origin_of(reinterpret_cast<sockaddr*>(&peer)))) {
    push_out(*oldest);
  }
  handshakes.push_back(std::move(handshake));
}

void ReceiverPort::State::push_out(uint64_t number) {
  std::erase_if(handshakes, [number](const auto& handshake) { return handshake->number == number; });
  note_refusal(make_error(ErrorCode::engine_unreachable,
                          "a peer made place for another: too many have connected and not said who they are"));
}

// The listener stays readable while no descriptor is free: polled on, this thread would never sleep.
void ReceiverPort::State::pause_accepting(const base::Error& why) {
  accept_again = std::chrono::steady_clock::now() + options.accept_pause;
  if (!std::exchange(accept_failing, true)) base::log_error("propagation_accept_failed", why);
  const std::lock_guard lock(mutex);
  ++gauges.accept_failures;
}

bool ReceiverPort::State::advance(Handshake& handshake) {
  if (!handshake.secured) {
    const auto done = handshake.connection.handshake("a sender");
    if (!done) {
      note_refusal(done.error());
      return true;
    }
    handshake.secured = *done;
  }
  if (handshake.secured) {
    auto hello = read_hello(handshake);
    if (hello && *hello) {
      const auto handed = hand_over(handshake, std::move(**hello));
      if (!handed) note_refusal(handed.error());
      return true;
    }
    if (!hello) {
      note_refusal(hello.error());
      return true;
    }
  }
  if (std::chrono::steady_clock::now() < handshake.deadline) return false;
  note_refusal(make_error(ErrorCode::engine_unreachable, "a peer connected and did not say who it is in time"));
  return true;
}

base::Result<std::optional<Hello>> ReceiverPort::State::read_hello(Handshake& handshake) {
  for (;;) {
    THALWEG_ASSIGN(auto message, handshake.reader.next());
    if (message) {
      auto* hello = std::get_if<Hello>(&*message);
      if (hello != nullptr && handshake.reader.empty()) return std::optional<Hello>(std::move(*hello));
      return base::fail(ErrorCode::link_protocol_violation, "a peer's first message is no HELLO, or more came with it");
    }
    THALWEG_ASSIGN(const size_t got, handshake.connection.read_some(handshake.reader.room()));
    if (got == 0) return std::nullopt;
    handshake.reader.added(got);
  }
}

// Checks the engines' names before the version, so that a version mismatch is reported on the right stream.
base::Result<void> ReceiverPort::State::hand_over(Handshake& handshake, Hello hello) {
  if (hello.receiver_engine != options.engine) {
    return refuse(handshake, RefusalReason::wrong_engine,
                  fmt::format("this is engine {}, not {}", options.engine, hello.receiver_engine));
  }
  if (!handshake.connection.peer_is(hello.sender_engine)) {
    return refuse(handshake, RefusalReason::wrong_engine,
                  fmt::format("the sender's certificate does not name engine {}", hello.sender_engine));
  }
  std::shared_ptr<Receiver::State> receiver;
  {
    const std::lock_guard lock(mutex);
    const auto found = receivers.find(hello.stream_id);
    if (found != receivers.end()) receiver = found->second;
  }
  if (receiver && receiver->options.peer_engine != hello.sender_engine) {
    return refuse(handshake, RefusalReason::wrong_engine,
                  fmt::format("stream {} comes from engine {}, not from {}", hello.stream_id,
                              receiver->options.peer_engine, hello.sender_engine));
  }
  const uint16_t version = common_version(options.versions, hello.versions);
  if (version == 0) {
    auto refused = refuse(handshake, RefusalReason::version,
                          fmt::format("engine {} speaks propagation protocol {} to {}, engine {} speaks {} to {}",
                                      options.engine, options.versions.lowest, options.versions.highest,
                                      hello.sender_engine, hello.versions.lowest, hello.versions.highest));
    if (receiver) receiver->note_refusal(refused.error());
    return refused;
  }
  if (!receiver || !receiver->running.load(std::memory_order_acquire)) {
    return refuse(handshake, RefusalReason::unknown_stream,
                  fmt::format("engine {} runs no receiver for stream {}", options.engine, hello.stream_id));
  }
  receiver->deliver({.connection = std::move(handshake.connection), .hello = std::move(hello), .version = version});
  return {};
}

// Tells the peer why; best effort, because this thread waits for nobody.
std::unexpected<base::Error> ReceiverPort::State::refuse(Handshake& handshake, RefusalReason reason, std::string text) {
  const auto message = make_message(Refuse{.versions = options.versions, .reason = reason, .text = text});
  static_cast<void>(handshake.connection.write_some(message));
  handshake.connection.shut_down();
  ErrorCode code = ErrorCode::link_refused;
  if (reason == RefusalReason::version) code = ErrorCode::link_version_unsupported;
  if (reason == RefusalReason::wrong_engine) code = ErrorCode::certificate_rejected;
  return base::fail(code, std::move(text));
}

void ReceiverPort::State::note_refusal(const base::Error& why) {
  const auto now = std::chrono::steady_clock::now();
  if (now - refusal_logged >= kTellInterval) {  // anybody can make them
    refusal_logged = now;
    base::log_error("propagation_handshake_failed", why);
  }
  const std::lock_guard lock(mutex);
  ++gauges.refused;
  gauges.last_refusal = why.message;
}

ReceiverPort::ReceiverPort(ReceiverPortOptions options) : state_(std::make_unique<State>(std::move(options))) {}

ReceiverPort::~ReceiverPort() { stop(); }

base::Result<void> ReceiverPort::start() {
  State& state = *state_;
  if (!state.options.security.tls && !state.options.security.plain_on_loopback) {
    return base::fail(ErrorCode::invalid_request, "a port for senders needs TLS files");
  }
  THALWEG_TRY(state.load_certificates());
  THALWEG_ASSIGN(state.listener, listen_on(state.options.address, state.options.port, !state.options.security.tls));
  state.thread = start_agent([&state] { state.run(); });
  return {};
}

void ReceiverPort::stop() {
  state_->stop_requested.store(true, std::memory_order_release);
  state_->wake.ring();
  if (state_->thread.joinable()) state_->thread.join();
  state_->listener = base::File();
}

uint16_t ReceiverPort::port() const { return port_of(state_->listener); }

base::Result<void> ReceiverPort::reload_certificates() { return state_->load_certificates(); }

ReceiverPort::Gauges ReceiverPort::gauges() const {
  const std::lock_guard lock(state_->mutex);
  return state_->gauges;
}

}  // namespace thalweg::propagation
