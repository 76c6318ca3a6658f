#include "propagation/sender_link.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>

namespace thalweg::propagation {

using namespace std::chrono_literals;
using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;

namespace {

constexpr size_t kWriteBytesMax = size_t{256} << 10;  // offered to the connection at once
constexpr int kWritesPerTurn = 16;                    // before acknowledgements are looked at

uint64_t new_session() {
  std::random_device device;
  const uint64_t session = uint64_t{device()} << 32 | device();
  return session == 0 ? 1 : session;
}

std::unexpected<base::Error> stopped() { return base::fail(ErrorCode::engine_stopping, "the sender stops"); }

ErrorCode code_of(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::version:
      return ErrorCode::link_version_unsupported;
    case RefusalReason::wrong_engine:
      return ErrorCode::certificate_rejected;
    case RefusalReason::unknown_stream:
    case RefusalReason::session_changes:
      break;
  }
  return ErrorCode::link_refused;
}

uint64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

}  // namespace

SenderLink::SenderLink(const SenderOptions& options, SendWindow& window, SenderShared& shared, Callbacks callbacks)
    : options_(options),
      window_(window),
      shared_(shared),
      callbacks_(std::move(callbacks)),
      session_(new_session()),
      delay_(options.reconnect_first) {}

base::Result<void> SenderLink::run() {
  while (!stopping()) {
    const Time deadline = now() + options_.peer_timeout;
    base::Result<void> ended;
    auto connection = connect(deadline);
    if (connection) {
      ended = greet(*connection, deadline);
      if (ended) {
        delay_ = options_.reconnect_first;
        shared_.connected.store(true, std::memory_order_release);
        ended = converse(*connection);
        shared_.connected.store(false, std::memory_order_release);
        if (!stopping()) shared_.breaks.add();
      }
    } else {
      ended = std::unexpected(connection.error());
    }
    if (stopping()) break;
    if (ended) continue;
    callbacks_.broken(ended.error());
    if (ended.error().code == ErrorCode::receiver_restarted) return ended;
    wait_before_reconnect();
  }
  return {};
}

// Tries the host's addresses in their order. Each has an equal share of the time that is left; the error names them
// all.
base::Result<Connection> SenderLink::connect(Time deadline) {
  SslContext context;
  if (options_.security.tls) {
    THALWEG_ASSIGN(context, make_tls_context(TlsRole::client, *options_.security.tls));
  }
  THALWEG_ASSIGN(const std::vector<PeerAddress> addresses, options_.resolve(options_.host, options_.port));
  auto failure = base::fail(ErrorCode::engine_unreachable, options_.host + " has no address").error();
  for (size_t i = 0; i < addresses.size() && !stopping(); ++i) {
    const Time turn = now() + (deadline - now()) / static_cast<int64_t>(addresses.size() - i);
    auto socket = reach(addresses[i], turn);
    if (socket) return secure(std::move(*socket), context.get(), deadline);
    const std::string before = i == 0 ? "" : failure.message + "; ";
    failure = std::move(socket.error());
    failure.message = before + failure.message;
    if (failure.code != ErrorCode::engine_unreachable) break;
  }
  return std::unexpected(std::move(failure));
}

// A TCP connection to one address.
base::Result<base::File> SenderLink::reach(const PeerAddress& address, Time deadline) {
  THALWEG_ASSIGN(base::File socket, begin_connect(address, !options_.security.tls, options_.socket_buffer_bytes));
  pollfd connecting{.fd = socket.descriptor(), .events = POLLOUT, .revents = 0};
  while (poll(&connecting, 1, 0) == 0) {
    if (stopping()) return stopped();
    if (now() >= deadline) {
      return base::fail(ErrorCode::engine_unreachable, fmt::format("connect to {}: no answer", to_string(address)));
    }
    poll_for(socket.descriptor(), POLLOUT, deadline);
  }
  THALWEG_TRY(connect_finished(socket, address));
  return socket;
}

base::Result<Connection> SenderLink::secure(base::File socket, SSL_CTX* context, Time deadline) {
  Ssl ssl;
  if (context != nullptr) {
    THALWEG_ASSIGN(ssl, make_tls_session(context, TlsRole::client, socket.descriptor(), options_.peer_engine));
  }
  Connection connection(std::move(socket), std::move(ssl));
  for (;;) {
    THALWEG_ASSIGN(const bool done, connection.handshake("engine " + options_.peer_engine));
    if (done) return connection;
    THALWEG_TRY(await(connection, true, false, deadline));
  }
}

