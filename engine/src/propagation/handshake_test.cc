// Tests which engines may connect to each other: certificates, names, garbage.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "propagation/connection.h"
#include "propagation/messages.h"
#include "propagation/propagation_harness.h"
#include "propagation/scripted_peers.h"

namespace thalweg::propagation {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using testing::Test;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

class TlsHandshake : public Test {
 protected:
  TestCertificates certificates;

  // The error that a sender with `files` reports when it connects to an engine with `engine_files`.
  base::Error sender_error(const TlsFiles& engine_files, const std::optional<TlsFiles>& files,
                           const std::function<void(SenderOptions&)>& change = {}) {
    ReceivingEngine b(engine_files);
    b.start_receiver();
    SendingEngine a(b.port.port(), files);
    a.start_sender(change);
    const auto error = a.await_link_error();
    EXPECT_FALSE(a.sender->status().connected);
    EXPECT_TRUE(eventually([&] { return b.port.gauges().refused > 0; }));
    last_refusal = b.port.gauges().last_refusal;
    return error;
  }
  std::string last_refusal;
};

TEST_F(TlsHandshake, ACertificateOfAnotherCaIsRejectedByBothSides) {
  const auto by_sender = sender_error(certificates.issue_by_stranger("b"), certificates.issue("a"));
  EXPECT_EQ(by_sender.code, ErrorCode::certificate_rejected) << by_sender.message;
  TlsFiles stranger = certificates.issue_by_stranger("a");
  stranger.ca = certificates.directory() / "ca.crt";  // trusts the engine, but is not trusted
  const auto by_receiver = sender_error(certificates.issue("b"), stranger);
  EXPECT_EQ(by_receiver.code, ErrorCode::certificate_rejected) << by_receiver.message;
  EXPECT_TRUE(contains(last_refusal, "certificate")) << last_refusal;
}

TEST_F(TlsHandshake, AnExpiredCertificateIsRejectedByBothSides) {
  const auto by_sender = sender_error(certificates.issue("b", -60), certificates.issue("a"));
  EXPECT_EQ(by_sender.code, ErrorCode::certificate_rejected) << by_sender.message;
  EXPECT_TRUE(contains(by_sender.message, "expired")) << by_sender.message;
  const auto by_receiver = sender_error(certificates.issue("b"), certificates.issue("a", -60));
  EXPECT_EQ(by_receiver.code, ErrorCode::certificate_rejected) << by_receiver.message;
  EXPECT_TRUE(contains(by_receiver.message, "expired")) << by_receiver.message;
}

TEST_F(TlsHandshake, AnEngineWithAnotherNameIsRejected) {
  const auto wrong_receiver = sender_error(certificates.issue("c"), certificates.issue("a"));
  EXPECT_EQ(wrong_receiver.code, ErrorCode::certificate_rejected) << wrong_receiver.message;
  EXPECT_TRUE(contains(wrong_receiver.message, "hostname")) << wrong_receiver.message;
  // Says that it is a, shows a certificate of c.
  const auto wrong_sender = sender_error(certificates.issue("b"), certificates.issue("c"));
  EXPECT_EQ(wrong_sender.code, ErrorCode::certificate_rejected) << wrong_sender.message;
  EXPECT_TRUE(contains(wrong_sender.message, "does not name engine a")) << wrong_sender.message;
  // Is c with all papers, but the stream comes from a.
  const auto not_the_peer = sender_error(certificates.issue("b"), certificates.issue("c"),
                                         [](SenderOptions& options) { options.engine = "c"; });
  EXPECT_EQ(not_the_peer.code, ErrorCode::certificate_rejected) << not_the_peer.message;
  EXPECT_TRUE(contains(not_the_peer.message, "comes from engine a")) << not_the_peer.message;
}

TEST_F(TlsHandshake, APlainSenderIsRefusedByATlsPort) {
  const auto error = sender_error(certificates.issue("b"), std::nullopt);
  EXPECT_EQ(error.code, ErrorCode::link_lost) << error.message;
  EXPECT_TRUE(contains(last_refusal, "does not speak TLS")) << last_refusal;
}

TEST_F(TlsHandshake, ATlsSenderIsRefusedByAPlainPort) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port(), certificates.issue("a"));
  a.start_sender();
  EXPECT_EQ(a.await_link_error().code, ErrorCode::link_lost);
}

TEST_F(TlsHandshake, UnusableFilesAreNamed) {
  TlsFiles files = certificates.issue("b");
  files.key = certificates.directory() / "missing.key";
  ReceiverPort port({.engine = "b", .security = {.tls = files}});
  const auto started = port.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::certificate_unusable);
  EXPECT_TRUE(contains(started.error().message, "missing.key")) << started.error().message;
}

