// Sender and receiver together, over real sockets: everything arrives, in order, once, whatever happens between them.

#include <gtest/gtest.h>

#include "propagation/cutting_proxy.h"
#include "propagation/propagation_harness.h"

namespace thalweg::propagation {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kFrames = 40'000;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr uint64_t kFrames = 40'000;
#else
constexpr uint64_t kFrames = 200'000;
#endif
#else
constexpr uint64_t kFrames = 200'000;
#endif

struct Shape {
  bool tls;
  Compression compression;
};

class PropagationShapes : public testing::TestWithParam<Shape> {};

TEST_P(PropagationShapes, EveryFrameArrivesInOrderAndUnchanged) {
  TestCertificates certificates;
  const bool tls = GetParam().tls;
  ReceivingEngine b(tls ? std::optional(certificates.issue("b")) : std::nullopt);
  b.start_receiver();
  SendingEngine a(b.port.port(), tls ? std::optional(certificates.issue("a")) : std::nullopt);
  a.start_sender([](SenderOptions& options) { options.compression = GetParam().compression; });
  const auto durable = a.sender->await_receiver(kPatience);
  ASSERT_TRUE(durable) << durable.error().message;
  EXPECT_EQ(*durable, base::Lsn{0x42});
  NumberedProducer producer(*a.queue, 0, kFrames);
  NumberedChecker checker(*b.queue, 0, kFrames);
  EXPECT_TRUE(checker.finish()) << "stopped at " << checker.seen();
  producer.join();
  // Drained: everything acknowledged, then both threads end by themselves.
  a.sender->request_stop(true);
  a.sender->join();
  const auto sample = a.sender->sample();
  EXPECT_EQ(counter_of(sample, "lcrs"), kFrames - kFrames / 10);
  EXPECT_EQ(counter_of(sample, "lcrs"), counter_of(b.receiver->sample(), "lcrs"));
  EXPECT_EQ(counter_of(sample, "bytes"), counter_of(b.receiver->sample(), "bytes"));
  EXPECT_EQ(counter_of(sample, "batches_resent"), 0U);
  EXPECT_EQ(gauge_of(sample, "window_used_bytes"), 0);
  if (GetParam().compression != Compression::none) {
    EXPECT_LT(counter_of(sample, "packed_bytes"), counter_of(sample, "bytes") * 3 / 4);
  }
  EXPECT_FALSE(a.sender->status().running);
  EXPECT_FALSE(a.sender->status().error);
}

INSTANTIATE_TEST_SUITE_P(Links, PropagationShapes,
                         testing::Values(Shape{true, Compression::none}, Shape{true, Compression::lz4},
                                         Shape{true, Compression::zstd}, Shape{false, Compression::none}));

TEST(Propagation, AFrameLargerThanQueueAndWindowPasses) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender([](SenderOptions& options) { options.compression = Compression::lz4; });
  ASSERT_TRUE(a.sender->await_receiver(kPatience));
  constexpr size_t kLarge = size_t{9} << 20;
  NumberedProducer producer(*a.queue, 4'990, 5'010, kLarge);
  NumberedChecker checker(*b.queue, 4'990, 5'010, kLarge);
  EXPECT_TRUE(checker.finish()) << "stopped at " << checker.seen();
}

class PropagationCuts : public testing::TestWithParam<uint64_t> {};

