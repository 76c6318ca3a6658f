#include "pg/peer_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace thalweg::pg {
namespace {

using namespace std::chrono_literals;

// Both ends of a connection of this host.
struct Pair {
  int near = -1, far = -1;

  Pair() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
    near = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(near, reinterpret_cast<sockaddr*>(&address), length), 0);
    far = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Pair() {
    close(near);
    close(far);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Until nothing more goes out.
  void fill() const {
    const std::array<char, 65536> bytes{};
    while (send(near, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  }
};

bool is_ever_silent(PeerWatch& watch, int socket, std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
    if (watch.is_silent(socket)) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(PeerWatch, APeerThatDoesNotReadIsNotSilent) {
  const Pair pair;
  pair.fill();
  PeerWatch watch(200ms);
  EXPECT_FALSE(is_ever_silent(watch, pair.near, 3s));
}

TEST(PeerWatch, AnIdleConnectionIsNotSilent) {
  const Pair pair;
  EXPECT_EQ(send(pair.near, "x", 1, 0), 1);
  PeerWatch watch(200ms);
  EXPECT_FALSE(is_ever_silent(watch, pair.near, 500ms));
}

TEST(PeerWatch, OtherSocketsAreLeftAlone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  PeerWatch watch(0ms);
  EXPECT_FALSE(is_ever_silent(watch, ends[0], 50ms));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace thalweg::pg
