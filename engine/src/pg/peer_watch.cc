#include "pg/peer_watch.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace thalweg::pg {

namespace {

constexpr unsigned kProbesMin = 3;  // one may be on its way

}  // namespace

bool PeerWatch::is_silent(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  const bool is_owed =
      (info.tcpi_unacked > 0 && info.tcpi_bytes_acked == acknowledged_) || info.tcpi_probes >= kProbesMin;
  acknowledged_ = info.tcpi_bytes_acked;
  if (!is_owed) {
    unanswered_since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!unanswered_since_) unanswered_since_ = now;
  return now - *unanswered_since_ >= patience_;
}

}  // namespace thalweg::pg
