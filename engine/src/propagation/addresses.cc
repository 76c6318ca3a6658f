#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "propagation/connection.h"

// Sockets: how connections begin.

namespace thalweg::propagation {

namespace {

using base::ErrorCode;

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// TCP_NOTSENT_LOWAT. Few unsent bytes wait in the kernel, so that a heartbeat does not queue behind seconds of data and
// the rest of the window stays where a reconnect can send it again.
constexpr int kUnsentBytes = 512 * 1024;

std::string text_of(int error_number) { return std::generic_category().message(error_number); }

base::Result<Addresses> resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    return base::fail(ErrorCode::engine_unreachable, fmt::format("address of {}: {}", host, gai_strerror(status)));
  }
  return Addresses(found);
}

const sockaddr* raw(const PeerAddress& peer) { return reinterpret_cast<const sockaddr*>(&peer.address); }

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof(four));
    return ntohl(four.sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof(six));
    return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
  }
  return false;
}

std::unexpected<base::Error> needs_tls(const std::string& address) {
  return base::fail(ErrorCode::invalid_request, fmt::format("{} is not loopback: a link to it needs TLS", address));
}

void set_option(int socket, int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof(value)); }

// Both ends' sockets. The kernel's keepalive finds a dead host below our own heartbeats while a side does not read.
void prepare(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace

std::string to_string(const PeerAddress& peer) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int failed = getnameinfo(raw(peer), peer.length, host.data(), host.size(), port.data(), port.size(),
                                 NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed != 0) return "an unknown address";
  const bool six = peer.address.ss_family == AF_INET6;
  return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), host.data(), port.data());
}

base::Result<std::vector<PeerAddress>> resolve_peer(const std::string& host, uint16_t port) {
  THALWEG_ASSIGN(const Addresses found, resolve(host, port, 0));
  std::vector<PeerAddress> out;
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    if (address->ai_addrlen > sizeof(sockaddr_storage)) continue;
    PeerAddress& peer = out.emplace_back();
    std::memcpy(&peer.address, address->ai_addr, address->ai_addrlen);
    peer.length = address->ai_addrlen;
  }
  if (out.empty()) return base::fail(ErrorCode::engine_unreachable, fmt::format("{} has no address", host));
  return out;
}

base::Result<base::File> begin_connect(const PeerAddress& peer, bool only_loopback, size_t socket_buffer_bytes) {
  if (only_loopback && !is_loopback(raw(peer))) return needs_tls(to_string(peer));
  base::File file(socket(peer.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!file.is_open()) return base::fail(ErrorCode::engine_unreachable, "socket: " + text_of(errno));
  prepare(file.descriptor());
  if (socket_buffer_bytes > 0) {
    const int bytes = static_cast<int>(std::min<size_t>(socket_buffer_bytes, 1 << 30));
    // Beyond the system's limit only with CAP_NET_ADMIN; up to it otherwise.
    if (setsockopt(file.descriptor(), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0) {
      set_option(file.descriptor(), SOL_SOCKET, SO_SNDBUF, bytes);
    }
  }
  if (connect(file.descriptor(), raw(peer), peer.length) != 0 && errno != EINPROGRESS) {
    return base::fail(ErrorCode::engine_unreachable, fmt::format("connect to {}: {}", to_string(peer), text_of(errno)));
  }
  return file;
}

base::Result<void> connect_finished(const base::File& socket, const PeerAddress& peer) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error == 0) return {};
  return base::fail(ErrorCode::engine_unreachable, fmt::format("connect to {}: {}", to_string(peer), text_of(error)));
}

base::Result<base::File> listen_on(const std::string& address, uint16_t port, bool only_loopback) {
  const auto resolved = resolve(address, port, AI_PASSIVE | AI_NUMERICHOST);
  if (!resolved) {
    return base::fail(ErrorCode::invalid_request, fmt::format("{} is no address to listen on", address));
  }
  const addrinfo* first = resolved->get();
  if (only_loopback && !is_loopback(first->ai_addr)) return needs_tls(address);
  base::File file(socket(first->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!file.is_open()) return base::fail(ErrorCode::port_in_use, "socket: " + text_of(errno));
  set_option(file.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(file.descriptor(), first->ai_addr, first->ai_addrlen) != 0 || listen(file.descriptor(), 128) != 0) {
    return base::fail(ErrorCode::port_in_use, fmt::format("listen on {}:{}: {}", address, port, text_of(errno)));
  }
  return file;
}

uint16_t port_of(const base::File& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  // sin_port and sin6_port lie at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

base::Result<base::File> accept_from(const base::File& listener) {
  base::File file(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (file.is_open()) {
    prepare(file.descriptor());
    return file;
  }
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return base::fail(ErrorCode::descriptors_exhausted, "accept a connection: " + text_of(errno));
    default:
      return file;  // none waits, or it has gone again
  }
}

}  // namespace thalweg::propagation
