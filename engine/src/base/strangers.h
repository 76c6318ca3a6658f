#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace thalweg::base {

// The connections of a port that have not said who they are. Anybody can make them, so there is room for a few only;
// and the room is never refused to a newcomer: the oldest makes place, of the address that has the most. A flood at a
// port pushes out connections of its own address, and those of others who are slower than the flood. Owner: one thread.
class Strangers {
 public:
  struct Limits {
    size_t all = 128;
    size_t of_one_address = 64;
  };

  explicit Strangers(Limits limits) : limits_(limits) {}

  // A connection came. `number` is higher than all before. Returns the one that has to go for it, if any, and is
  // forgotten here.
  std::optional<uint64_t> enter(uint64_t number, std::string address);
  // It has said who it is, or it is gone.
  void leave(uint64_t number) { addresses_.erase(number); }
  size_t count() const { return addresses_.size(); }

 private:
  std::optional<uint64_t> oldest_of(const std::string& address) const;

  const Limits limits_;
  std::map<uint64_t, std::string> addresses_;  // by age
};

// The origin that a connection counts for: its IPv4 address, or the /64 network of its IPv6 address, all of which one
// host has.
std::string origin_of(const sockaddr* address);

}  // namespace thalweg::base