TEST_P(PropagationCuts, NothingIsLostAndNothingComesTwice) {
  const uint64_t seed = GetParam();
  TestCertificates certificates;
  const bool tls = seed % 2 == 0;
  ReceivingEngine b(tls ? std::optional(certificates.issue("b")) : std::nullopt);
  b.start_receiver();
  CuttingProxy proxy(b.port.port(), seed);
  proxy.cut_after(150'000);
  SendingEngine a(proxy.port(), tls ? std::optional(certificates.issue("a")) : std::nullopt);
  a.start_sender([seed](SenderOptions& options) {
    options.compression = static_cast<Compression>(seed % 3);
    options.batch_bytes = seed % 4 == 0 ? 4096 : 32'768;
  });
  constexpr uint64_t kCutFrames = 12'000;
  NumberedProducer producer(*a.queue, 0, kCutFrames);
  NumberedChecker checker(*b.queue, 0, kCutFrames);
  EXPECT_TRUE(checker.finish()) << "seed " << seed << " stopped at " << checker.seen();
  EXPECT_FALSE(a.sender->status().error);
  EXPECT_FALSE(b.receiver->status().error);
  proxy.cut_after(0);
  a.sender->request_stop(true);
  a.sender->join();
  EXPECT_EQ(counter_of(a.sender->sample(), "lcrs"), counter_of(b.receiver->sample(), "lcrs"));
  EXPECT_GT(proxy.cuts(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PropagationCuts, testing::Range<uint64_t>(1, 25));

TEST(Propagation, ASlowReceiverHoldsTheSenderBackWithinItsBounds) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender();
  NumberedChecker checker(*b.queue, 0, kFrames);
  checker.pause(true);
  NumberedProducer producer(*a.queue, 0, kFrames);
  // Both queues, the window and the sockets fill; then the producer waits.
  ASSERT_TRUE(eventually([&] { return a.sender->status().state == std::string_view("PAUSED FOR FLOW CONTROL"); }));
  ASSERT_TRUE(eventually([&] { return b.receiver->status().state == std::string_view("PAUSED FOR FLOW CONTROL"); }));
  const auto sample = a.sender->sample();
  EXPECT_LE(gauge_of(sample, "window_used_bytes"), gauge_of(sample, "window_bytes"));
  EXPECT_EQ(gauge_of(sample, "window_bytes"), 4 << 20);
  EXPECT_LT(producer.enqueued(), kFrames);
  // Held back for longer than the peer timeout of a dead link would last, the link stands.
  const uint64_t acknowledgements = counter_of(a.sender->sample(), "acknowledgements");
  ASSERT_TRUE(eventually([&] { return counter_of(a.sender->sample(), "acknowledgements") > acknowledgements + 3; }));
  EXPECT_EQ(a.sender->status().breaks, 0U);
  checker.pause(false);
  EXPECT_TRUE(checker.finish());
  const auto time = a.sender->sample().time_ns.value();
  EXPECT_GT(time[static_cast<size_t>(telemetry::Activity::flow_control)], 0U);
}

TEST(Propagation, AConnectionThatBreaksWhileTheQueueIsFullIsMended) {
  ReceivingEngine b;
  b.start_receiver();
  CuttingProxy proxy(b.port.port());
  SendingEngine a(proxy.port());
  a.start_sender([](SenderOptions& options) { options.compression = Compression::zstd; });
  NumberedChecker checker(*b.queue, 0, 60'000);
  checker.pause(true);
  NumberedProducer producer(*a.queue, 0, 60'000);
  ASSERT_TRUE(eventually([&] { return b.receiver->status().state == std::string_view("PAUSED FOR FLOW CONTROL"); }));
  for (uint64_t cut = 1; cut <= 3; ++cut) {
    proxy.cut();
    ASSERT_TRUE(eventually([&] { return a.sender->status().breaks >= cut && a.sender->status().connected; }));
  }
  checker.pause(false);
  EXPECT_TRUE(checker.finish()) << "stopped at " << checker.seen();
}

TEST(Propagation, DurableComesBackAndNeverGoesDown) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender();
  EXPECT_EQ(a.sender->await_receiver(kPatience).value(), base::Lsn{0x42});
  b.durable = 0x1000;
  ASSERT_TRUE(eventually([&] { return a.sender->durable() == base::Lsn{0x1000}; }));  // on an idle link
  b.durable = 0x900;
  const uint64_t acknowledgements = counter_of(a.sender->sample(), "acknowledgements");
  ASSERT_TRUE(eventually([&] { return counter_of(a.sender->sample(), "acknowledgements") > acknowledgements + 2; }));
  EXPECT_EQ(a.sender->durable(), base::Lsn{0x1000});
  ASSERT_TRUE(eventually([&] { return gauge_of(a.sender->sample(), "round_trip_us") > 0; }));
}

TEST(Propagation, ARestartedReceiverAsksForANewPipeline) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender();
  ASSERT_TRUE(a.sender->await_receiver(kPatience));
  {
    NumberedProducer producer(*a.queue, 0, 1'000);
    NumberedChecker checker(*b.queue, 0, 1'000);
    ASSERT_TRUE(checker.finish());
  }
  b.durable = 0x2000;
  b.start_receiver();  // its queue is lost
  ASSERT_TRUE(eventually([&] { return !a.sender->status().running; }));
  ASSERT_TRUE(a.sender->status().error);
  EXPECT_EQ(a.sender->status().error->code, ErrorCode::receiver_restarted);
  EXPECT_FALSE(b.receiver->status().error);  // it waits for the new session and need not start over again
  a.start_sender();
  EXPECT_EQ(a.sender->await_receiver(kPatience).value(), base::Lsn{0x2000});
  NumberedProducer producer(*a.queue, 500, 2'000);
  NumberedChecker checker(*b.queue, 500, 2'000);
  EXPECT_TRUE(checker.finish());
}

TEST(Propagation, ARestartedSenderBeginsANewSession) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender();
  ASSERT_TRUE(a.sender->await_receiver(kPatience));
  {
    NumberedProducer producer(*a.queue, 0, 1'000);
    NumberedChecker checker(*b.queue, 0, 1'000);
    ASSERT_TRUE(checker.finish());
  }
  a.start_sender();
  ASSERT_TRUE(eventually([&] { return !b.receiver->status().running; }));
  ASSERT_TRUE(b.receiver->status().error);
  EXPECT_EQ(b.receiver->status().error->code, ErrorCode::sender_restarted);
  EXPECT_EQ(a.await_link_error().code, ErrorCode::link_refused);
  b.start_receiver();
  ASSERT_TRUE(a.sender->await_receiver(kPatience) || eventually([&] { return a.sender->status().connected; }));
  NumberedProducer producer(*a.queue, 700, 2'000);
  NumberedChecker checker(*b.queue, 700, 2'000);
  EXPECT_TRUE(checker.finish());
  EXPECT_FALSE(a.sender->status().link_error);
}

TEST(Propagation, ASenderThatNeverSentMayBeReplacedWithoutStartingOver) {
  ReceivingEngine b;
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender();
  ASSERT_TRUE(a.sender->await_receiver(kPatience));
  a.start_sender();
  ASSERT_TRUE(a.sender->await_receiver(kPatience));
  EXPECT_FALSE(b.receiver->status().error);
}

// After a failover of the source: what the receiver's apply has was compared with the timeline before.
TEST(Propagation, ASenderOnAnotherTimelineOfTheSourceHasTheReceiverStartOver) {
  const auto receives_on = [](uint32_t timeline) {
    return [timeline](ReceiverOptions& options) { options.timeline = timeline; };
  };
  ReceivingEngine b;
  b.start_receiver(receives_on(1));
  SendingEngine a(b.port.port());
  a.start_sender([](SenderOptions& options) { options.timeline = 2; });
  ASSERT_TRUE(eventually([&] { return !b.receiver->status().running; }));
  ASSERT_TRUE(b.receiver->status().error);
  EXPECT_EQ(b.receiver->status().error->code, ErrorCode::sender_restarted);
  EXPECT_TRUE(b.receiver->status().error->message.contains("timeline 2")) << b.receiver->status().error->message;
  EXPECT_FALSE(a.sender->status().connected);
  b.durable = 0x2000;
  b.start_receiver(receives_on(2));
  ASSERT_TRUE(eventually([&] { return a.sender->status().connected; }));
  EXPECT_EQ(a.sender->durable(), base::Lsn{0x2000});
  for (const uint32_t untold : {0, 3}) {  // an earlier engine's, on either side
    b.start_receiver(receives_on(untold == 0 ? 2 : 0));
    a.start_sender([&](SenderOptions& options) { options.timeline = untold; });
    EXPECT_TRUE(a.sender->await_receiver(kPatience));
    EXPECT_FALSE(b.receiver->status().error);
  }
}

TEST(Propagation, ASilentPeerIsGivenUpByBothSides) {
  ReceivingEngine b;
  b.start_receiver([](ReceiverOptions& options) { options.peer_timeout = 300ms; });
  CuttingProxy proxy(b.port.port());
  SendingEngine a(proxy.port());
  a.start_sender([](SenderOptions& options) { options.peer_timeout = 300ms; });
  NumberedProducer producer(*a.queue, 0, 3'000);
  NumberedChecker checker(*b.queue, 0, 6'000);
  ASSERT_TRUE(eventually([&] { return checker.seen() == 3'000; }));
  proxy.freeze(true);
  // More than once where a busy machine has kept either of them silent for so long by itself.
  ASSERT_TRUE(eventually([&] { return a.sender->status().breaks >= 1 && b.receiver->status().breaks >= 1; }));
  EXPECT_EQ(a.await_link_error().code, ErrorCode::engine_unreachable);
  ASSERT_TRUE(b.receiver->status().link_error);
  EXPECT_EQ(b.receiver->status().link_error->code, ErrorCode::engine_unreachable);
  producer.join();
  proxy.freeze(false);
  proxy.cut();
  NumberedProducer more(*a.queue, 3'000, 6'000);
  EXPECT_TRUE(checker.finish()) << "stopped at " << checker.seen();
}

TEST(Propagation, StreamsShareOnePort) {
  ReceivingEngine b;
  b.start_receiver();
  base::SystemClock clock;
  queue::LcrQueue second_queue(small_queue());
  Receiver second({.stream_id = "stream02",
                   .engine = "b",
                   .peer_engine = "a",
                   .queue = &second_queue,
                   .durable = [] { return base::Lsn{7}; },
                   .clock = &clock});
  ASSERT_TRUE(second.start(b.port));
  Receiver duplicate({.stream_id = "stream02",
                      .engine = "b",
                      .peer_engine = "a",
                      .queue = &second_queue,
                      .durable = [] { return base::Lsn{7}; },
                      .clock = &clock});
  EXPECT_EQ(duplicate.start(b.port).error().code, ErrorCode::invalid_request);
  SendingEngine a1(b.port.port());
  a1.start_sender();
  SendingEngine a2(b.port.port());
  a2.start_sender([](SenderOptions& options) { options.stream_id = "stream02"; });
  NumberedProducer producer1(*a1.queue, 0, 5'000);
  NumberedProducer producer2(*a2.queue, 100'000, 105'000);
  NumberedChecker checker1(*b.queue, 0, 5'000);
  NumberedChecker checker2(second_queue, 100'000, 105'000);
  EXPECT_TRUE(checker1.finish());
  EXPECT_TRUE(checker2.finish());
}

}  // namespace
}  // namespace thalweg::propagation
