#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>

#include "control/api.h"
#include "control/http_server.h"

// One connection of the control API. Internal to the server; nothing but these files includes Boost.

namespace thalweg::control {

// The server's parts that a connection uses. Immutable but for the two callbacks, which belong to the network thread.
struct ConnectionEnvironment {
  const ServerOptions& options;
  Api& api;
  boost::asio::io_context& network;
  boost::asio::thread_pool& workers;
  // The connection has shown the token. False: there are too many of those; it ends with its answer.
  std::function<bool(uint64_t)> known;
  std::function<void(uint64_t)> gone;
};

// Owner: the network thread. Keeps itself alive until it has ended.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  virtual void begin() = 0;
  virtual void close() = 0;
};

// `tls`: null for a plain connection. The environment outlives the connection.
std::shared_ptr<HttpConnection> make_connection(uint64_t number, boost::asio::ip::tcp::socket socket,
                                                boost::asio::ssl::context* tls,
                                                const ConnectionEnvironment& environment);

}  // namespace thalweg::control
