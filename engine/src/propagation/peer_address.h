#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace thalweg::propagation {

// One of the addresses that a host's name stands for, with the port.
struct PeerAddress {
  sockaddr_storage address = {};
  socklen_t length = 0;
};
std::string to_string(const PeerAddress& peer);  // "192.0.2.1:8644", "[2001:db8::1]:8644"

// All of a host's addresses, in the system's order of preference; at least one. May wait for name servers.
// engine_unreachable.
base::Result<std::vector<PeerAddress>> resolve_peer(const std::string& host, uint16_t port);
using Resolver = std::function<base::Result<std::vector<PeerAddress>>(const std::string& host, uint16_t port)>;

}  // namespace thalweg::propagation
