#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "daemon/identity.h"
#include "propagation/link.h"
#include "propagation/receiver_port.h"

// This engine among others: its name and certificates for senders, its port for receivers.

namespace thalweg::daemon {

// Thread-safe.
class Peering {
 public:
  // Where other engines' senders arrive, once a stream receives. `port` 0: any free one.
  struct Address {
    std::string host = "127.0.0.1";  // numeric
    int port = 8644;
  };
  Peering(const Identity& identity, Address address) : identity_(identity), address_(std::move(address)) {}

  base::Result<std::string> name() const;                    // identity_missing
  base::Result<propagation::LinkSecurity> security() const;  // identity_missing
  // Listens from the first call on; the port lives as long as this. identity_missing, or what listening fails with.
  base::Result<propagation::ReceiverPort*> port();
  std::string listen_address() const;  // HOST:PORT
  // A new certificate is there: new connections use it.
  base::Result<void> renew();

 private:
  const Identity& identity_;
  Address address_;  // the port becomes the real one
  mutable std::mutex mutex_;
  std::unique_ptr<propagation::ReceiverPort> port_;
};

}  // namespace thalweg::daemon
