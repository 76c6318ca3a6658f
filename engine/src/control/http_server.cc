#include "control/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>  // nothing but this file and its test includes it

#include <charconv>
#include <chrono>
#include <limits>
#include <thread>

#include "base/log.h"
#include "control/documents.h"
#include "control/metrics.h"
#include "control/stats_history.h"
#include "control/strict_json.h"
#include "control/token_file.h"

namespace thalweg::control {
namespace {

using base::Error;
using base::ErrorCode;
using httplib::Request;
using httplib::Response;

constexpr size_t kTargetBytesMax = 256;       // longer ones cannot be ours, and std::regex recurses over them
constexpr size_t kIdentityNameBytesMax = 63;  // a DNS label
constexpr size_t kMarkerIdBytesMax = 64;
constexpr size_t kMarkerLabelBytesMax = 400;
constexpr size_t kPemBytesMax = 64 * 1024;
constexpr size_t kWorkers = 8;
constexpr const char* kJson = "application/json";

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request:
      return 400;
    case ErrorCode::unauthorized:
      return 401;
    case ErrorCode::unknown_destination:
    case ErrorCode::unknown_stream:
    case ErrorCode::unknown_error_transaction:
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::request_too_large:
      return 413;
    case ErrorCode::database_unreachable:
    case ErrorCode::connection_lost:
    case ErrorCode::database_busy:
    case ErrorCode::authentication_failed:
    case ErrorCode::engine_stopping:
    case ErrorCode::disk_full:
    case ErrorCode::file_error:
    case ErrorCode::state_directory_failed:
      return 503;
    default:
      return 409;
  }
}

void send(Response& response, int status, const nlohmann::json& document) {
  response.status = status;
  response.set_content(to_text(document), kJson);
}

void send_failure(Response& response, const Error& error) {
  send(response, http_status(error.code), failure_document(error));
}

void send_failure(Response& response, ErrorCode code, std::string message) {
  send_failure(response, base::fail(code, std::move(message)).error());
}

// 202 or 204 without a body of interest.
void send_done(Response& response, const base::Result<void>& result, int status) {
  if (!result) {
    send_failure(response, result.error());
  } else if (status == 204) {
    response.status = 204;
  } else {
    send(response, status, nlohmann::json::object());
  }
}

base::Result<int64_t> parse_error_id(const std::string& text) {
  int64_t id = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (problem != std::errc{} || end != text.data() + text.size()) {
    return base::fail(ErrorCode::invalid_request, "The error's id is not a number that fits");
  }
  return id;
}

std::string_view bearer(const std::string& header) {
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view text = header;
  return text.starts_with(kScheme) ? text.substr(kScheme.size()) : std::string_view{};
}

}  // namespace

bool is_loopback(std::string_view host) {
  std::string text(host);
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return text == "localhost";
}

base::Result<std::pair<std::string, int>> parse_listen_address(std::string_view text) {
  auto refused = [&] { return base::fail(ErrorCode::invalid_request, fmt::format("'{}' is not HOST:PORT", text)); };
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return refused();
  std::string_view host = text.substr(0, colon);
  std::string_view port_text = text.substr(colon + 1);
  int port = 0;
  auto [end, problem] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (problem != std::errc{} || end != port_text.data() + port_text.size() || port < 0 || port > 65535)
    return refused();
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refused();
  }
  if (host.empty()) return refused();
  return std::pair{std::string(host), port};
}

struct HttpServer::Impl {
  ServerOptions options;
  ManagedStreams& streams;
  StatsHistory stats_history;
  std::unique_ptr<httplib::Server> server;
  int port = 0;
  std::jthread thread;

  Impl(ServerOptions the_options, ManagedStreams& the_streams)
      : options(std::move(the_options)), streams(the_streams), stats_history(the_streams, options.history) {}

  bool needs_token(const Request& request) const {
    if (request.method == "GET" && request.path == "/healthz") return false;
    return !(request.method == "GET" && request.path == "/metrics" && is_loopback(options.host));
  }

  httplib::Server::HandlerResponse admit(const Request& request, Response& response) const {
    using Outcome = httplib::Server::HandlerResponse;
    // A refused request's body stays unread on the connection: do not read it as the next request.
    if (needs_token(request) && !same_token(bearer(request.get_header_value("Authorization")), options.token)) {
      response.set_header("WWW-Authenticate", "Bearer");
      response.set_header("Connection", "close");
      send_failure(response, ErrorCode::unauthorized, "The Authorization header holds no valid bearer token");
      return Outcome::Handled;
    }
    if (request.path.size() > kTargetBytesMax) {
      response.set_header("Connection", "close");
      send_failure(response, ErrorCode::not_found, "The path is longer than any that the API has");
      return Outcome::Handled;
    }
    return Outcome::Unhandled;
  }

