// Feeds foreign bytes to the control API's port, as a whole connection: the head of a request, its body, and what comes
// behind. For any input, the answer is HTTP, nothing is done without the token, and no handler throws.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "control/http_server.h"
#include "control/no_streams.h"

namespace thalweg::control {
namespace {

constexpr std::string_view kToken = "fuzz";
constexpr int kAnswerMilliseconds = 10;  // what has no answer by then waits for more bytes

void require(bool holds) {
  if (!holds) std::abort();
}

// From one address of loopback after the other: each leaves a port behind that takes a minute to come back. One that
// meets such a port tries the next.
base::File connect_to(int port) {
  static uint32_t number = 0;
  for (int tries = 0; tries < 200; ++tries) {
    base::File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number++ % 200);
    if (bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) continue;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return socket;
  }
  std::abort();
}

// Everything that the port says to these bytes. It may hang up before it has read them all.
std::string answer_to(int port, std::string_view bytes) {
  const base::File socket = connect_to(port);
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  // The library gives a connection up that was half closed before it had looked at it.
  pollfd answered{.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
  poll(&answered, 1, kAnswerMilliseconds);
  shutdown(socket.descriptor(), SHUT_WR);
  std::string answer;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = recv(socket.descriptor(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return answer;
    answer.append(buffer.data(), static_cast<size_t>(got));
  }
}

bool is_http(std::string_view answer) {
  constexpr std::string_view kStart = "HTTP/1.1 ";
  if (!answer.starts_with(kStart) || answer.size() < kStart.size() + 4) return false;
  const std::string_view status = answer.substr(kStart.size(), 3);
  return std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; }) && status[0] < '5';
}

class Served {
 public:
  Served() : server_(HttpServer::start(options(), streams_)) { require(server_.has_value()); }
  int port() const { return (*server_)->port(); }
  uint64_t requests() const { return streams_.requests; }

 private:
  static ServerOptions options() {
    return {.host = "127.0.0.1", .port = 0, .token = std::string(kToken), .tls_certificate = {}, .tls_key = {}};
  }

  NoStreams streams_;
  base::Result<std::unique_ptr<HttpServer>> server_;
};

}  // namespace
}  // namespace thalweg::control

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thalweg::control;
  // A request whose sender has hung up is handled at some later time. So those who know the token have a server of
  // their own: nothing ever reaches the streams of the other.
  static Served with_token;
  static Served without_token;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool has_token = bytes.find(kToken) != std::string_view::npos;
  const std::string answer = answer_to((has_token ? with_token : without_token).port(), bytes);
  require(answer.empty() || is_http(answer));
  require(without_token.requests() == 0);
  return 0;
}
