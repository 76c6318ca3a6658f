// The operating system's sockets and events, as the engine's libraries call them (see os_threads.cc): descriptors above
// Network::kFirstDescriptor. Lower numbers are files: os_files.cc.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "simulation/libpq_wait.h"
#include "simulation/network.h"
#include "simulation/transformations.h"

namespace thalweg::simulation {

namespace {

constexpr uint32_t kYieldAtCall = 8;

uint16_t port_of(const sockaddr* address) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);  // sin6_port lies at the same place
}

std::span<const std::byte> bytes_of(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

int poll_once(Network& network, pollfd* entries, nfds_t count, Time& changes) {
  int ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    entries[i].revents = 0;
    if (entries[i].fd < 0) continue;
    const auto* const found = network.find(entries[i].fd);
    if (found != nullptr && found->kind == Network::Kind::database) {
      entries[i].revents = database_events(found->connection, entries[i].events, changes);
    } else {
      entries[i].revents = network.events(entries[i].fd, entries[i].events, changes);
    }
    ready += entries[i].revents != 0 ? 1 : 0;
  }
  return ready;
}

}  // namespace

}  // namespace thalweg::simulation

using thalweg::simulation::Network;
using thalweg::simulation::Scheduler;
using thalweg::simulation::Time;

namespace {

Network* network_for(int descriptor) { return Network::is_ours(descriptor) ? Network::current() : nullptr; }

}  // namespace

extern "C" {

int __real_poll(pollfd* entries, nfds_t count, int timeout);
int __real_eventfd(unsigned initial, int flags);
int __real_socket(int domain, int type, int protocol);
int __real_connect(int descriptor, const sockaddr* address, socklen_t length);
int __real_bind(int descriptor, const sockaddr* address, socklen_t length);
int __real_listen(int descriptor, int backlog);
int __real_accept4(int descriptor, sockaddr* address, socklen_t* length, int flags);
int __real_getsockname(int descriptor, sockaddr* address, socklen_t* length);
int __real_getpeername(int descriptor, sockaddr* address, socklen_t* length);
int __real_getsockopt(int descriptor, int level, int name, void* value, socklen_t* length);
int __real_setsockopt(int descriptor, int level, int name, const void* value, socklen_t length);
int __real_shutdown(int descriptor, int how);
ssize_t __real_send(int descriptor, const void* data, size_t size, int flags);
ssize_t __real_recv(int descriptor, void* data, size_t size, int flags);
int __real_close(int descriptor);

int __wrap_poll(pollfd* entries, nfds_t count, int timeout) {
  Network* const network = Network::current();
  if (network == nullptr) return __real_poll(entries, count, timeout);
  Scheduler& scheduler = *Scheduler::current();
  scheduler.maybe_yield(thalweg::simulation::kYieldAtCall);
  const Time deadline =
      timeout < 0 ? thalweg::simulation::kNever : scheduler.now() + timeout * thalweg::simulation::kMillisecond;
  while (true) {
    Time changes = deadline;
    const int ready = thalweg::simulation::poll_once(*network, entries, count, changes);
    if (ready > 0 || scheduler.now() >= deadline) return ready;
    scheduler.wait(network, changes);
  }
}

int __wrap_eventfd(unsigned initial, int flags) {
  Network* const network = Network::current();
  return network == nullptr ? __real_eventfd(initial, flags) : network->open(Network::Kind::event);
}

int __wrap_socket(int domain, int type, int protocol) {
  Network* const network = Network::current();
  return network == nullptr ? __real_socket(domain, type, protocol) : network->open(Network::Kind::socket);
}

int __wrap_connect(int descriptor, const sockaddr* address, socklen_t length) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_connect(descriptor, address, length);
  return network->connect(descriptor, thalweg::simulation::port_of(address));
}

int __wrap_bind(int descriptor, const sockaddr* address, socklen_t length) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_bind(descriptor, address, length);
  return network->listen(descriptor, thalweg::simulation::port_of(address));
}

int __wrap_listen(int descriptor, int backlog) {
  return network_for(descriptor) == nullptr ? __real_listen(descriptor, backlog) : 0;
}

int __wrap_accept4(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  Network* const network = network_for(descriptor);
  return network == nullptr ? __real_accept4(descriptor, address, length, flags) : network->accept(descriptor);
}

int __wrap_getsockname(int descriptor, sockaddr* address, socklen_t* length) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_getsockname(descriptor, address, length);
  reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(network->find(descriptor)->port);
  return 0;
}

// All engines of a world have one address.
int __wrap_getpeername(int descriptor, sockaddr* address, socklen_t* length) {
  if (network_for(descriptor) == nullptr) return __real_getpeername(descriptor, address, length);
  auto* const peer = reinterpret_cast<sockaddr_in*>(address);
  *peer = {};
  peer->sin_family = AF_INET;
  peer->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *length = sizeof *peer;
  return 0;
}

int __wrap_getsockopt(int descriptor, int level, int name, void* value, socklen_t* length) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_getsockopt(descriptor, level, name, value, length);
  if (level != SOL_SOCKET || name != SO_ERROR) {
    errno = ENOPROTOOPT;
    return -1;
  }
  const auto* const socket = network->find(descriptor);
  *static_cast<int*>(value) = socket->link && socket->link->reset ? ECONNREFUSED : 0;
  return 0;
}

int __wrap_setsockopt(int descriptor, int level, int name, const void* value, socklen_t length) {
  return network_for(descriptor) == nullptr ? __real_setsockopt(descriptor, level, name, value, length) : 0;
}

int __wrap_shutdown(int descriptor, int how) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_shutdown(descriptor, how);
  const auto* const socket = network->find(descriptor);
  if (socket->link) socket->link->pipes[socket->side].closed = true;
  network->changed();
  return 0;
}

ssize_t __wrap_send(int descriptor, const void* data, size_t size, int flags) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_send(descriptor, data, size, flags);
  thalweg::simulation::must_not_leak({static_cast<const char*>(data), size}, "what an engine sends to another");
  Scheduler::current()->maybe_yield(thalweg::simulation::kYieldAtCall);
  return network->send(descriptor, thalweg::simulation::bytes_of(data, size));
}

ssize_t __wrap_recv(int descriptor, void* data, size_t size, int flags) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_recv(descriptor, data, size, flags);
  Scheduler::current()->maybe_yield(thalweg::simulation::kYieldAtCall);
  return network->receive(descriptor, {static_cast<std::byte*>(data), size});
}

int __wrap_close(int descriptor) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_close(descriptor);
  network->close(descriptor);
  return 0;
}

}  // extern "C"
