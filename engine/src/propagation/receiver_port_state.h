#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/wake.h"
#include "propagation/message_reader.h"
#include "propagation/receiver_port.h"
#include "propagation/receiver_state.h"
#include "propagation/tls.h"

namespace thalweg::propagation {

// The port's insides: the table of receivers and the thread that brings connections to them.
struct ReceiverPort::State {
  explicit State(ReceiverPortOptions given) : options(std::move(given)), strangers(options.strangers) {}

  // --- anybody
  base::Result<void> enter(std::shared_ptr<Receiver::State> receiver);
  void leave(const Receiver::State& receiver);

  // --- the owner
  base::Result<void> load_certificates();

  // --- its thread
  void run();

  const ReceiverPortOptions options;
  base::File listener;
  std::thread thread;
  std::atomic<bool> stop_requested{false};
  base::Wake wake;
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<Receiver::State>> receivers;  // guarded: by stream id
  std::shared_ptr<SSL_CTX> tls;                                       // guarded: replaced as a whole
  Gauges gauges;                                                      // guarded

 private:
  using Time = std::chrono::steady_clock::time_point;

  // A connection that has not said who it is yet.
  struct Handshake {
    uint64_t number;
    Connection connection;
    Time deadline;
    MessageReader reader{kControlBytesMax};
    bool secured = false;
  };

  void accept_waiting();
  void enter(base::File socket);
  void push_out(uint64_t number);
  void pause_accepting(const base::Error& why);
  // True when the handshake is over, one way or the other.
  bool advance(Handshake& handshake);
  base::Result<std::optional<Hello>> read_hello(Handshake& handshake);
  base::Result<void> hand_over(Handshake& handshake, Hello hello);
  std::unexpected<base::Error> refuse(Handshake& handshake, RefusalReason reason, std::string text);
  void note_refusal(const base::Error& why);

  base::Strangers strangers;
  uint64_t last_number = 0;
  std::vector<std::unique_ptr<Handshake>> handshakes;
  Time refusal_logged = {};     // the log's last one
  Time accept_again = {};       // not before
  bool accept_failing = false;  // told already
};

}  // namespace thalweg::propagation
