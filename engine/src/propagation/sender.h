#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "propagation/link.h"
#include "propagation/peer_address.h"
#include "queue/frame_source.h"
#include "telemetry/marker_log.h"
#include "telemetry/sample.h"

// The propagation sender: consumer of a queue whose LCRs it streams to the receiver of another engine (Wong et al.
// 2009, II.C and VI.E).

namespace thalweg::propagation {

struct SenderOptions {
  std::string stream_id;
  std::string engine;       // this engine's name, as in its certificate
  std::string peer_engine;  // the receiving engine's name: its certificate must carry it
  std::string host;         // name or address of the receiving engine's port
  uint16_t port = 0;
  LinkSecurity security = {};
  uint32_t timeline = 0;  // that the source is on, as far as the LCRs' positions mean anything; 0: not told

  queue::FrameSource* frames = nullptr;  // the source of LCRs; it and the clock outlive the sender
  const base::Clock* clock = nullptr;

  Compression compression = Compression::none;
  int zstd_level = 1;
  size_t window_bytes = size_t{64} << 20;        // sent but not acknowledged; at least 4 MiB. Full: flow control
  size_t batch_bytes = size_t{128} << 10;        // a batch is closed at this size (before compression); 4 KiB to 1 MiB
  std::chrono::microseconds batch_delay{1'000};  // or when its first LCR is so old; an idle link sends at once

  std::chrono::milliseconds heartbeat_interval{1'000};
  std::chrono::milliseconds peer_timeout{10'000};  // of silence: the connection is given up
  std::chrono::milliseconds reconnect_first{100};  // delays double from here
  std::chrono::milliseconds reconnect_last{5'000};
  size_t socket_buffer_bytes = 0;  // SO_SNDBUF; 0 leaves it to the kernel, whose own sizing is best below 4 MiB

  ProtocolVersions versions = {};   // for tests of other versions
  Resolver resolve = resolve_peer;  // for tests of hosts with several addresses
};

struct SenderStatus {
  bool running = false;    // from start() until its threads have ended
  bool connected = false;  // a receiver has welcomed this sender and the connection stands
  // Why it ended by itself: receiver_restarted (LCRs in the receiver's queue are lost: create a new queue, capture and
  // sender; capture starts at the new sender's await_receiver()), or the error of a corrupt queue.
  std::optional<base::Error> error;
  // Why there is no connection right now. The sender keeps trying whatever the error's class, because the cure (a
  // renewed certificate, an upgraded engine, a started stream) arrives without this side noticing.
  std::optional<base::Error> link_error;
  const char* state = "";  // INITIALIZING, CONNECTING, SENDING LCRS, ...
  base::Lsn durable;       // what capture may confirm to its source as far as this destination is concerned; 0: unknown
  uint64_t breaks = 0;     // connections that were lost
};

// Thread-safe: status(), sample(), durable() and await_receiver() may be called by anybody; the rest belongs to the
// owner's thread. One start per object: an error that ends it asks for a new session. Runs two threads: one packs
// batches, one talks to the network.
//
// At the sending engine:  make queue and sender; sender.start(); start = sender.await_receiver(t);
// make the capture from *start and start it.  A graceful end:  capture.request_stop(); capture.await_quiet();
// sender.request_stop(true); sender.join(); capture.join().
class Sender {
 public:
  explicit Sender(SenderOptions options);
  ~Sender();  // stops without draining, and joins
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Starts both threads. Fails with invalid_request when the options contradict each other; nothing runs then.
  base::Result<void> start();
  // Waits until the receiver has welcomed this sender: its durable position, from which capture starts. Fails with
  // link_error, or with engine_unreachable when `timeout` passes without one.
  base::Result<base::Lsn> await_receiver(std::chrono::milliseconds timeout);

  // drain: send all that the queue holds and wait for its acknowledgement first (the producer has stopped); a broken
  // connection keeps being mended meanwhile. Otherwise, or called again without drain: as soon as possible.
  void request_stop(bool drain);
  void join();

  SenderStatus status() const;
  // Transactions with commit LSN below it are durable at the destination. Never goes back. Zero: not known yet.
  base::Lsn durable() const;
  // The same for CaptureOptions::confirmed_lsn. Writer: the link thread (release). Reader: capture (acquire).
  const std::atomic<uint64_t>& durable_lsn() const;

  // Type PROPAGATION SENDER. Counters lcrs, batches, bytes (of frames), bytes_sent (on the wire, TLS not counted),
  // batches_resent, reconnects; gauges window_bytes, window_used_bytes, round_trip_us, latency_us, ...
  telemetry::ComponentSample sample() const;
  // When markers were packed into a batch.
  void add_to(telemetry::MarkerTrail& trail) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg::propagation
