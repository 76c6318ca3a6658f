#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/strangers.h"
#include "propagation/link.h"

// The one TCP port of an engine on which other engines' senders arrive.

namespace thalweg::propagation {

struct ReceiverPortOptions {
  std::string engine;                 // this engine's name, as in its certificate
  std::string address = "127.0.0.1";  // numeric; "0.0.0.0" or "::" for all
  uint16_t port = 0;                  // 0: any free one, see port()
  LinkSecurity security = {};
  std::chrono::milliseconds handshake_timeout{10'000};  // from accept until the sender has said who it is
  base::Strangers::Limits strangers{.all = 64, .of_one_address = 32};  // that have not said who they are
  std::chrono::milliseconds accept_pause{500};  // after a connection for which no file descriptor was free
  ProtocolVersions versions = {};               // for tests of other versions
};

// Accepts, does the TLS handshake, reads the sender's HELLO and hands the connection to the receiver of that stream;
// one thread for all streams, which never waits for a single peer. A newcomer is never refused: the oldest peer that
// has not said who it is makes place, of the address that has the most. Thread-safe: receivers register from any
// thread; the rest belongs to the owner's thread. Outlives the receivers that were started with it.
class ReceiverPort {
 public:
  explicit ReceiverPort(ReceiverPortOptions options);
  ~ReceiverPort();  // stop
  ReceiverPort(const ReceiverPort&) = delete;
  ReceiverPort& operator=(const ReceiverPort&) = delete;

  // Listens. Fails with port_in_use, certificate_unusable or invalid_request.
  base::Result<void> start();
  void stop();
  // The port that it listens on, once started.
  uint16_t port() const;
  // Reads the certificate files again; connections that stand keep theirs. On failure the old ones stay.
  base::Result<void> reload_certificates();

  struct Gauges {
    uint64_t accepted = 0;
    uint64_t refused = 0;  // handshakes that ended without a receiver: TLS, version, unknown stream, wrong engine
    std::string last_refusal;
    uint64_t accept_failures = 0;  // for want of file descriptors; the connection waits in the kernel's backlog
  };
  Gauges gauges() const;

 private:
  friend class Receiver;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg::propagation
