// The operating system's descriptors, as the engine's libraries call them (see os_threads.cc): simulated sockets and
// events above Network::kFirstDescriptor, real files below it.

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "simulation/libpq_wait.h"
#include "simulation/network.h"
#include "simulation/storage.h"

namespace thalweg::simulation {

namespace {

constexpr uint32_t kYieldAtCall = 8;
Storage* current_storage = nullptr;

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

Storage* Storage::current() { return Scheduler::current() == nullptr ? nullptr : current_storage; }
void Storage::make_current() { current_storage = this; }

void tear_files(Scheduler& scheduler, const std::filesystem::path& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const auto size = entry.file_size(error);
    if (error || scheduler.chance(2)) continue;
    std::filesystem::resize_file(entry.path(), scheduler.random(size + 1), error);
  }
}

}  // namespace thalweg::simulation

using thalweg::simulation::Network;
using thalweg::simulation::Scheduler;
using thalweg::simulation::Storage;
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
int __real_getsockopt(int descriptor, int level, int name, void* value, socklen_t* length);
int __real_setsockopt(int descriptor, int level, int name, const void* value, socklen_t length);
int __real_shutdown(int descriptor, int how);
ssize_t __real_send(int descriptor, const void* data, size_t size, int flags);
ssize_t __real_recv(int descriptor, void* data, size_t size, int flags);
ssize_t __real_read(int descriptor, void* data, size_t size);
ssize_t __real_write(int descriptor, const void* data, size_t size);
int __real_close(int descriptor);
int __real_statvfs(const char* path, struct statvfs* found);

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
  Scheduler::current()->maybe_yield(thalweg::simulation::kYieldAtCall);
  return network->send(descriptor, thalweg::simulation::bytes_of(data, size));
}

ssize_t __wrap_recv(int descriptor, void* data, size_t size, int flags) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_recv(descriptor, data, size, flags);
  Scheduler::current()->maybe_yield(thalweg::simulation::kYieldAtCall);
  return network->receive(descriptor, {static_cast<std::byte*>(data), size});
}

ssize_t __wrap_read(int descriptor, void* data, size_t size) {
  if (Network* const network = network_for(descriptor)) {
    network->find(descriptor)->rings = 0;
    return sizeof(uint64_t);
  }
  if (Storage* const storage = Storage::current()) {
    Scheduler::current()->maybe_yield(thalweg::simulation::kYieldAtCall);
    if (Scheduler::current()->chance(storage->read_error_once_in)) {
      errno = EIO;
      return -1;
    }
  }
  return __real_read(descriptor, data, size);
}

ssize_t __wrap_write(int descriptor, const void* data, size_t size) {
  if (Network* const network = network_for(descriptor)) {
    ++network->find(descriptor)->rings;
    network->changed();
    return sizeof(uint64_t);
  }
  Storage* const storage = Storage::current();
  if (storage == nullptr) return __real_write(descriptor, data, size);
  Scheduler& scheduler = *Scheduler::current();
  scheduler.maybe_yield(thalweg::simulation::kYieldAtCall);
  if (storage->full) {
    if (size > 1 && scheduler.chance(2)) return __real_write(descriptor, data, 1 + scheduler.random(size - 1));
    errno = ENOSPC;
    return -1;
  }
  if (!scheduler.chance(storage->damaged_once_in)) return __real_write(descriptor, data, size);
  ++storage->damaged;
  std::vector<char> damaged(static_cast<const char*>(data), static_cast<const char*>(data) + size);
  const size_t begin = scheduler.random(size);
  if (scheduler.chance(2)) {
    damaged[begin] = static_cast<char>(damaged[begin] ^ (1 << scheduler.random(8)));
  } else {
    std::fill(damaged.begin() + static_cast<ptrdiff_t>(begin), damaged.end(), '\0');  // as a torn write leaves it
  }
  return __real_write(descriptor, damaged.data(), size);
}

int __wrap_close(int descriptor) {
  Network* const network = network_for(descriptor);
  if (network == nullptr) return __real_close(descriptor);
  network->close(descriptor);
  return 0;
}

int __wrap_statvfs(const char* path, struct statvfs* found) {
  const int result = __real_statvfs(path, found);
  const Storage* const storage = Storage::current();
  if (result == 0 && storage != nullptr) {
    found->f_frsize = 4096;
    found->f_bavail = storage->full ? 0 : uint64_t{1} << 30;
  }
  return result;
}

}  // extern "C"
