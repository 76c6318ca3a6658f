#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/strangers.h"
#include "control/managed_streams.h"
#include "control/stats_history.h"

// The control API's HTTP server (engine/contract/control-api.md).

namespace thalweg::control {

// Limits on the number of connections, and on what each may use. Until a connection has shown the token, it gets no
// more than the head of one request.
struct HttpLimits {
  base::Strangers::Limits strangers = {};  // that have not shown the token: those that are slow make place for others
  size_t known = 64;                       // that have, and stay open for the next request
  size_t head_bytes = size_t{16} << 10;
  size_t headers = 64;
  std::chrono::milliseconds head_time{10'000};   // from accept until the head is whole, TLS handshake included
  std::chrono::milliseconds idle_time{60'000};   // from an answer until the next head is whole
  std::chrono::milliseconds body_time{120'000};  // for the whole body
  std::chrono::milliseconds answer_time{60'000};
  std::chrono::milliseconds linger_time{2'000};  // for what is thrown away after the last answer
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8643;  // 0: any free one
  std::string token;
  std::string tls_certificate;  // PEM files; both or none
  std::string tls_key;
  StatsHistoryOptions history = {};
  HttpLimits limits = {};
};

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
