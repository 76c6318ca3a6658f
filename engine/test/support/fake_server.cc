#include "support/fake_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace thalweg::test {

namespace {

using namespace std::string_literals;

constexpr uint32_t kProtocol3 = 3 << 16;
constexpr uint32_t kCancelRequest = 80'877'102;
constexpr size_t kMessageBytes = 16 * 1024;
constexpr size_t kRowBytes = 1 << 20;

std::string number(uint32_t value) {
  const uint32_t bytes = htonl(value);
  return {reinterpret_cast<const char*>(&bytes), sizeof bytes};
}

std::string message(char kind, const std::string& body) {
  return kind + number(static_cast<uint32_t>(body.size() + 4)) + body;
}

std::string status(const std::string& name, const std::string& value) {
  return message('S', name + '\0' + value + '\0');
}

std::string row(const std::string& value) {
  return message('D', "\0\1"s + number(static_cast<uint32_t>(value.size())) + value);
}

const std::string kTextColumn = "c\0"s + number(0) + "\0\0"s + number(25) + "\xff\xff\xff\xff\xff\xff\0\0"s;
const std::string kColumns = message('T', "\0\1"s + kTextColumn);
const std::string kStatementEnd = message('C', "SELECT 1\0"s) + message('Z', "I");

bool say(int socket, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(socket, &text[at], text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

std::optional<std::string> hear(int socket, size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = ::recv(socket, &text[at], bytes - at, 0);
    if (got <= 0) return std::nullopt;
    at += static_cast<size_t>(got);
  }
  return text;
}

std::optional<uint32_t> hear_number(int socket) {
  const auto text = hear(socket, 4);
  if (!text) return std::nullopt;
  return ntohl(*reinterpret_cast<const uint32_t*>(text->data()));
}

// The startup packet; before it, requests for encryption, which are refused. A request to cancel is not answered.
std::optional<std::string> hear_start(int socket) {
  while (true) {
    const auto length = hear_number(socket);
    if (!length) return std::nullopt;
    const auto code = hear_number(socket);
    if (!code) return std::nullopt;
    auto settings = hear(socket, *length - 8);
    if (!settings || *code == kProtocol3) return settings;
    if (*code == kCancelRequest) return hear(socket, 1);  // until it is given up
    if (!say(socket, "N")) return std::nullopt;
  }
}

std::string session_mark_in(const std::string& startup) {
  constexpr std::string_view kSetting = "thalweg.session=";
  const size_t at = startup.find(kSetting);
  if (at == std::string::npos) return {};
  const size_t begin = at + kSetting.size();
  return startup.substr(begin, startup.find_first_of(" \0"s, begin) - begin);
}

std::string answer_about_session(char kind, const std::string& mark, int process) {
  const std::string pid = std::to_string(process);
  return (kind == 'S' ? message('1', "") + message('2', "") : "") + message('T', "\0\2"s + kTextColumn + kTextColumn) +
         message('D', "\0\2"s + number(static_cast<uint32_t>(mark.size())) + mark +
                          number(static_cast<uint32_t>(pid.size())) + pid) +
         kStatementEnd;
}

// The first answer's beginning: 'Q' ends a simple statement, 'S' one of the extended protocol. 0: the client has gone.
char hear_statement(int socket) {
  while (true) {
    const auto kind = hear(socket, 1);
    if (!kind) return 0;
    const auto length = hear_number(socket);
    if (!length || !hear(socket, *length - 4)) return 0;
    if (kind->front() == 'Q' || kind->front() == 'S') return kind->front();
  }
}

std::string beginning_of_answer(char kind) {
  return (kind == 'S' ? message('1', "") + message('2', "") : "") + kColumns;
}

bool misbehave(int socket, const FakeServerOptions& options) {
  using Then = FakeServerOptions::Then;
  const std::string text(kMessageBytes, 'x');
  for (size_t sent = 0, count = 0; sent < options.bytes; ++count) {
    std::string answer;
    if (options.then == Then::rows) answer = row(std::string(kRowBytes, 'x'));
    if (options.then == Then::notices) answer = message('N', "SNOTICE\0C00000\0M"s + text + "\0\0"s);
    if (options.then == Then::statuses) answer = status("made_up_" + std::to_string(count), text);
    if (!say(socket, answer)) return false;
    sent += answer.size();
  }
  return true;
}

}  // namespace

FakeServer::FakeServer(FakeServerOptions options) : options_(options) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, generic, length) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, generic, &length) != 0) {
    throw std::runtime_error("the fake server cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept(); });
}

FakeServer::~FakeServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& session : sessions_) session.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

std::string FakeServer::conninfo() const {
  return "host=127.0.0.1 port=" + std::to_string(port_) + " user=nobody dbname=nothing";
}

void FakeServer::accept() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    sessions_.emplace_back([this, socket] { serve(socket); });
  }
}

void FakeServer::serve(int socket) const {
  const auto greet = [&] {
    return say(socket, status("server_version", "15.0") + status("client_encoding", "UTF8") +
                           status("standard_conforming_strings", "on") + message('K', number(1) + number(2)) +
                           message('Z', "I"));
  };
  const auto startup = hear_start(socket);
  if (!startup || !say(socket, message('R', number(0)))) return;
  const std::string mark = session_mark_in(*startup);
  if (options_.statements >= 0 && !greet()) return;
  for (size_t i = 0; static_cast<int>(i) < options_.statements; ++i) {
    const int process = options_.processes[std::min(i, options_.processes.size() - 1)];
    const char kind = hear_statement(socket);
    if (kind == 0 || !say(socket, answer_about_session(kind, mark, process))) return;
  }
  const char kind = options_.statements >= 0 ? hear_statement(socket) : 'Q';
  if (kind == 0 || options_.then == FakeServerOptions::Then::silence) return;
  if (options_.then == FakeServerOptions::Then::copy_out) {
    say(socket, message('1', "") + message('2', "") + message('H', "\0\0\1\0\0"s));
    return;
  }
  if (options_.statements >= 0 && !say(socket, beginning_of_answer(kind))) return;
  if (!misbehave(socket, options_)) return;
  if (options_.statements < 0 && !greet()) return;
  if (options_.statements >= 0 && !say(socket, kStatementEnd)) return;
  while (hear_statement(socket) != 0 && say(socket, beginning_of_answer('Q') + row("1") + kStatementEnd)) continue;
}

}  // namespace thalweg::test
