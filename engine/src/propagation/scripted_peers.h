#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lcr/bytes.h"
#include "propagation/connection.h"
#include "propagation/message_reader.h"
#include "propagation/messages.h"

// Peers over plain TCP that say what a test tells them to: engines of other versions, and what is no engine at all.

namespace thalweg::propagation {

inline PeerAddress loopback(uint16_t port) { return resolve_peer("127.0.0.1", port).value().front(); }

inline Hello sample_hello(ProtocolVersions versions = {}) {
  return {.versions = versions,
          .compressions = 1,
          .sender_session = 5,
          .receiver_session = 0,
          .first_sequence = 1,
          .window_bytes = 1 << 22,
          .sender_engine = "a",
          .receiver_engine = "b",
          .stream_id = "stream01"};
}

// The message as a later version would write it: with fields behind those that this one knows.
inline std::vector<std::byte> lengthened(std::vector<std::byte> message, size_t by = 12) {
  message.insert(message.end(), by, std::byte{7});
  lcr::ByteWriter(message).integer(static_cast<uint32_t>(message.size()));
  const uint32_t checksum = message_checksum(message);
  lcr::ByteWriter(std::span(message).subspan(4)).integer(checksum);
  return message;
}

// Writes bytes to a port and returns what came back until the port closed the connection, or `enough` came.
inline std::vector<std::byte> talk_to(uint16_t port, std::span<const std::byte> bytes, size_t enough = SIZE_MAX) {
  base::File socket = begin_connect(loopback(port), true, 0).value();
  pollfd polled{.fd = socket.descriptor(), .events = POLLOUT, .revents = 0};
  poll(&polled, 1, -1);
  EXPECT_EQ(send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  std::vector<std::byte> answer(4096);
  size_t got = 0;
  polled.events = POLLIN;
  while (got < enough) {
    poll(&polled, 1, -1);
    const ssize_t more = recv(socket.descriptor(), answer.data() + got, answer.size() - got, 0);
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  answer.resize(got);
  return answer;
}

// A receiving engine that answers every HELLO with the same bytes, and then listens until the sender hangs up.
class ScriptedReceiver {
 public:
  explicit ScriptedReceiver(std::vector<std::byte> answer)
      : answer_(std::move(answer)), listener_(listen_on("127.0.0.1", 0, true).value()), thread_([this] { run(); }) {}
  ~ScriptedReceiver() {
    stop_ = true;
    thread_.join();
  }
  uint16_t port() const { return port_of(listener_); }

 private:
  void run() {
    while (!stop_) {
      if (!readable(listener_)) continue;
      auto socket = accept_from(listener_);
      if (socket && socket->is_open()) answer(*socket);
    }
  }
  void answer(const base::File& socket) {
    MessageReader reader(kControlBytesMax);
    bool answered = false;
    while (!stop_) {
      if (!readable(socket)) continue;
      const auto room = reader.room();
      const ssize_t got = recv(socket.descriptor(), room.data(), room.size(), 0);
      if (got <= 0) return;
      if (answered) continue;  // what the sender says further is not ours to understand
      reader.added(static_cast<size_t>(got));
      const auto message = reader.next();
      if (!message || !*message) continue;
      EXPECT_TRUE(std::holds_alternative<Hello>(**message));
      EXPECT_EQ(send(socket.descriptor(), answer_.data(), answer_.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer_.size()));
      answered = true;
    }
  }
  static bool readable(const base::File& socket) {
    pollfd polled{.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
    return poll(&polled, 1, 5) > 0;
  }

  const std::vector<std::byte> answer_;
  base::File listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace thalweg::propagation
