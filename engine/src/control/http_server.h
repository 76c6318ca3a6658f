#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "control/managed_streams.h"
#include "control/stats_history.h"

// The control API's HTTP server (engine/contract/control-api.md).

namespace thalweg::control {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8643;  // 0: any free one
  std::string token;
  std::string tls_certificate;  // PEM files; both or none
  std::string tls_key;
  StatsHistoryOptions history = {};
};

// "127.0.0.1:8643", "[::1]:8643" or "localhost:8643". Fails with invalid_request.
base::Result<std::pair<std::string, int>> parse_listen_address(std::string_view text);
bool is_loopback(std::string_view host);

// Owner: the thread that made it. Requests are served by threads of its own until the destructor.
class HttpServer {
 public:
  // Binds and starts to serve. Refuses (invalid_request) a host that is not loopback without TLS: the token and the
  // databases' passwords would cross the network in the clear. `streams` outlives the server.
  static base::Result<std::unique_ptr<HttpServer>> start(ServerOptions options, ManagedStreams& streams);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg::control
