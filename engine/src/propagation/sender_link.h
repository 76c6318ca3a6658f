#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "base/wake.h"
#include "propagation/batch_packer.h"
#include "propagation/connection.h"
#include "propagation/message_reader.h"
#include "propagation/send_window.h"
#include "propagation/sender.h"

namespace thalweg::propagation {

// The sender's network side: connects, introduces itself, sends what the window holds, takes acknowledgements, and does
// it all again when the connection breaks. Owner: the link thread, but for wake().
class SenderLink {
 public:
  struct Callbacks {
    // The receiver has welcomed this sender.
    std::function<void(const Welcome& welcome)> welcomed;
    // The connection, or the attempt to make one, has ended.
    std::function<void(const base::Error& error)> broken;
  };

  SenderLink(const SenderOptions& options, SendWindow& window, SenderShared& shared, Callbacks callbacks);

  // Runs until shared.stop, or until an error after which this sender cannot go on (receiver_restarted).
  base::Result<void> run();
  void wake() { wake_.ring(); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  base::Result<Connection> connect(Time deadline);
  base::Result<base::File> reach(const PeerAddress& address, Time deadline);
  base::Result<Connection> secure(base::File socket, SSL_CTX* context, Time deadline);  // no context: plain
  base::Result<void> greet(Connection& connection, Time deadline);
  base::Result<void> accept_welcome(const Welcome& welcome);
  base::Result<void> converse(Connection& connection);
  base::Result<void> write_available(Connection& connection);
  base::Result<bool> write_control(Connection& connection);
  base::Result<void> read_available(Connection& connection);
  base::Result<void> take(const Message& message);
  void take_ack(const Ack& ack);
  void take_durable(base::Lsn durable);
  base::Result<void> await(const Connection& connection, bool reading, bool writing, Time deadline);
  // Sleeps until the descriptor has one of `events`, a ring, or `until`.
  void poll_for(int descriptor, short events, Time until);
  void wait_before_reconnect();
  bool stopping() const { return shared_.stop.load(std::memory_order_acquire); }
  Time now() const { return options_.clock->steady_now(); }

  const SenderOptions& options_;
  SendWindow& window_;
  SenderShared& shared_;
  Callbacks callbacks_;
  base::Wake wake_;
  MessageReader reader_{kControlBytesMax};
  std::vector<std::byte> control_;  // a message that goes out at the next boundary
  size_t control_sent_ = 0;
  bool control_begun_ = false;  // its bytes were offered to the connection: they must be finished first
  size_t blocked_bytes_ = 0;    // bytes of the window that were offered and would have blocked
  Time heard_{};
  Time next_heartbeat_{};
  std::mt19937_64 random_{std::random_device{}()};
  const uint64_t session_;
  uint64_t receiver_session_ = 0;
  std::chrono::milliseconds delay_;
};

}  // namespace thalweg::propagation
