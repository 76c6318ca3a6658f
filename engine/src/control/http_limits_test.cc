// The port before the token was shown: whoever floods it, trickles or sends too much neither stops the control plane
// nor takes memory.

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "control/http_server.h"
#include "control/http_test_client.h"
#include "control/no_streams.h"

namespace thalweg::control {
namespace {

using namespace std::chrono_literals;
using test_net::tcp;
namespace asio = test_net::asio;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";
constexpr auto kAtOnce = 5s;  // a hundredth of it on an idle machine; an answer that waits for a slow peer takes longer

// A sanitizer keeps freed memory for a while.
#if defined(__has_feature)
constexpr bool kFreedIsGone = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kFreedIsGone = true;
#endif

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

void say(tcp::socket& socket, const std::string& text) {
  boost::system::error_code error;  // the server may have hung up
  asio::write(socket, asio::buffer(text), error);
}

class HttpLimitsTest : public testing::Test {
 protected:
  void start(HttpLimits limits) {
    auto started = HttpServer::start({.host = "127.0.0.1",
                                      .port = 0,
                                      .token = kToken,
                                      .tls_certificate = "",
                                      .tls_key = "",
                                      .history = {},
                                      .limits = limits},
                                     streams_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    client_.emplace(server_->port(), kToken);
  }
  void expect_answer_at_once() {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(client_->get("/v1/status").status, 200);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, kAtOnce);
  }
  // Sends what there is time for, a byte at a time, and returns the answer and how long it took.
  std::pair<std::string, std::chrono::steady_clock::duration> trickle(std::string text) {
    const auto begun = std::chrono::steady_clock::now();
    tcp::socket socket = client_->connect();
    boost::system::error_code error;
    for (size_t at = 0; at < text.size() && !error; ++at) {
      asio::write(socket, asio::buffer(&text[at], 1), error);
      std::this_thread::sleep_for(20ms);
    }
    return {TestClient::rest_of(socket), std::chrono::steady_clock::now() - begun};
  }

