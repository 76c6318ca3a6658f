#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <string>

// Client for the tests of the control API: one connection for each request.

namespace thalweg::control {

namespace test_net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
}  // namespace test_net

struct TestAnswer {
  int status = 0;
  std::string body;
};

class TestClient {
 public:
  explicit TestClient(int port, std::string token = {}) : port_(port), token_(std::move(token)) {}

  TestAnswer get(const std::string& path) { return ask("GET", path, {}); }
  TestAnswer put(const std::string& path, std::string body) { return ask("PUT", path, std::move(body)); }
  TestAnswer post(const std::string& path, std::string body = {}) { return ask("POST", path, std::move(body)); }
  TestAnswer drop(const std::string& path) { return ask("DELETE", path, {}); }

  // Status 0 where the server hung up without an answer.
  TestAnswer ask(const std::string& method, const std::string& path, std::string body, bool chunked = false) {
    using namespace test_net;
    http::request<http::string_body> request;
    request.method_string(method);
    request.target(path);
    request.set(http::field::host, "127.0.0.1");
    if (!token_.empty()) request.set(http::field::authorization, "Bearer " + token_);
    request.body() = std::move(body);
    if (chunked) {
      request.chunked(true);
    } else if (!request.body().empty() || method != "GET") {
      request.content_length(request.body().size());
    }
    tcp::socket socket = connect();
    boost::system::error_code error;
    http::write(socket, request, error);  // it may answer and hang up before it has read all
    boost::beast::flat_buffer buffer;
    http::response_parser<http::string_body> answer;
    answer.body_limit(boost::none);
    http::read(socket, buffer, answer, error);
    if (error) return {};
    return {.status = static_cast<int>(answer.get().result_int()), .body = answer.get().body()};
  }

  test_net::tcp::socket connect(const std::string& from = "127.0.0.1") {
    using namespace test_net;
    tcp::socket socket(network_);
    socket.open(tcp::v4());
    socket.bind({asio::ip::make_address(from), 0});
    socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(port_)});
    return socket;
  }

  // Everything that comes until the server hangs up.
  static std::string rest_of(test_net::tcp::socket& socket) {
    std::string text;
    boost::system::error_code error;
    test_net::asio::read(socket, test_net::asio::dynamic_buffer(text), error);
    return text;
  }

 private:
  test_net::asio::io_context network_;
  const int port_;
  const std::string token_;
};

}  // namespace thalweg::control
