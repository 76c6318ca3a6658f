#include "propagation/receiver_state.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <random>

#include "base/log.h"

namespace thalweg::propagation {

using namespace std::chrono_literals;
using base::ErrorCode;
using telemetry::Activity;

namespace {

constexpr std::chrono::milliseconds kFlowControlSlice{10};  // of waiting for room between looks at everything else
constexpr std::chrono::milliseconds kDurableLook{100};      // how often an idle receiver asks for the durable position
constexpr uint32_t kAcceptedCompressions = 0b111;

uint64_t new_session() {
  std::random_device device;
  const uint64_t session = uint64_t{device()} << 32 | device();
  return session == 0 ? 1 : session;
}

}  // namespace

Receiver::State::State(ReceiverOptions given)
    : options(std::move(given)), assembler(*options.queue), session(new_session()) {}

void Receiver::State::deliver(Arrival arrived) {
  {
    const std::lock_guard lock(mutex);
    arrival = std::move(arrived);
    has_arrival.store(true, std::memory_order_release);
  }
  wake.ring();
}

void Receiver::State::note_refusal(const base::Error& why) {
  const std::lock_guard lock(mutex);
  link_error = why;
}

void Receiver::State::stop() {
  stop_requested.store(true, std::memory_order_release);
  wake.ring();
}

void Receiver::State::run() {
  base::Result<void> fatal;
  while (!stopping()) {
    std::optional<Arrival> arrived;
    {
      const std::lock_guard lock(mutex);
      arrived.swap(arrival);
      has_arrival.store(false, std::memory_order_release);
    }
    if (!arrived) {
      text.set("WAITING FOR SENDER");
      time.enter(Activity::idle);
      // Batches that the last connection left go into the queue meanwhile.
      const auto enqueued = enqueue_pending();
      if (!enqueued) fatal = std::unexpected(enqueued.error());
      if (!fatal) break;
      poll_for(false, now() + (*enqueued ? 1'000ms : 0ms));
      continue;
    }
    auto ended = greet(*arrived);
    if (ended) {
      {
        const std::lock_guard lock(mutex);
        link_error.reset();
      }
      connected.store(true, std::memory_order_release);
      ended = converse();
      connected.store(false, std::memory_order_release);
      if (ended) continue;  // a goodbye, a newer connection, or a stop
    }
    if (ended.error().code == ErrorCode::sender_restarted || ended.error().code == ErrorCode::corrupt_frame) {
      fatal = ended;
      break;
    }
    lose(ended.error());
  }
  if (!fatal) {
    base::log_error("propagation_receiver_failed", fatal.error());
    const std::lock_guard lock(mutex);
    error = fatal.error();
  } else if (connection) {
    out = make_message(Goodbye{});
    out_written = 0;
    static_cast<void>(write_out());
  }
  if (connection) connection->shut_down();
  connection.reset();
  time.enter(Activity::idle);
  text.set("STOPPED");
}

void Receiver::State::lose(const base::Error& why) {
  connection.reset();
  base::log_error("propagation_link_broken", why);
  {
    const std::lock_guard lock(mutex);
    link_error = why;
  }
  breaks.add();  // last: whoever sees the break finds its reason
}

// Answers HELLO. Fails with sender_restarted where the sender's session is another than the one this receiver belongs
// to.
base::Result<void> Receiver::State::greet(Arrival& arrived) {
  reader.reset();  // what is pending may lie in its memory: nothing is read before that is enqueued
  out.clear();
  out_written = 0;
  echo_stamp.reset();
  connection.emplace(std::move(arrived.connection));
  const Hello& hello = arrived.hello;
  const bool elsewhere = options.timeline != 0 && hello.timeline != 0 && hello.timeline != options.timeline;
  if (elsewhere || (received > 0 && hello.sender_session != sender_session)) {
    out = make_message(Refuse{.versions = {.lowest = arrived.version, .highest = arrived.version},
                              .reason = RefusalReason::session_changes,
                              .text = "the receiver starts over for the sender's new session"});
    THALWEG_TRY(write_out());
    return base::fail(
        ErrorCode::sender_restarted,
        elsewhere ? fmt::format("engine {} reads stream {} from timeline {} of the source, not from {}",
                                hello.sender_engine, options.stream_id, hello.timeline, options.timeline)
                  : fmt::format("engine {} began a new session of stream {}", hello.sender_engine, options.stream_id));
  }
  // A sender that knows another receiver session learns from ours that this one cannot go on, and comes back with a new
  // session of its own: that one is not this receiver's yet.
  const bool goes_on = hello.receiver_session == 0 || hello.receiver_session == session;
  if (goes_on) sender_session = hello.sender_session;
  window_bytes = hello.window_bytes;
  acknowledged = received;
  acknowledged_durable = options.durable();
  acknowledged_at = heard = now();
  unacknowledged_bytes = 0;
  out = make_message(Welcome{.version = arrived.version,
                             .compressions = hello.compressions & kAcceptedCompressions,
                             .receiver_session = session,
                             .next_sequence = received + 1,
                             .durable = acknowledged_durable,
                             .clock = options.clock->unix_now()});
  THALWEG_TRY(write_out());
  if (!goes_on) {
    connection->shut_down();
    return base::fail(ErrorCode::link_lost, "the sender belongs to an earlier receiver; it starts over");
  }
  return {};
}

// Receives until the connection breaks (an error), says goodbye, is replaced, or the receiver stops.
base::Result<void> Receiver::State::converse() {
  while (!stopping() && !has_arrival.load(std::memory_order_acquire)) {
    THALWEG_ASSIGN(const bool all_enqueued, enqueue_pending());
    if (!all_enqueued) {  // the queue is full: nothing is read, but the sender hears from us
      heard = now();      // and is not judged by what we do not read
      THALWEG_TRY(keep_in_touch(true));
      continue;
    }
    time.enter(Activity::busy);
    THALWEG_ASSIGN(const bool some, read_available());
    if (!connection) return {};
    THALWEG_TRY(keep_in_touch(false));
    if (some) continue;
    options.queue->flush();
    if (now() - heard >= options.peer_timeout) {
      return base::fail(ErrorCode::engine_unreachable, fmt::format("engine {} was silent for {} ms",
                                                                   options.peer_engine, options.peer_timeout.count()));
    }
    text.set("WAITING FOR LCRS");
    time.enter(Activity::idle);
    const auto look =
        std::min<std::chrono::milliseconds>({options.ack_interval, kDurableLook, options.heartbeat_interval});
    poll_for(true, now() + look);
  }
  return {};
}

// Reads once and takes what has come whole; false when nothing came. Stops early at a batch that the queue has no room
// for.
base::Result<bool> Receiver::State::read_available() {
  bool some = false;
  for (;;) {
    THALWEG_ASSIGN(const auto message, reader.next());
    if (message) {
      some = true;
      if (std::holds_alternative<Goodbye>(*message)) {
        connection.reset();
        return true;
      }
      THALWEG_TRY(take(*message));
      if (!pending.empty()) return true;
      continue;
    }
    if (some) return true;
    THALWEG_ASSIGN(const size_t got, connection->read_some(reader.room()));
    if (got == 0) return false;
    reader.added(got);
    bytes_received.add(got);
    heard = now();
    text.set("RECEIVING LCRS");
    some = true;
  }
}

base::Result<void> Receiver::State::take(const Message& message) {
  if (const auto* batch = std::get_if<Batch>(&message)) return take_batch(*batch);
  if (const auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    echo_stamp = heartbeat->stamp;
    return {};
  }
  return base::fail(ErrorCode::link_protocol_violation, "the sender sent a message that only receivers send");
}

base::Result<void> Receiver::State::take_batch(const Batch& batch) {
  if (batch.sequence != received + 1) {
    return base::fail(ErrorCode::link_protocol_violation,
                      fmt::format("batch {} came where {} was expected", batch.sequence, received + 1));
  }
  THALWEG_ASSIGN(pending, decompressor.decompress(batch));
  received = batch.sequence;
  unacknowledged_bytes += kBatchHeaderBytes + batch.payload.size();
  batches.add();
  const int64_t age = options.clock->unix_now().value - batch.sent.value;
  last_batch_us.set(static_cast<uint64_t>(std::max<int64_t>(age, 0)));
  THALWEG_TRY(assembler.feed(pending, 0us));
  count_enqueued();
  if (assembler.last_commit().value != 0) {
    const int64_t latency = options.clock->unix_now().value - assembler.last_commit().value;
    latency_us.set(static_cast<uint64_t>(std::max<int64_t>(latency, 0)));
  }
  return {};
}

void Receiver::State::count_enqueued() {
  lcrs.set(assembler.lcrs());
  frame_bytes.set(assembler.bytes());
  if (const auto marker = assembler.take_marker()) {
    markers.note({marker->commit_lsn, marker->commit_time, options.clock->unix_now()});
  }
}

// Waits a slice for room where something is left of the last batch. True when nothing is left.
base::Result<bool> Receiver::State::enqueue_pending() {
  if (pending.empty()) return true;
  options.queue->flush();
  time.enter(Activity::flow_control);
  text.set("PAUSED FOR FLOW CONTROL");
  THALWEG_TRY(assembler.feed(pending, kFlowControlSlice));
  count_enqueued();
  return pending.empty();
}

// Sends echo and ACK where they are due.
base::Result<void> Receiver::State::keep_in_touch(bool paused) {
  THALWEG_TRY(write_out());
  if (out.empty() && echo_stamp) {
    out = make_message(Echo{.stamp = *echo_stamp});
    echo_stamp.reset();
    THALWEG_TRY(write_out());
  }
  const Time turn = now();
  const auto since = turn - acknowledged_at;
  bool due = since >= options.heartbeat_interval || unacknowledged_bytes >= window_bytes / 2 ||
             (since >= kFlowControlSlice && paused != acknowledged_paused) ||
             (since >= options.ack_interval && received != acknowledged);
  base::Lsn durable = acknowledged_durable;
  if (!due && since >= std::min(options.ack_interval, kDurableLook)) {
    durable = options.durable();
    due = durable != acknowledged_durable;
  } else if (due) {
    durable = options.durable();
  }
  if (due && out.empty()) {
    const auto queue = options.queue->gauges();
    out = make_message(Ack{.received = received,
                           .durable = durable,
                           .clock = options.clock->unix_now(),
                           .free_bytes = queue.memory_bytes - std::min(queue.memory_bytes, queue.depth_bytes),
                           .paused = paused});
    acknowledged_at = turn;
    acknowledged = received;
    acknowledged_durable = durable;
    acknowledged_paused = paused;
    unacknowledged_bytes = 0;
  }
  return write_out();
}

// Writes what waits, as far as it goes without waiting.
base::Result<void> Receiver::State::write_out() {
  while (out_written < out.size()) {
    THALWEG_ASSIGN(const size_t put, connection->write_some(std::span(out).subspan(out_written)));
    if (put == 0) return {};
    out_written += put;
  }
  out.clear();
  out_written = 0;
  return {};
}

void Receiver::State::poll_for(bool reading, Time until) {
  pollfd peer{.fd = -1, .events = 0, .revents = 0};
  if (reading && connection) {
    peer.fd = connection->descriptor();
    peer.events = connection->events(true, !out.empty());
  }
  wake.wait(until - now(), peer);
}

}  // namespace thalweg::propagation
