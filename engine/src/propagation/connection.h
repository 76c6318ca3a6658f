#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "propagation/link.h"
#include "propagation/peer_address.h"
#include "propagation/tls.h"

namespace thalweg::propagation {

// One TCP connection with or without TLS, never blocking. Owner: one thread at a time. Moves.
//
// read_some and write_some return 0 when they would block; the owner then polls descriptor() for events(), which says
// what the last calls wait for. A write that would block must be tried again with the same bytes first (more may follow
// them).
class Connection {
 public:
  Connection(base::File socket, Ssl ssl) : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  // True once the TLS handshake is done; false: poll and call again. Plain connections are ready at once.
  base::Result<bool> handshake(const std::string& peer);
  base::Result<size_t> read_some(std::span<std::byte> out);
  base::Result<size_t> write_some(std::span<const std::byte> bytes);

  int descriptor() const { return socket_.descriptor(); }
  // POLLIN and POLLOUT as needed: `reading` and `writing` say what the owner wants to do next.
  short events(bool reading, bool writing) const;
  bool is_tls() const { return ssl_ != nullptr; }
  // Plain connections name nobody and therefore pass: they come from loopback.
  bool peer_is(const std::string& engine) const { return !ssl_ || certificate_names(ssl_.get(), engine); }
  // The kernel's smoothed round-trip time of the connection, without what waits in buffers.
  std::optional<std::chrono::microseconds> kernel_round_trip() const;
  // Says to the peer that nothing follows. Best effort.
  void shut_down();

 private:
  base::Result<size_t> after_tls(int result, std::string_view action);

  base::File socket_;
  Ssl ssl_;  // destroyed before the socket
  bool read_wants_write_ = false;
  bool write_wants_read_ = false;
};

// Begins to connect; the connection is up once connect_finished() says so. engine_unreachable; invalid_request for an
// address other than loopback where only that is allowed.
base::Result<base::File> begin_connect(const PeerAddress& address, bool only_loopback, size_t socket_buffer_bytes);
// The outcome of a connect that poll reported on. engine_unreachable.
base::Result<void> connect_finished(const base::File& socket, const PeerAddress& address);

// A listening socket; `port` 0 takes a free one. port_in_use, invalid_request.
base::Result<base::File> listen_on(const std::string& address, uint16_t port, bool only_loopback);
uint16_t port_of(const base::File& socket);
// The next connection, or a closed file when none waits. Fails with descriptors_exhausted where one waits for which the
// system has no file descriptor or memory: it goes on waiting.
base::Result<base::File> accept_from(const base::File& listener);

}  // namespace thalweg::propagation