TEST_F(TlsHandshake, RenewedCertificatesAreTakenWithoutARestart) {
  const TlsFiles files = certificates.issue("b", -60);
  ReceivingEngine b(files);
  b.start_receiver();
  SendingEngine a(b.port.port(), certificates.issue("a"));
  a.start_sender();
  EXPECT_EQ(a.await_link_error().code, ErrorCode::certificate_rejected);
  certificates.issue("b");  // the same files, renewed
  ASSERT_TRUE(b.port.reload_certificates());
  EXPECT_TRUE(eventually([&] { return a.sender->status().connected; }));
  EXPECT_FALSE(a.sender->status().link_error);
}

TEST(Handshake, PlainTcpLeavesLoopbackNever) {
  ReceiverPort port({.engine = "b", .address = "0.0.0.0", .security = {.plain_on_loopback = true}});
  EXPECT_EQ(port.start().error().code, ErrorCode::invalid_request);
  ReceiverPort without({.engine = "b"});
  EXPECT_EQ(without.start().error().code, ErrorCode::invalid_request);
  SendingEngine a(1);
  a.start_sender([](SenderOptions& options) { options.host = "192.0.2.1"; });
  EXPECT_EQ(a.await_link_error().code, ErrorCode::invalid_request);
}

TEST(Handshake, AnUnknownStreamIsRefusedUntilItStarts) {
  ReceivingEngine b;
  SendingEngine a(b.port.port());
  a.start_sender();
  const auto error = a.await_link_error();
  EXPECT_EQ(error.code, ErrorCode::link_refused);
  EXPECT_TRUE(contains(error.message, "runs no receiver for stream stream01")) << error.message;
  b.start_receiver();
  EXPECT_TRUE(eventually([&] { return a.sender->status().connected; }));
}

TEST(Handshake, AnAbsentEngineIsUnreachable) {
  uint16_t port = 0;
  {
    port = port_of(listen_on("127.0.0.1", 0, true).value());
  }
  SendingEngine a(port);
  a.start_sender();
  EXPECT_EQ(a.await_link_error().code, ErrorCode::engine_unreachable);
  EXPECT_EQ(a.sender->await_receiver(1ms).error().code, ErrorCode::engine_unreachable);
}

TEST(Handshake, GarbageIsRefusedAndHarmsNobody) {
  ReceivingEngine b;
  b.start_receiver();
  const std::string http = "GET / HTTP/1.1\r\nHost: b\r\nUser-Agent: anybody\r\n\r\n";
  EXPECT_TRUE(talk_to(b.port.port(), std::as_bytes(std::span(http))).empty());
  auto damaged = make_message(sample_hello());
  damaged.back() ^= std::byte{1};
  EXPECT_TRUE(talk_to(b.port.port(), damaged).empty());
  EXPECT_TRUE(talk_to(b.port.port(), make_message(Heartbeat{.stamp = 1})).empty());
  EXPECT_EQ(b.port.gauges().refused, 3U);
  EXPECT_FALSE(b.receiver->status().connected);
}

TEST(Handshake, GarbageAfterTheHandshakeEndsTheConnectionOnly) {
  ReceivingEngine b;
  b.start_receiver();
  auto bytes = make_message(sample_hello());
  bytes.insert(bytes.end(), 64, std::byte{0xEE});
  // Bytes right behind HELLO are bytes before WELCOME: a sender waits for it.
  talk_to(b.port.port(), bytes);
  ASSERT_TRUE(eventually([&] { return b.port.gauges().refused == 1; }));
  SendingEngine a(b.port.port());
  a.start_sender();
  NumberedProducer producer(*a.queue, 0, 100);
  NumberedChecker checker(*b.queue, 0, 100);
  EXPECT_TRUE(checker.finish());
}

TEST(Handshake, APeerThatSaysNothingIsDropped) {
  ReceiverPort port({.engine = "b", .security = {.plain_on_loopback = true}, .handshake_timeout = 20ms});
  ASSERT_TRUE(port.start());
  std::vector<base::File> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(begin_connect(loopback(port.port()), true, 0).value());
  EXPECT_TRUE(eventually([&] { return port.gauges().refused == 5; }));
}

TEST_F(TlsHandshake, AFloodOfPeersThatSayNothingKeepsNobodyOut) {
  ReceivingEngine b(certificates.issue("b"));
  b.start_receiver();
  std::vector<base::File> silent;  // for the 10 s that a handshake may take
  const std::array<std::byte, 3> begun{std::byte{0x16}, std::byte{0x03}, std::byte{0x01}};  // of a TLS record
  for (int i = 0; i < 200; ++i) {
    silent.push_back(begin_connect(loopback(b.port.port()), true, 0).value());
    static_cast<void>(::send(silent.back().descriptor(), begun.data(), begun.size(), MSG_NOSIGNAL));
  }
  SendingEngine a(b.port.port(), certificates.issue("a"));
  const auto started = std::chrono::steady_clock::now();
  a.start_sender();
  EXPECT_TRUE(eventually([&] { return a.sender->status().connected; }));
  EXPECT_LT(std::chrono::steady_clock::now() - started, 8s);
  // One that makes room is counted once its own thread has ended it.
  EXPECT_TRUE(eventually([&] { return b.port.gauges().refused >= 100; }));
}

}  // namespace
}  // namespace thalweg::propagation
