// How connections begin: hosts with several addresses, and an engine without a free file descriptor.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "propagation/propagation_harness.h"
#include "propagation/scripted_peers.h"

namespace thalweg::propagation {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;

uint16_t closed_port() { return port_of(listen_on("127.0.0.1", 0, true).value()); }

Resolver resolves_to(std::vector<PeerAddress> addresses) {
  return [addresses = std::move(addresses)](const std::string&, uint16_t) { return addresses; };
}

TEST(Reach, AllAddressesOfAHostAreTriedInOrder) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(1);
  a.start_sender([&](SenderOptions& options) {
    options.resolve = resolves_to({loopback(closed_port()), loopback(closed_port()), loopback(b.port.port())});
  });
  EXPECT_TRUE(a.sender->await_receiver(kPatience));
}

// A listener whose backlog is full answers nobody, as a host behind a firewall that drops.
TEST(Reach, AnAddressThatNeverAnswersDoesNotTakeAllTheTime) {
  const base::File silent(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const PeerAddress any = loopback(0);
  ASSERT_EQ(bind(silent.descriptor(), reinterpret_cast<const sockaddr*>(&any.address), any.length), 0);
  ASSERT_EQ(listen(silent.descriptor(), 0), 0);
  std::vector<base::File> filling;
  for (int i = 0; i < 4; ++i) filling.push_back(begin_connect(loopback(port_of(silent)), true, 0).value());
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(1);
  a.start_sender([&](SenderOptions& options) {
    options.peer_timeout = 400ms;
    options.resolve = resolves_to({loopback(port_of(silent)), loopback(b.port.port())});
  });
  EXPECT_TRUE(a.sender->await_receiver(kPatience));
}

TEST(Reach, TheErrorNamesEveryAddress) {
  const uint16_t first = closed_port();
  const uint16_t second = closed_port();
  SendingEngine a(1);
  a.start_sender([&](SenderOptions& options) { options.resolve = resolves_to({loopback(first), loopback(second)}); });
  const auto error = a.await_link_error();
  EXPECT_EQ(error.code, ErrorCode::engine_unreachable);
  for (const uint16_t port : {first, second}) {
    EXPECT_NE(error.message.find("127.0.0.1:" + std::to_string(port)), std::string::npos) << error.message;
  }
}

TEST(Reach, AddressesAreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(to_string(resolve_peer("127.0.0.1", 8644).value().front()), "127.0.0.1:8644");
  EXPECT_EQ(to_string(resolve_peer("::1", 8644).value().front()), "[::1]:8644");
  EXPECT_EQ(resolve_peer("no such host", 1).error().code, ErrorCode::engine_unreachable);
}

// No file descriptor above those in use, while it lives.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int lowest_free = dup(0);
    close(lowest_free);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

// A connection that the kernel completes by itself; its socket was made while there were descriptors.
void connect_to(const base::File& socket, uint16_t port) {
  const PeerAddress to = loopback(port);
  ASSERT_EQ(connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&to.address), to.length), 0);
}

TEST(Reach, WithoutFileDescriptorsThePortSleepsBetweenTries) {
  ReceiverPort port({.engine = "b", .security = {.plain_on_loopback = true}, .accept_pause = 1h});
  ASSERT_TRUE(port.start());
  const base::File first(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::File second(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const NoMoreDescriptors none;
    connect_to(first, port.port());
    ASSERT_TRUE(eventually([&] { return port.gauges().accept_failures == 1; }));
    connect_to(second, port.port());
    std::this_thread::sleep_for(20ms);  // a port that did not sleep would try thousands of times
    EXPECT_EQ(port.gauges().accept_failures, 1U);
  }
  EXPECT_EQ(port.gauges().accepted, 0U);
}

TEST(Reach, ThePortGoesOnOnceThereAreFileDescriptors) {
  ReceiverPort port({.engine = "b", .security = {.plain_on_loopback = true}, .accept_pause = 2ms});
  ASSERT_TRUE(port.start());
  const base::File waiting(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const NoMoreDescriptors none;
    connect_to(waiting, port.port());
    ASSERT_TRUE(eventually([&] { return port.gauges().accept_failures >= 2; }));
    EXPECT_EQ(port.gauges().accepted, 0U);
  }
  EXPECT_TRUE(eventually([&] { return port.gauges().accepted == 1; }));
}

}  // namespace
}  // namespace thalweg::propagation
