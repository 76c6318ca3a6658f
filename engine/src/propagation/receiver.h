#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "propagation/link.h"
#include "queue/lcr_queue.h"
#include "telemetry/marker_log.h"
#include "telemetry/sample.h"

// The propagation receiver: producer of a queue, which it fills with the LCRs that another engine's sender streams to
// it (Wong et al. 2009, II.C and VI.E).

namespace thalweg::propagation {

class ReceiverPort;

struct ReceiverOptions {
  std::string stream_id;
  std::string engine;       // this engine's name
  std::string peer_engine;  // the sending engine's name: nobody else may send for this stream
  // The source's, that apply's progress has been compared with. A sender that reads from another one ends this receiver
  // (sender_restarted): its owner compares anew. 0: any.
  uint32_t timeline = 0;

  queue::LcrQueue* queue = nullptr;  // outlives the receiver, which is its producer
  // Position below which apply has made all commits durable. Called by the receiver's thread, also before anything was
  // received.
  std::function<base::Lsn()> durable;
  const base::Clock* clock = nullptr;  // outlives the receiver

  // Acknowledgements are due so long after the previous one; at once when half of the sender's window waits for one,
  // and within 100 ms when the durable position moved while nothing arrives.
  std::chrono::milliseconds ack_interval{100};
  std::chrono::milliseconds heartbeat_interval{1'000};
  std::chrono::milliseconds peer_timeout{10'000};  // of silence: the connection is given up
};

struct ReceiverStatus {
  bool running = false;    // from start() until its thread has ended
  bool connected = false;  // a sender is connected
  // Why it ended by itself. sender_restarted: a new session waits to begin; make a new queue, apply and receiver, so
  // that open transactions of the old session do not mix with it. corrupt_frame: the same cure.
  std::optional<base::Error> error;
  std::optional<base::Error> link_error;  // why the last connection ended; empty while connected
  const char* state = "";                 // INITIALIZING, WAITING FOR SENDER, RECEIVING LCRS, ...
  uint64_t breaks = 0;                    // connections that were lost
};

// Thread-safe: status() and sample() may be called by anybody; the rest belongs to the owner's thread. One start per
// object. Runs one thread. At the receiving engine:  make queue and apply; apply.start(); make the receiver
// and start it.  A graceful end:  (the sender has drained)  receiver.request_stop(); receiver.join(); let apply drain.
class Receiver {
 public:
  explicit Receiver(ReceiverOptions options);
  ~Receiver();  // request_stop and join
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Registers at the port, which outlives this receiver, and starts the thread. Fails with invalid_request when the
  // port already has a receiver for the stream; nothing runs then.
  base::Result<void> start(ReceiverPort& port);
  // No further frame is enqueued once join() has returned; a batch that waits for room in the queue is given up.
  void request_stop();
  void join();

  ReceiverStatus status() const;
  // Type PROPAGATION RECEIVER. Counters lcrs, batches, bytes (of frames), bytes_received, reconnects; gauge latency_us.
  telemetry::ComponentSample sample() const;
  // When markers were enqueued.
  void add_to(telemetry::MarkerTrail& trail) const;

 private:
  friend class ReceiverPort;
  struct State;
  std::shared_ptr<State> state_;  // shared with the port while it hands over a connection
};

}  // namespace thalweg::propagation
