#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "simulation/scheduler.h"

// Connections between processes of the world: bytes arrive late, in pieces, and stop arriving when a connection breaks
// or a process dies. Within a connection nothing is reordered; between connections everything is.

namespace thalweg::simulation {

struct NetworkFaults {
  Time latency_max = 2 * kMillisecond;
  size_t buffer_bytes_max = 64 * 1024;  // that a connection holds in flight, in each direction
  bool cut_off = false;                 // nothing arrives, nobody connects
};

// One direction of a connection.
struct Pipe {
  struct Chunk {
    Time arrives;
    std::vector<std::byte> bytes;
    size_t read = 0;
  };
  std::deque<Chunk> chunks;
  size_t in_flight = 0;
  Time last_arrival = 0;
  bool closed = false;  // no more comes; what is under way still arrives
};

struct Link {
  Pipe pipes[2];  // [side] carries what side sends
  Process* processes[2] = {nullptr, nullptr};
  Time established = 0;
  Time latency = 0;
  size_t buffer_bytes = 0;
  bool reset = false;
};

class Network {
 public:
  explicit Network(Scheduler& scheduler) : scheduler_(scheduler) {}
  static Network* current();
  void make_current();

  NetworkFaults faults;

  // --- what file descriptors of the simulated machines are
  enum class Kind : uint8_t { none, socket, listener, event, database };
  struct Descriptor {
    Kind kind = Kind::none;
    Process* process = nullptr;
    std::shared_ptr<Link> link;  // socket that connects or is connected
    int side = 0;
    uint16_t port = 0;                               // listener
    std::deque<std::shared_ptr<Link>> waiting = {};  // listener
    uint64_t rings = 0;                              // event
    const void* connection = nullptr;                // database: a PGconn
  };
  static constexpr int kFirstDescriptor = 1 << 20;
  static bool is_ours(int descriptor) { return descriptor >= kFirstDescriptor; }
  int open(Kind kind);
  Descriptor* find(int descriptor);
  void close(int descriptor);

  // --- sockets; results as in the calls of the same names, errno set
  int connect(int descriptor, uint16_t port);
  int listen(int descriptor, uint16_t port);
  int accept(int descriptor);
  int64_t send(int descriptor, std::span<const std::byte> bytes);
  int64_t receive(int descriptor, std::span<std::byte> out);
  // The poll(2) events of the descriptor now; `changes`: when they may change without anybody's doing.
  short events(int descriptor, short wanted, Time& changes);

  // --- faults
  void break_connections();  // each of them, by chance
  void process_died(const Process& process);
  // Somebody may have something to look at.
  void changed() { scheduler_.wake(this); }

 private:
  Scheduler& scheduler_;
  int next_ = kFirstDescriptor;
  std::map<int, Descriptor> descriptors_;
  std::vector<std::weak_ptr<Link>> links_;
};

}  // namespace thalweg::simulation