  void put_desired(const Request& request, Response& response, const httplib::ContentReader& read) {
    if (request.is_multipart_form_data()) {  // which the library would read for another kind of reader only
      response.set_header("Connection", "close");
      return send_failure(response, ErrorCode::invalid_request, "The body is a form, not a JSON document");
    }
    std::string body;
    // The length that the request announces is not to be trusted, and a compressed or chunked body has none.
    bool whole = read([&](const char* data, size_t length) {
      if (body.size() + length > kDesiredBytesMax) return false;
      body.append(data, length);
      return true;
    });
    if (!whole) {
      response.set_header("Connection", "close");
      bool large = response.status == 413 || body.size() > kDesiredBytesMax / 2;
      send_failure(
          response, large ? ErrorCode::request_too_large : ErrorCode::invalid_request,
          large ? fmt::format("The body is larger than {} bytes", kDesiredBytesMax) : "The body could not be read");
      return;
    }
    auto desired = parse_desired(body);
    if (!desired) return send_failure(response, desired.error());
    uint64_t revision = desired->revision;
    if (auto stored = streams.put_desired(std::move(*desired)); !stored) return send_failure(response, stored.error());
    send(response, 200, {{"revision", revision}});
  }

  void request_identity(const Request& request, Response& response) {
    auto body = parse_strict(request.body);
    if (!body) return send_failure(response, body.error());
    ObjectReader reader(*body, "");
    const std::string name = reader.string("name", 1, kIdentityNameBytesMax);
    if (auto read = reader.finish(); !read) return send_failure(response, read.error());
    auto csr = streams.request_identity(name);
    if (!csr) return send_failure(response, csr.error());
    send(response, 200, {{"csr", *csr}});
  }

  void install_identity(const Request& request, Response& response) {
    auto body = parse_strict(request.body);
    if (!body) return send_failure(response, body.error());
    ObjectReader reader(*body, "");
    const std::string certificate = reader.string("certificate", 1, kPemBytesMax);
    const std::string ca = reader.string("ca", 1, kPemBytesMax);
    if (auto read = reader.finish(); !read) return send_failure(response, read.error());
    auto identity = streams.install_identity(certificate, ca);
    if (!identity) return send_failure(response, identity.error());
    send(response, 200, identity_document(*identity));
  }

  // What can be done to a stream, and to one destination of several: `path` has the ids of one or both.
  void history(const Request& request, Response& response) {
    int64_t since = std::numeric_limits<int64_t>::min();
    for (const auto& [name, value] : request.params) {
      auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), since);
      if (name != "since" || request.params.size() > 1 || value.empty() || problem != std::errc{} ||
          end != value.data() + value.size()) {
        return send_failure(response, ErrorCode::invalid_request,
                            "The only parameter is since, in whole microseconds since 1970");
      }
    }
    response.set_content(stats_history.answer({since}), kJson);
  }

  void place_marker(const Request& request, Response& response) {
    auto body = parse_strict(request.body);
    if (!body) return send_failure(response, body.error());
    ObjectReader reader(*body, "");
    const std::string id = reader.string("id", 1, kMarkerIdBytesMax);
    const std::string label = reader.string("label", 0, kMarkerLabelBytesMax);
    if (auto read = reader.finish(); !read) return send_failure(response, read.error());
    send_done(response, streams.place_marker(request.matches[1].str(), id, label), 202);
  }

  void markers(const Request& request, Response& response) {
    auto trail = streams.markers(request.matches[1].str());
    if (!trail) return send_failure(response, trail.error());
    send(response, 200, markers_document(*trail));
  }

  void transactions(const Request& request, Response& response) {
    auto samples = streams.transactions(request.matches[1].str());
    if (!samples) return send_failure(response, samples.error());
    send(response, 200, transactions_document(*samples, std::chrono::steady_clock::now()));
  }

  void route_target(const std::string& path) {
    httplib::Server& http = *server;
    const bool of_destination = path.ends_with(R"(([a-z0-9]{1,16}))");
    const size_t error_at = of_destination ? 3 : 2;
    const auto target = [of_destination](const Request& request) {
      return StreamTarget{.stream = request.matches[1].str(),
                          .destination = of_destination ? request.matches[2].str() : ""};
    };
    http.Post(path + "/retry", [this, target](const Request& request, Response& response) {
      send_done(response, streams.retry(target(request)), 202);
    });
    http.Get(path + "/errors", [this, target](const Request& request, Response& response) {
      auto errors = streams.errors(target(request));
      if (!errors) return send_failure(response, errors.error());
      send(response, 200, errors_document(*errors));
    });
    http.Post(path + "/errors/([0-9]{1,20})/execute",
              [this, target, error_at](const Request& request, Response& response) {
                auto id = parse_error_id(request.matches[error_at].str());
                if (!id) return send_failure(response, id.error());
                send_done(response, streams.execute_error(target(request), *id), 202);
              });
    http.Delete(path + "/errors/([0-9]{1,20})", [this, target, error_at](const Request& request, Response& response) {
      auto id = parse_error_id(request.matches[error_at].str());
      if (!id) return send_failure(response, id.error());
      send_done(response, streams.drop_error(target(request), *id), 204);
    });
  }

  void route() {
    httplib::Server& http = *server;
    http.set_pre_routing_handler(
        [this](const Request& request, Response& response) { return admit(request, response); });
    http.Get("/healthz", [](const Request&, Response& response) { send(response, 200, {{"status", "ok"}}); });
    http.Get("/metrics", [this](const Request&, Response& response) {
      response.set_content(metrics_text(streams.engine(), streams.status(), streams.stats()),
                           "text/plain; version=0.0.4");
    });
    http.Put("/v1/desired", [this](const Request& request, Response& response, const httplib::ContentReader& read) {
      put_desired(request, response, read);
    });
    http.Get("/v1/desired", [this](const Request&, Response& response) {
      send(response, 200, {{"revision", streams.engine().desired_revision}});
    });
    http.Get("/v1/status", [this](const Request&, Response& response) {
      send(response, 200, status_document(streams.engine(), streams.status()));
    });
    http.Get("/v1/stats",
             [this](const Request&, Response& response) { send(response, 200, stats_document(streams.stats())); });
    http.Get("/v1/stats/history", [this](const Request& request, Response& response) { history(request, response); });
    http.Get(R"(/v1/streams/([a-z0-9]{1,32})/transactions)",
             [this](const Request& request, Response& response) { transactions(request, response); });
    http.Get(R"(/v1/streams/([a-z0-9]{1,32})/markers)",
             [this](const Request& request, Response& response) { markers(request, response); });
    http.Post(R"(/v1/streams/([a-z0-9]{1,32})/markers)",
              [this](const Request& request, Response& response) { place_marker(request, response); });
    http.Post("/v1/identity/request",
              [this](const Request& request, Response& response) { request_identity(request, response); });
    http.Put("/v1/identity",
             [this](const Request& request, Response& response) { install_identity(request, response); });
    route_target(R"(/v1/streams/([a-z0-9]{1,32}))");
    route_target(R"(/v1/streams/([a-z0-9]{1,32})/destinations/([a-z0-9]{1,16}))");
    // What the library itself refuses: no route, a request line it cannot read, a body over the limit.
    http.set_error_handler([](const Request& request, Response& response) {
      if (!response.body.empty()) return;
      switch (response.status) {
        case 404:
          return send_failure(response, ErrorCode::not_found,
                              fmt::format("There is no {} {}", request.method, request.path));
        case 413:
          response.set_header("Connection", "close");
          return send_failure(response, ErrorCode::request_too_large,
                              fmt::format("The body is larger than {} bytes", kDesiredBytesMax));
        default:
          return send_failure(response, ErrorCode::invalid_request, "The request is not valid HTTP/1.1");
      }
    });
    http.set_exception_handler([](const Request& request, Response& response, std::exception_ptr thrown) {
      std::string what = "unknown";
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& exception) {
        what = exception.what();
      } catch (...) {
      }
      base::log_event(base::LogLevel::error, "request_failed",
                      {{"method", request.method}, {"path", request.path}, {"what", what}});
      send_failure(response, ErrorCode::engine_stopping, "The engine could not answer: " + what);
    });
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

