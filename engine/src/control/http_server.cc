#include "control/http_server.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "control/api.h"
#include "control/http_connection.h"
#include "control/listen_address.h"

namespace thalweg::control {

namespace asio = boost::asio;
using asio::ip::tcp;
using base::ErrorCode;
using boost::system::error_code;

namespace {

constexpr size_t kWorkers = 20;  // more than the engine gives places to those who wait for databases
constexpr std::chrono::milliseconds kAcceptPause{200};  // after a connection for which no file descriptor was free
constexpr std::chrono::seconds kCrowdInterval{60};      // a crowd is told of so often

base::Result<asio::ssl::context> make_tls(const ServerOptions& options) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  error_code error;
  tls.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                      asio::ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION,
                  error);
  if (!error) tls.use_certificate_chain_file(options.tls_certificate, error);
  if (!error) tls.use_private_key_file(options.tls_key, asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(tls.native_handle()) != 1) {
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("The certificate {} and the key {} cannot be used{}", options.tls_certificate,
                                  options.tls_key, error ? ": " + error.message() : ""));
  }
  return tls;
}

}  // namespace

// One thread does all of the network and waits for nobody; others do the work of requests that have shown the token.
struct HttpServer::Impl {
  struct Entry {
    std::weak_ptr<HttpConnection> connection;
    bool is_known = false;
  };

  const ServerOptions options;
  Api api;
  std::optional<asio::ssl::context> tls;
  // The network thread's, while there is one.
  base::Strangers strangers;
  std::map<uint64_t, Entry> connections;
  size_t known = 0;
  uint64_t last_number = 0;
  std::optional<std::chrono::steady_clock::time_point> crowd_logged;
  // Connections end with it, so what they use stands above it.
  ConnectionEnvironment environment;
  asio::thread_pool workers{kWorkers};
  asio::io_context network{1};
  tcp::acceptor acceptor{network};
  asio::steady_timer pause{network};
  int port = 0;
  std::jthread thread;

  Impl(ServerOptions the_options, ManagedStreams& streams)
      : options(std::move(the_options)),
        api(streams, options.history),
        strangers(options.limits.strangers),
        environment{.options = options,
                    .api = api,
                    .network = network,
                    .workers = workers,
                    .known = [this](uint64_t number) { return become_known(number); },
                    .gone = [this](uint64_t number) { forget(number); }} {}

  base::Result<void> listen() {
    error_code error;
    tcp::resolver resolver(network);
    const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
    if (!error) {
      const tcp::endpoint endpoint = found.begin()->endpoint();
      acceptor.open(endpoint.protocol(), error);
      if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
      if (!error) acceptor.bind(endpoint, error);
      if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
      if (!error) port = acceptor.local_endpoint(error).port();
    }
    if (error) {
      return base::fail(ErrorCode::invalid_request,
                        fmt::format("Cannot listen on {}:{}: {}", options.host, options.port, error.message()));
    }
    return {};
  }

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        enter(std::move(socket));
        return accept();
      }
      pause.expires_after(kAcceptPause);
      pause.async_wait([this](error_code) {
        if (acceptor.is_open()) accept();
      });
    });
  }

  void enter(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;  // it has gone already
    socket.set_option(tcp::no_delay(true), error);
    const uint64_t number = ++last_number;
    const std::string origin = base::origin_of(peer.data());
    if (const auto pushed_out = strangers.enter(number, origin)) {
      tell_of_crowd(origin);
      close(*pushed_out);
    }
    const auto connection = make_connection(number, std::move(socket), tls ? &*tls : nullptr, environment);
    connections[number] = {.connection = connection};
    connection->begin();
  }

  void tell_of_crowd(const std::string& origin) {
    const auto now = std::chrono::steady_clock::now();
    if (crowd_logged && now - *crowd_logged < kCrowdInterval) return;
    crowd_logged = now;
    base::log_event(base::LogLevel::warning, "control_port_crowded", {{"last_from", origin}});
  }

  void close(uint64_t number) {
    const auto found = connections.find(number);
    if (found == connections.end()) return;
    if (const auto connection = found->second.connection.lock()) connection->close();
  }

  bool become_known(uint64_t number) {
    const auto found = connections.find(number);
    if (found == connections.end()) return false;
    strangers.leave(number);
    if (!std::exchange(found->second.is_known, true)) ++known;
    return known <= options.limits.known;
  }

  void forget(uint64_t number) {
    strangers.leave(number);
    const auto found = connections.find(number);
    if (found == connections.end()) return;
    if (found->second.is_known) --known;
    connections.erase(found);
  }

  // The network thread ends once all connections have; those that are being worked on when their work is done.
  void stop() {
    error_code ignored;  // whatever it says, it is closed
    acceptor.close(ignored);
    pause.cancel();
    std::vector<std::shared_ptr<HttpConnection>> open;
    for (const auto& [number, entry] : connections) {
      if (auto connection = entry.connection.lock()) open.push_back(std::move(connection));
    }
    for (const auto& connection : open) connection->close();
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

base::Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerOptions options, ManagedStreams& streams) {
  const bool has_tls = !options.tls_certificate.empty() || !options.tls_key.empty();
  if (!has_tls && !is_loopback(options.host)) {
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("{} is not a loopback address: give --tls-cert and --tls-key as well", options.host));
  }
  if (options.token.empty()) return base::fail(ErrorCode::invalid_request, "The control API needs a token");

  auto impl = std::make_unique<Impl>(std::move(options), streams);
  if (has_tls) {
    THALWEG_ASSIGN(impl->tls, make_tls(impl->options));
  }
  THALWEG_TRY(impl->listen());
  impl->accept();
  impl->thread = std::jthread([raw = impl.get()] { raw->network.run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  asio::post(impl_->network, [raw = impl_.get()] { raw->stop(); });
  impl_->thread.join();
  impl_->workers.join();
}

int HttpServer::port() const { return impl_->port; }

}  // namespace thalweg::control
