#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/wake.h"
#include "propagation/batch_codec.h"
#include "propagation/connection.h"
#include "propagation/frame_assembler.h"
#include "propagation/message_reader.h"
#include "propagation/receiver.h"
#include "telemetry/agent.h"
#include "telemetry/marker_log.h"

namespace thalweg::propagation {

// A connection whose sender has said who it is, on its way from the port to the receiver.
struct Arrival {
  Connection connection;
  Hello hello;
  uint16_t version = 0;  // that both speak
};

// The receiver's insides. Owner: its thread, but for what stands under "anybody" and the parts of the owner's
// interface.
struct Receiver::State {
  explicit State(ReceiverOptions given);

  // --- anybody
  // Takes a connection that the port has accepted for this stream; an older one that waits or stands is replaced.
  void deliver(Arrival arrival);
  // The port turned this receiver's sender away: the reason that status() shows until a connection stands.
  void note_refusal(const base::Error& why);
  void stop();

  // --- its thread
  void run();

  const ReceiverOptions options;
  ReceiverPort* port = nullptr;  // where it is registered; the owner's
  std::thread thread;

  std::atomic<bool> running{false};
  std::atomic<bool> stop_requested{false};
  std::atomic<bool> connected{false};
  std::atomic<bool> has_arrival{false};  // set and cleared under the mutex; looked at without it
  mutable std::mutex mutex;
  std::optional<Arrival> arrival;         // guarded
  std::optional<base::Error> error;       // guarded
  std::optional<base::Error> link_error;  // guarded
  base::Wake wake;

  telemetry::TimeAccount time;  // the thread writes, sample() reads; so do all below
  telemetry::StateText text{"INITIALIZING"};
  telemetry::Counter lcrs, batches, frame_bytes, bytes_received, breaks, latency_us, last_batch_us;
  telemetry::MarkerLog markers;

 private:
  using Time = std::chrono::steady_clock::time_point;

  base::Result<void> greet(Arrival& arrived);
  base::Result<void> converse();
  base::Result<bool> read_available();
  base::Result<void> take(const Message& message);
  base::Result<void> take_batch(const Batch& batch);
  base::Result<bool> enqueue_pending();
  base::Result<void> keep_in_touch(bool paused);
  base::Result<void> write_out();
  void poll_for(bool reading, Time until);
  void lose(const base::Error& why);
  Time now() const { return options.clock->steady_now(); }
  void count_enqueued();
  bool stopping() const { return stop_requested.load(std::memory_order_acquire); }

  FrameAssembler assembler;
  MessageReader reader{kMessageBytesMax};
  BatchDecompressor decompressor;
  std::optional<Connection> connection;
  const uint64_t session;
  uint64_t sender_session = 0;         // that this receiver belongs to; 0: none yet
  uint64_t received = 0;               // the last batch that is here, at least in `pending`
  std::span<const std::byte> pending;  // of the last batch: what the queue had no room for yet
  std::vector<std::byte> out;          // bytes that wait to be written
  size_t out_written = 0;
  std::optional<uint64_t> echo_stamp;  // a heartbeat that waits for its echo
  uint64_t window_bytes = 0;           // the sender's
  uint64_t unacknowledged_bytes = 0;   // received since the last ACK
  base::Lsn acknowledged_durable;
  uint64_t acknowledged = 0;
  bool acknowledged_paused = false;
  Time acknowledged_at{};
  Time heard{};
};

}  // namespace thalweg::propagation