base::Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerOptions options, ManagedStreams& streams) {
  bool tls = !options.tls_certificate.empty() || !options.tls_key.empty();
  if (!tls && !is_loopback(options.host)) {
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("{} is not a loopback address: give --tls-cert and --tls-key as well", options.host));
  }
  if (options.token.empty()) return base::fail(ErrorCode::invalid_request, "The control API needs a token");

  auto impl = std::make_unique<Impl>(std::move(options), streams);
  const ServerOptions& o = impl->options;
  if (tls) {
    impl->server = std::make_unique<httplib::SSLServer>(o.tls_certificate.c_str(), o.tls_key.c_str());
  } else {
    impl->server = std::make_unique<httplib::Server>();
  }
  httplib::Server& http = *impl->server;
  if (!http.is_valid()) {
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("The certificate {} and the key {} cannot be used", o.tls_certificate, o.tls_key));
  }
  http.new_task_queue = [] { return new httplib::ThreadPool(kWorkers); };  // the library deletes it
  http.set_payload_max_length(kDesiredBytesMax);
  http.set_keep_alive_max_count(1000);
  http.set_keep_alive_timeout(5);
  http.set_read_timeout(10);
  http.set_write_timeout(10);
  http.set_tcp_nodelay(true);
  impl->route();
  // SO_REUSEPORT, the library's default, would let two engines share one port.
  http.set_socket_options([](socket_t socket) {
    int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  impl->port = o.port == 0 ? http.bind_to_any_port(o.host) : (http.bind_to_port(o.host, o.port) ? o.port : -1);
  if (impl->port <= 0) {
    return base::fail(ErrorCode::invalid_request, fmt::format("Cannot listen on {}:{}; is it in use?", o.host, o.port));
  }
  impl->thread = std::jthread([raw = impl.get()] { raw->server->listen_after_bind(); });
  // stop() before the listener runs would be lost.
  while (!http.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  impl_->server->stop();
  impl_->thread.join();
}

int HttpServer::port() const { return impl_->port; }

}  // namespace thalweg::control
