#include "pg/received_bytes.h"

#include <linux/tcp.h>  // netinet/tcp.h has an older tcp_info
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace thalweg::pg {

uint64_t received_bytes(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < kNeeded) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace thalweg::pg