// HELLO, then WELCOME or REFUSE.
base::Result<void> SenderLink::greet(Connection& connection, Time deadline) {
  reader_.reset();
  control_begun_ = false;
  blocked_bytes_ = control_sent_ = 0;
  control_ = make_message(Hello{.versions = options_.versions,
                                .compressions = 1U | 1U << static_cast<unsigned>(options_.compression),
                                .sender_session = session_,
                                .receiver_session = receiver_session_,
                                .first_sequence = window_.first_sequence(),
                                .window_bytes = window_.capacity(),
                                .sender_engine = options_.engine,
                                .receiver_engine = options_.peer_engine,
                                .stream_id = options_.stream_id,
                                .timeline = options_.timeline});
  for (;;) {
    THALWEG_ASSIGN(const bool sent, write_control(connection));
    if (sent) break;
    THALWEG_TRY(await(connection, false, true, deadline));
  }
  for (;;) {
    THALWEG_ASSIGN(const auto message, reader_.next());
    if (message) {
      if (const auto* welcome = std::get_if<Welcome>(&*message)) return accept_welcome(*welcome);
      if (const auto* refuse = std::get_if<Refuse>(&*message)) {
        return base::fail(code_of(refuse->reason),
                          fmt::format("engine {} refused: {}", options_.peer_engine, refuse->text));
      }
      return base::fail(ErrorCode::link_protocol_violation, "the receiver's first message is no answer to HELLO");
    }
    THALWEG_ASSIGN(const size_t got, connection.read_some(reader_.room()));
    reader_.added(got);
    if (got == 0) THALWEG_TRY(await(connection, true, false, deadline));
  }
}

base::Result<void> SenderLink::accept_welcome(const Welcome& welcome) {
  if (welcome.version < options_.versions.lowest || welcome.version > options_.versions.highest) {
    return base::fail(
        ErrorCode::link_version_unsupported,
        fmt::format("engine {} chose protocol version {}, this engine speaks {} to {}", options_.peer_engine,
                    welcome.version, options_.versions.lowest, options_.versions.highest));
  }
  take_durable(welcome.durable);
  if (receiver_session_ != 0 && welcome.receiver_session != receiver_session_) {
    return base::fail(ErrorCode::receiver_restarted,
                      fmt::format("engine {} has a new receiver for stream {}: durable there up to {}",
                                  options_.peer_engine, options_.stream_id, base::to_string(welcome.durable)));
  }
  THALWEG_ASSIGN(const uint64_t again, window_.resume_at(welcome.next_sequence));
  receiver_session_ = welcome.receiver_session;
  shared_.batches_resent.add(again);
  callbacks_.welcomed(welcome);
  return {};
}

base::Result<void> SenderLink::converse(Connection& connection) {
  heard_ = next_heartbeat_ = now();
  while (!stopping()) {
    shared_.link_time.enter(Activity::busy);
    const Time turn = now();
    if (turn >= next_heartbeat_ && control_.empty()) {
      control_ = make_message(Heartbeat{.stamp = nanoseconds(turn)});
      next_heartbeat_ = turn + options_.heartbeat_interval;
      if (const auto kernel = connection.kernel_round_trip()) {
        shared_.kernel_round_trip_us.set(static_cast<uint64_t>(kernel->count()));
      }
    }
    THALWEG_TRY(write_available(connection));
    THALWEG_TRY(read_available(connection));
    if (turn - heard_ >= options_.peer_timeout) {
      return base::fail(ErrorCode::engine_unreachable,
                        fmt::format("engine {} was silent for {} ms", options_.peer_engine,
                                    std::chrono::duration_cast<std::chrono::milliseconds>(turn - heard_).count()));
    }
    const bool writing = blocked_bytes_ > 0 || !control_.empty();
    if (!writing && !window_.all_sent()) continue;  // the turn's share is used up, or a batch came meanwhile
    shared_.link_time.enter(writing ? Activity::network : Activity::idle);
    // A heartbeat that is due but cannot be written yet must not make this a busy loop.
    const Time beat = writing ? turn + options_.heartbeat_interval : next_heartbeat_;
    poll_for(connection.descriptor(), connection.events(true, writing), std::min(beat, heard_ + options_.peer_timeout));
  }
  // At a boundary only: a GOODBYE in the middle of a batch would be taken for its bytes.
  if (control_.empty() && blocked_bytes_ == 0 && window_.at_boundary()) {
    control_ = make_message(Goodbye{});
    static_cast<void>(write_control(connection));
  }
  connection.shut_down();
  return {};
}

