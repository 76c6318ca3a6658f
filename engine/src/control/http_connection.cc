#include "control/http_connection.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "control/token_file.h"

namespace thalweg::control {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using base::ErrorCode;
using beast::error_code;
using HeadParser = http::request_parser<http::empty_body>;
using BodyParser = http::request_parser<http::string_body>;

constexpr size_t kTargetBytesMax = 256;  // longer ones cannot be ours
constexpr size_t kLingerBytes = 16 * 1024;

std::string_view text_of(beast::string_view text) { return {text.data(), text.size()}; }

std::string_view bearer(std::string_view header) {
  constexpr std::string_view kScheme = "Bearer ";
  return header.starts_with(kScheme) ? header.substr(kScheme.size()) : std::string_view{};
}

// A life: TLS handshake, then head, body, work and answer again and again; a deadline for each. A client without a
// token gets one answer, and nothing but the head of its request is read.
template <typename Stream>
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(uint64_t number, Stream stream, const ConnectionEnvironment& environment)
      : number_(number),
        stream_(std::move(stream)),
        environment_(environment),
        limits_(environment.options.limits),
        buffer_(2 * limits_.head_bytes) {}
  ~Connection() override { environment_.gone(number_); }

  void begin() override {
    socket().expires_after(limits_.head_time);
    if constexpr (kIsTls) {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (!error) self->read_head();
      });
    } else {
      read_head();
    }
  }

  void close() override { socket().close(); }

 private:
  static constexpr bool kIsTls = !std::is_same_v<Stream, beast::tcp_stream>;
  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }

  // The deadline has been set: it is one for the whole of it, however the bytes trickle.
  void read_head() {
    head_.emplace();
    head_->header_limit(static_cast<uint32_t>(limits_.head_bytes));
    head_->body_limit(boost::none);  // looked at once it is known who asks
    http::async_read_header(stream_, buffer_, *head_,
                            [self = this->shared_from_this()](error_code error, size_t) { self->head_read(error); });
  }

  void head_read(error_code error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) return refuse_head();
    if (error == http::error::end_of_stream || error == http::error::partial_message) return;
    if (error && error.category() == make_error_code(http::error::bad_method).category()) {
      return end_with(failure_answer(ErrorCode::invalid_request, "The request is not valid HTTP/1.1"));
    }
    if (error) return;
    const auto& fields = head_->get();
    if (static_cast<size_t>(std::distance(fields.begin(), fields.end())) > limits_.headers) return refuse_head();
    const std::string_view target = text_of(fields.target());
    const size_t question = std::min(target.find('?'), target.size());
    request_ = {.method = std::string(text_of(fields.method_string())),
                .path = std::string(target.substr(0, question)),
                .query = std::string(target.substr(std::min(question + 1, target.size()))),
                .body = {}};
    const bool has_token = same_token(bearer(text_of(fields[http::field::authorization])), environment_.options.token);
    if (!has_token && !is_open_path()) {
      return end_with(failure_answer(ErrorCode::unauthorized, "The Authorization header holds no valid bearer token"));
    }
    if (target.size() > kTargetBytesMax) {
      return end_with(failure_answer(ErrorCode::not_found, "The path is longer than any that the API has"));
    }
    keep_alive_ = has_token && environment_.known(number_) && head_->keep_alive();
    if (!has_token) return work();
    read_body();
  }

  bool is_open_path() const { return request_.method == "GET" && request_.path == "/healthz"; }

  void refuse_head() {
    ApiAnswer answer = failure_answer(
        ErrorCode::request_too_large,
        fmt::format("The request's head has more than {} bytes or {} fields", limits_.head_bytes, limits_.headers));
    answer.status = 431;
    end_with(std::move(answer));
  }

  void refuse_body() {
    end_with(failure_answer(ErrorCode::request_too_large,
                            fmt::format("The body is larger than {} bytes", body_bytes_max(request_.path))));
  }

  void read_body() {
    const size_t bytes_max = body_bytes_max(request_.path);
    if (head_->content_length().value_or(0) > bytes_max) return refuse_body();
    const auto encoding = text_of(head_->get()[http::field::content_encoding]);
    if (!encoding.empty() && encoding != "identity") {
      return end_with(failure_answer(ErrorCode::invalid_request, "The body is compressed; send it as it is"));
    }
    const bool waits_for_go_ahead = beast::iequals(head_->get()[http::field::expect], "100-continue");
    body_.emplace(std::move(*head_));
    head_.reset();
    body_->body_limit(bytes_max);
    socket().expires_after(limits_.body_time);
    if (!waits_for_go_ahead) return read_rest();
    static constexpr std::string_view kGoAhead = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kGoAhead), [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->read_rest();
    });
  }

  void read_rest() {
    http::async_read(stream_, buffer_, *body_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error == http::error::body_limit) return self->refuse_body();
      if (error && error.category() == make_error_code(http::error::bad_method).category()) {
        return self->end_with(failure_answer(ErrorCode::invalid_request, "The body could not be read"));
      }
      if (error) return;
      self->request_.body = std::move(self->body_->get().body());
      self->body_.reset();
      self->work();
    });
  }

  // On another thread, which may wait for a database; the network goes on.
  void work() {
    // The question whether the engine lives does not stand behind requests that wait for databases.
    if (is_open_path()) return send(environment_.api.answer(request_));
    socket().expires_never();
    asio::post(environment_.workers, [self = this->shared_from_this(),
                                      keeps_network = asio::make_work_guard(environment_.network)]() mutable {
      ApiAnswer answer = self->environment_.api.answer(self->request_);
      // The connection ends on its own thread, so this one must not be the last to hold it.
      asio::post(keeps_network.get_executor(),
                 [self = std::move(self), answer = std::move(answer)]() mutable { self->send(std::move(answer)); });
    });
  }

  void end_with(ApiAnswer answer) {
    keep_alive_ = false;
    send(std::move(answer));
  }

  void send(ApiAnswer answer) {
    auto& response = response_.emplace();
    response.version(11);
    response.result(static_cast<unsigned>(answer.status));
    if (answer.status == 401) response.set(http::field::www_authenticate, "Bearer");
    if (answer.status != 204) {
      response.set(http::field::content_type, answer.type);
      response.content_length(answer.body.size());
    }
    response.keep_alive(keep_alive_);
    response.body() = std::move(answer.body);
    socket().expires_after(limits_.answer_time);
    http::async_write(stream_, response, [self = this->shared_from_this()](error_code error, size_t) {
      self->response_.reset();
      if (error) return;
      if (!self->keep_alive_) return self->linger();
      self->socket().expires_after(self->limits_.idle_time);
      self->read_head();
    });
  }

  // Reads and discards for a moment what the peer still sends: closing a connection with unread bytes resets it, and
  // the peer may lose the answer.
  void linger() {
    socket().expires_after(limits_.linger_time);
    error_code ignored;  // the peer may have gone
    socket().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    rest_.resize(kLingerBytes);
    throw_away();
  }

  void throw_away() {
    socket().async_read_some(asio::buffer(rest_), [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->throw_away();
    });
  }

  const uint64_t number_;
  Stream stream_;
  const ConnectionEnvironment& environment_;
  const HttpLimits& limits_;
  beast::flat_buffer buffer_;
  std::optional<HeadParser> head_;
  std::optional<BodyParser> body_;
  std::optional<http::response<http::string_body>> response_;
  ApiRequest request_;
  bool keep_alive_ = false;
  std::vector<char> rest_;
};

}  // namespace

std::shared_ptr<HttpConnection> make_connection(uint64_t number, asio::ip::tcp::socket socket, asio::ssl::context* tls,
                                                const ConnectionEnvironment& environment) {
  using Tls = beast::ssl_stream<beast::tcp_stream>;
  if (tls == nullptr) {
    return std::make_shared<Connection<beast::tcp_stream>>(number, beast::tcp_stream(std::move(socket)), environment);
  }
  return std::make_shared<Connection<Tls>>(number, Tls(std::move(socket), *tls), environment);
}

}  // namespace thalweg::control
