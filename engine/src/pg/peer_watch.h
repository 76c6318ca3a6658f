#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace thalweg::pg {

// Whether the other end of a TCP connection has fallen silent while it owes an answer to bytes that were sent. It may
// take its time to read them: a server that waits for a lock closes its window, and still answers the probes of it.
//
// TCP_USER_TIMEOUT does not tell these two apart, and ends both (tcp_probe_timer of Linux's net/ipv4/tcp_timer.c). An
// idle connection is left to its keepalives.
//
// Owner: the connection's.
class PeerWatch {
 public:
  static constexpr std::chrono::seconds kPatience{30};

  explicit PeerWatch(std::chrono::milliseconds patience = kPatience) : patience_(patience) {}

  // Looks at the socket. False also where it is none of TCP.
  bool is_silent(int socket);

 private:
  const std::chrono::milliseconds patience_;
  uint64_t acknowledged_ = 0;  // bytes
  std::optional<std::chrono::steady_clock::time_point> unanswered_since_;
};

}  // namespace thalweg::pg
