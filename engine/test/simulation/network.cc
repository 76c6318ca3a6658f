#include "simulation/network.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace thalweg::simulation {

namespace {
Network* current_network = nullptr;
}

Network* Network::current() { return Scheduler::current() == nullptr ? nullptr : current_network; }
void Network::make_current() { current_network = this; }

int Network::open(Kind kind) {
  const int descriptor = next_++;
  descriptors_[descriptor].kind = kind;
  descriptors_[descriptor].process = &scheduler_.process();
  return descriptor;
}

Network::Descriptor* Network::find(int descriptor) {
  const auto found = descriptors_.find(descriptor);
  return found == descriptors_.end() ? nullptr : &found->second;
}

void Network::close(int descriptor) {
  if (Descriptor* const found = find(descriptor); found != nullptr && found->link) {
    found->link->pipes[found->side].closed = true;
    found->link->pipes[1 - found->side].chunks.clear();
  }
  descriptors_.erase(descriptor);
  changed();
}

int Network::connect(int descriptor, uint16_t port) {
  Descriptor& socket = *find(descriptor);
  auto link = std::make_shared<Link>();
  link->processes[0] = socket.process;
  link->latency = static_cast<Time>(scheduler_.random(static_cast<uint64_t>(faults.latency_max))) + kMicrosecond;
  link->buffer_bytes = 2'000 + scheduler_.random(faults.buffer_bytes_max);
  link->established = scheduler_.now() + 2 * link->latency;
  socket.link = link;
  link->reset = true;  // refused, unless somebody listens
  for (auto& [number, listener] : descriptors_) {
    if (listener.kind != Kind::listener || listener.port != port || !listener.process->alive || faults.cut_off)
      continue;
    link->reset = false;
    link->processes[1] = listener.process;
    listener.waiting.push_back(link);
    links_.push_back(link);
  }
  changed();
  errno = EINPROGRESS;
  return -1;
}

int Network::listen(int descriptor, uint16_t port) {
  for (const auto& [number, other] : descriptors_) {
    if (other.kind == Kind::listener && other.port == port && other.process->alive) {
      errno = EADDRINUSE;
      return -1;
    }
  }
  Descriptor& listener = *find(descriptor);
  listener.kind = Kind::listener;
  listener.port = port;
  return 0;
}

int Network::accept(int descriptor) {
  Descriptor& listener = *find(descriptor);
  if (listener.waiting.empty() || listener.waiting.front()->established > scheduler_.now()) {
    errno = EAGAIN;
    return -1;
  }
  auto link = std::move(listener.waiting.front());
  listener.waiting.pop_front();
  const int accepted = open(Kind::socket);
  Descriptor& socket = *find(accepted);
  socket.link = std::move(link);
  socket.side = 1;
  return accepted;
}

int64_t Network::send(int descriptor, std::span<const std::byte> bytes) {
  Descriptor* const socket = find(descriptor);
  if (socket == nullptr || !socket->link || socket->link->reset || socket->link->pipes[1 - socket->side].closed) {
    errno = ECONNRESET;
    return -1;
  }
  Link& link = *socket->link;
  Pipe& pipe = link.pipes[socket->side];
  const size_t room = link.buffer_bytes - std::min(link.buffer_bytes, pipe.in_flight);
  if (room == 0) {
    errno = EAGAIN;
    return -1;
  }
  // Any part of it may be taken, and what is taken may arrive in pieces.
  size_t taken = std::min(room, bytes.size());
  if (scheduler_.chance(8)) taken = 1 + scheduler_.random(taken);
  for (size_t begin = 0; begin < taken;) {
    size_t piece = taken - begin;
    if (scheduler_.chance(4)) piece = 1 + scheduler_.random(piece);
    const auto jitter = static_cast<Time>(scheduler_.random(static_cast<uint64_t>(link.latency)));
    pipe.last_arrival = std::max(pipe.last_arrival, scheduler_.now() + link.latency + jitter);
    pipe.chunks.push_back({.arrives = pipe.last_arrival,
                           .bytes = {bytes.begin() + static_cast<ptrdiff_t>(begin),
                                     bytes.begin() + static_cast<ptrdiff_t>(begin + piece)}});
    begin += piece;
  }
  pipe.in_flight += taken;
  changed();
  return static_cast<int64_t>(taken);
}

int64_t Network::receive(int descriptor, std::span<std::byte> out) {
  Descriptor* const socket = find(descriptor);
  if (socket == nullptr || !socket->link || socket->link->reset) {
    errno = ECONNRESET;
    return -1;
  }
  Link& link = *socket->link;
  Pipe& pipe = link.pipes[1 - socket->side];
  size_t got = 0;
  while (got < out.size() && !pipe.chunks.empty() && pipe.chunks.front().arrives <= scheduler_.now() &&
         !faults.cut_off) {
    auto& chunk = pipe.chunks.front();
    const size_t part = std::min(out.size() - got, chunk.bytes.size() - chunk.read);
    std::memcpy(out.data() + got, chunk.bytes.data() + chunk.read, part);
    got += part;
    chunk.read += part;
    if (chunk.read == chunk.bytes.size()) pipe.chunks.pop_front();
  }
  pipe.in_flight -= got;
  if (got > 0) {
    changed();
    return static_cast<int64_t>(got);
  }
  if (pipe.closed && pipe.chunks.empty()) return 0;
  errno = EAGAIN;
  return -1;
}

short Network::events(int descriptor, short wanted, Time& changes) {
  const Descriptor* const found = find(descriptor);
  if (found == nullptr) return POLLNVAL;
  if (found->kind == Kind::event) return found->rings > 0 ? static_cast<short>(wanted & POLLIN) : short{0};
  if (found->kind == Kind::listener) {
    if (found->waiting.empty()) return 0;
    const Time when = found->waiting.front()->established;
    if (when <= scheduler_.now()) return static_cast<short>(wanted & POLLIN);
    changes = std::min(changes, when);
    return 0;
  }
  if (!found->link) return 0;
  const Link& link = *found->link;
  if (link.established > scheduler_.now()) {
    changes = std::min(changes, link.established);
    return 0;
  }
  if (link.reset) return POLLERR | POLLHUP;
  short events = 0;
  const Pipe& in = link.pipes[1 - found->side];
  if (!in.chunks.empty() && !faults.cut_off) {
    if (in.chunks.front().arrives <= scheduler_.now()) {
      events |= POLLIN;
    } else {
      changes = std::min(changes, in.chunks.front().arrives);
    }
  } else if (in.closed) {
    events |= POLLIN;
  }
  if (link.pipes[found->side].in_flight < link.buffer_bytes) events |= POLLOUT;
  return static_cast<short>(events & wanted);
}

void Network::break_connections() {
  std::erase_if(links_, [](const auto& link) { return link.expired(); });
  for (const auto& weak : links_) {
    if (const auto link = weak.lock(); link && scheduler_.chance(2)) link->reset = true;
  }
  changed();
}

void Network::process_died(const Process& process) {
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (link && (link->processes[0] == &process || link->processes[1] == &process)) link->reset = true;
  }
  std::erase_if(descriptors_, [&](const auto& entry) { return entry.second.process == &process; });
  changed();
}

}  // namespace thalweg::simulation