  NoStreams streams_;
  std::unique_ptr<HttpServer> server_;
  std::optional<TestClient> client_;
};

TEST_F(HttpLimitsTest, TricklingConnectionsStopNobody) {
  start({});
  std::vector<tcp::socket> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(client_->connect());  // of the control plane's own address
    say(slow.back(), "GET /v1/status HTTP/1.1\r\nX-Slow: ");
  }
  for (int i = 0; i < 200; ++i) {
    slow.push_back(client_->connect("127.0.0." + std::to_string(2 + i % 100)));
    say(slow.back(), "GET");
  }
  expect_answer_at_once();
  for (tcp::socket& socket : slow) say(socket, "a");
  expect_answer_at_once();
}

TEST_F(HttpLimitsTest, AConnectionThatHasShownTheTokenIsNotPushedOut) {
  start({.strangers = {.all = 4, .of_one_address = 2}});
  tcp::socket socket = client_->connect();
  const std::string request = "GET /v1/desired HTTP/1.1\r\nAuthorization: Bearer " + std::string(kToken) + "\r\n";
  const auto ask_again = [&] {
    say(socket, request + "\r\n");
    boost::beast::flat_buffer buffer;
    test_net::http::response<test_net::http::string_body> answer;
    boost::system::error_code error;
    test_net::http::read(socket, buffer, answer, error);
    return error ? 0 : static_cast<int>(answer.result_int());
  };
  EXPECT_EQ(ask_again(), 200);
  std::vector<tcp::socket> flood;
  for (int i = 0; i < 20; ++i) flood.push_back(client_->connect());
  expect_answer_at_once();
  EXPECT_EQ(ask_again(), 200);
}

TEST_F(HttpLimitsTest, ManyHeadersAreRefusedAndTakeNoMemory) {
  start({});
  std::string head = "GET /v1/status HTTP/1.1\r\n";
  for (int i = 0; i < 20'000; ++i) head += "x" + std::to_string(i) + ": y\r\n";
  const uint64_t before = resident_bytes();
  for (int i = 0; i < 50; ++i) {
    tcp::socket socket = client_->connect();
    say(socket, head + "\r\n");
    EXPECT_TRUE(TestClient::rest_of(socket).starts_with("HTTP/1.1 431 "));
  }
  if (kFreedIsGone) {
    EXPECT_LT(resident_bytes(), before + (uint64_t{16} << 20));
  }
  std::string few = "GET /healthz HTTP/1.1\r\n";
  for (int i = 0; i < 65; ++i) few += "a:b\r\n";
  tcp::socket socket = client_->connect();
  say(socket, few + "\r\n");
  EXPECT_TRUE(TestClient::rest_of(socket).starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpLimitsTest, AHeadHasOneDeadlineHoweverItTrickles) {
  start({.head_time = 400ms});
  const auto [answer, took] = trickle("GET /healthz HTTP/1.1\r\nX-Slow: " + std::string(1000, 'a'));
  EXPECT_EQ(answer, "");
  EXPECT_LT(took, 15s);  // not the 20 s that all of it would take
}

TEST_F(HttpLimitsTest, AStrangersBodyIsNotRead) {
  start({});
  tcp::socket socket = client_->connect();
  say(socket, "PUT /v1/desired HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");  // and no byte of it
  EXPECT_TRUE(TestClient::rest_of(socket).starts_with("HTTP/1.1 401 "));
  const uint64_t before = resident_bytes();
  EXPECT_EQ(TestClient(server_->port()).put("/v1/desired", std::string(16 << 20, ' ')).status, 401);
  if (kFreedIsGone) {
    EXPECT_LT(resident_bytes(), before + (uint64_t{16} << 20));
  }
  EXPECT_EQ(streams_.requests, 0u);
}

TEST_F(HttpLimitsTest, ABodyHasADeadline) {
  start({.body_time = 300ms});
  const auto [answer, took] = trickle("PUT /v1/desired HTTP/1.1\r\nAuthorization: Bearer " + std::string(kToken) +
                                      "\r\nContent-Length: 100000\r\n\r\n" + std::string(900, ' '));
  EXPECT_EQ(answer, "");
  EXPECT_LT(took, 18s);
}

TEST_F(HttpLimitsTest, AnIdleConnectionIsClosed) {
  start({.idle_time = 200ms});
  tcp::socket socket = client_->connect();
  say(socket, "GET /v1/desired HTTP/1.1\r\nAuthorization: Bearer " + std::string(kToken) + "\r\n\r\n");
  EXPECT_TRUE(TestClient::rest_of(socket).starts_with("HTTP/1.1 200 "));  // returns when it is closed
}

TEST_F(HttpLimitsTest, GarbageBehindARequestEndsTheConnection) {
  start({});
  tcp::socket stranger = client_->connect();
  say(stranger, "GET /healthz HTTP/1.1\r\n\r\n" + std::string(1 << 20, '\xff'));
  const std::string answer = TestClient::rest_of(stranger);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);  // one request is all that a stranger has
  tcp::socket known = client_->connect();
  say(known, "GET /v1/desired HTTP/1.1\r\nAuthorization: Bearer " + std::string(kToken) + "\r\n\r\n\xff\xff\r\n\r\n");
  const std::string two = TestClient::rest_of(known);
  EXPECT_NE(two.find("HTTP/1.1 400 "), std::string::npos);
  expect_answer_at_once();
}

TEST_F(HttpLimitsTest, ACompressedBodyIsRefused) {
  start({});
  tcp::socket socket = client_->connect();
  say(socket, "PUT /v1/desired HTTP/1.1\r\nAuthorization: Bearer " + std::string(kToken) +
                  "\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_TRUE(TestClient::rest_of(socket).starts_with("HTTP/1.1 400 "));
}

TEST_F(HttpLimitsTest, AClientMayWaitForTheGoAhead) {
  start({});
  tcp::socket socket = client_->connect();
  say(socket, "PUT /v1/desired HTTP/1.1\r\nAuthorization: Bearer " + std::string(kToken) +
                  "\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  std::string go_ahead(25, ' ');
  asio::read(socket, asio::buffer(go_ahead));
  EXPECT_EQ(go_ahead, "HTTP/1.1 100 Continue\r\n\r\n");
  say(socket, "{}");
  EXPECT_TRUE(TestClient::rest_of(socket).starts_with("HTTP/1.1 400 "));  // the document is not one
}

// Of a database that hangs, say.
class StuckStreams final : public NoStreams {
 public:
  base::Result<ParkedListView> errors(const StreamTarget&, const telemetry::ParkedPart&) override {
    std::unique_lock lock(mutex_);
    ++stuck_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return over_; });
    return ParkedListView{};
  }
  void wait_for(int stuck) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kAtOnce, [&] { return stuck_ >= stuck; }));
  }
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int stuck_ = 0;
  bool over_ = false;
};

TEST(HttpServerOfStuckStreams, SaysThatItIsAliveWhateverItsWorkersWaitFor) {
  StuckStreams streams;
  ServerOptions options;
  options.port = 0;
  options.token = kToken;
  const auto server = HttpServer::start(options, streams);
  ASSERT_TRUE(server) << server.error().message;
  TestClient client((*server)->port(), kToken);
  std::vector<tcp::socket> waiting;
  for (int i = 0; i < 40; ++i) {
    waiting.push_back(client.connect());
    say(waiting.back(), "GET /v1/streams/a/destinations/b/errors HTTP/1.1\r\nAuthorization: Bearer " +
                            std::string(kToken) + "\r\n\r\n");
  }
  streams.wait_for(8);
  for (const char* const authorization : {"", kToken}) {
    const std::string head = std::string("GET /healthz HTTP/1.1\r\nConnection: close\r\n") +
                             (*authorization ? std::string("Authorization: Bearer ") + authorization + "\r\n" : "");
    tcp::socket socket = client.connect();
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ASSERT_EQ(::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    say(socket, head + "\r\n");
    std::string answer(64, '\0');
    const ssize_t got = ::recv(socket.native_handle(), answer.data(), answer.size(), 0);
    ASSERT_GT(got, 0) << "no answer";
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  }
  streams.end();
}

}  // namespace
}  // namespace thalweg::control
