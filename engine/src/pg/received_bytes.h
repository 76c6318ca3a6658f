#pragma once

#include <cstdint>

// Internal to pg/.

namespace thalweg::pg {

// How many bytes have come over the socket so far, as the kernel counts them. 0 of a socket that is no TCP: such a
// server is on this host.
uint64_t received_bytes(int socket);

}  // namespace thalweg::pg