// True once the control message is out. Not while bytes of a batch would block.
base::Result<bool> SenderLink::write_control(Connection& connection) {
  while (control_sent_ < control_.size()) {
    control_begun_ = true;
    THALWEG_ASSIGN(const size_t put, connection.write_some(std::span(control_).subspan(control_sent_)));
    if (put == 0) return false;
    control_sent_ += put;
  }
  shared_.bytes_sent.add(control_.size());
  control_.clear();
  control_sent_ = 0;
  control_begun_ = false;
  return true;
}

base::Result<void> SenderLink::write_available(Connection& connection) {
  for (int i = 0; i < kWritesPerTurn; ++i) {
    if (control_begun_ || (!control_.empty() && window_.at_boundary() && blocked_bytes_ == 0)) {
      THALWEG_ASSIGN(const bool sent, write_control(connection));
      if (!sent) return {};
    }
    // A waiting control message stops at the next boundary; bytes that would have blocked are offered again in full.
    const size_t wanted = control_.empty() ? kWriteBytesMax : window_.message_rest();
    const auto bytes = window_.unsent(std::max(wanted, blocked_bytes_));
    if (bytes.empty()) return {};
    THALWEG_ASSIGN(const size_t put, connection.write_some(bytes));
    if (put == 0) {
      blocked_bytes_ = bytes.size();
      return {};
    }
    blocked_bytes_ = 0;
    window_.sent(put);
    shared_.bytes_sent.add(put);
  }
  return {};
}

base::Result<void> SenderLink::read_available(Connection& connection) {
  for (;;) {
    THALWEG_ASSIGN(const size_t got, connection.read_some(reader_.room()));
    if (got == 0) return {};
    reader_.added(got);
    heard_ = now();
    for (;;) {
      THALWEG_ASSIGN(const auto message, reader_.next());
      if (!message) break;
      THALWEG_TRY(take(*message));
    }
  }
}

base::Result<void> SenderLink::take(const Message& message) {
  if (const auto* ack = std::get_if<Ack>(&message)) {
    THALWEG_TRY(window_.acknowledge(ack->received));
    take_ack(*ack);
    return {};
  }
  if (const auto* echo = std::get_if<Echo>(&message)) {
    const uint64_t received = nanoseconds(now());
    if (echo->stamp > received) {
      return base::fail(ErrorCode::link_protocol_violation, "the receiver echoes a heartbeat of the future");
    }
    shared_.round_trip_us.set((received - echo->stamp) / 1000);
    return {};
  }
  if (std::holds_alternative<Goodbye>(message)) {
    return base::fail(ErrorCode::link_lost, fmt::format("engine {} stops its receiver", options_.peer_engine));
  }
  return base::fail(ErrorCode::link_protocol_violation, "the receiver sent a message that only senders send");
}

void SenderLink::take_ack(const Ack& ack) {
  take_durable(ack.durable);
  shared_.acks.add();
  shared_.peer_free_bytes.set(ack.free_bytes);
  shared_.receiver_paused.store(ack.paused, std::memory_order_relaxed);
}

void SenderLink::take_durable(base::Lsn durable) {
  // This thread is the only writer.
  if (durable.value > shared_.durable.load(std::memory_order_relaxed)) {
    shared_.durable.store(durable.value, std::memory_order_release);
  }
}

base::Result<void> SenderLink::await(const Connection& connection, bool reading, bool writing, Time deadline) {
  if (stopping()) return stopped();
  if (now() >= deadline) {
    return base::fail(ErrorCode::engine_unreachable, fmt::format("engine {} at {}:{} does not answer",
                                                                 options_.peer_engine, options_.host, options_.port));
  }
  poll_for(connection.descriptor(), connection.events(reading, writing), deadline);
  return {};
}

void SenderLink::poll_for(int descriptor, short events, Time until) {
  wake_.wait(until - now(), {.fd = descriptor, .events = events, .revents = 0});
}

// Growing delays, spread by a fifth so that the streams of two engines do not come back in step.
void SenderLink::wait_before_reconnect() {
  std::uniform_real_distribution<double> spread(0.8, 1.2);
  const auto delay = std::chrono::duration_cast<std::chrono::microseconds>(delay_ * spread(random_));
  delay_ = std::min(delay_ * 2, options_.reconnect_last);
  const Time until = now() + delay;
  while (!stopping() && now() < until) poll_for(-1, 0, until);
}

}  // namespace thalweg::propagation
