// Engines of different versions: what they have in common is used, and where there is nothing, both sides say so.

#include <gtest/gtest.h>

#include "propagation/propagation_harness.h"
#include "propagation/scripted_peers.h"

namespace thalweg::propagation {
namespace {

using base::ErrorCode;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Versions, UnknownOnesAreRefusedAndBothSidesSayWhich) {
  ReceivingEngine b({}, {.lowest = 1, .highest = 1});
  b.start_receiver();
  SendingEngine a(b.port.port());
  a.start_sender([](SenderOptions& options) { options.versions = {.lowest = 2, .highest = 3}; });
  const std::string_view expected = "engine b speaks propagation protocol 1 to 1, engine a speaks 2 to 3";
  const auto error = a.await_link_error();
  EXPECT_EQ(error.code, ErrorCode::link_version_unsupported);
  EXPECT_TRUE(contains(error.message, expected)) << error.message;
  // The receiving side writes it down once it has answered.
  EXPECT_TRUE(eventually([&] { return contains(b.port.gauges().last_refusal, expected); }));
  EXPECT_TRUE(eventually([&] { return b.receiver->status().link_error.has_value(); }));
  const auto at_receiver = b.receiver->status().link_error;
  ASSERT_TRUE(at_receiver);
  EXPECT_EQ(at_receiver->code, ErrorCode::link_version_unsupported);
  EXPECT_TRUE(contains(at_receiver->message, expected)) << at_receiver->message;
  // The sending engine is downgraded: the link comes up, and the receiver's error goes.
  a.start_sender();
  EXPECT_TRUE(a.sender->await_receiver(kPatience));
  EXPECT_TRUE(eventually([&] { return b.receiver->status().connected; }));
  EXPECT_FALSE(b.receiver->status().link_error);
}

TEST(Versions, AdjacentOnesTalk) {
  for (const auto& [ours, theirs] : {std::pair<ProtocolVersions, ProtocolVersions>{{1, 2}, {1, 1}}, {{1, 1}, {1, 2}}}) {
    ReceivingEngine b({}, theirs);
    b.start_receiver();
    SendingEngine a(b.port.port());
    a.start_sender([&](SenderOptions& options) { options.versions = ours; });
    ASSERT_TRUE(a.sender->await_receiver(kPatience));
    NumberedProducer producer(*a.queue, 0, 100);
    NumberedChecker checker(*b.queue, 0, 100);
    EXPECT_TRUE(checker.finish());
  }
}

// A receiver that does not know them would take them for corrupt.
TEST(Versions, PartitionsAreNamedToThoseWhoKnowThem) {
  for (const uint16_t highest : {1, 2, 3}) {
    ReceivingEngine b({}, {.lowest = 1, .highest = highest});
    b.start_receiver();
    SendingEngine a(b.port.port());
    a.start_sender();
    ASSERT_TRUE(a.sender->await_receiver(kPatience));
    const auto frames = {
        lcr::make_partition_frame({7}, {}, 0, {0x90}, {1}, {{2}, "public", "leaf"}),
        lcr::make_partition_frame({7}, {}, lcr::kPartitionTruncated, {0x90}, {1}, {{2}, "public", "leaf"}),
        lcr::make_commit_frame({7}, false, {.commit_lsn = {0x98}, .end_lsn = {0xA0}, .commit_time = {}})};
    for (const auto& frame : frames) {
      std::memcpy(a.queue->reserve(frame.size(), kPatience).data(), frame.data(), frame.size());
      a.queue->enqueue();
    }
    a.queue->flush();
    std::vector<std::pair<lcr::FrameKind, bool>> came;
    while (came.empty() || came.back().first != lcr::FrameKind::commit) {
      const std::byte* const frame = b.queue->browse(0, kPatience);
      ASSERT_NE(frame, nullptr);
      const auto view = lcr::FrameView::trusted(frame);
      came.emplace_back(view.kind(), view.has(lcr::kPartitionTruncated));
      b.queue->dequeue(0);
    }
    std::vector<std::pair<lcr::FrameKind, bool>> wanted;
    if (highest >= kVersionWithPartitions) wanted.emplace_back(lcr::FrameKind::partition, false);
    if (highest >= kVersionWithTruncatedPartitions) wanted.emplace_back(lcr::FrameKind::partition, true);
    wanted.emplace_back(lcr::FrameKind::commit, false);
    EXPECT_EQ(came, wanted);
  }
}

TEST(Versions, ALaterSendersLongerHelloIsWelcomedInOurVersion) {
  ReceivingEngine b;
  b.start_receiver();
  const auto answer = talk_to(b.port.port(), lengthened(make_message(sample_hello({.lowest = 1, .highest = 6}))), 16);
  const auto message = parse_message(answer);
  ASSERT_TRUE(message) << message.error().message;
  ASSERT_TRUE(std::holds_alternative<Welcome>(*message));
  EXPECT_EQ(std::get<Welcome>(*message).version, ProtocolVersions{}.highest);
}

TEST(Versions, AMuchLaterSendersHelloIsRefusedWithOurRange) {
  ReceivingEngine b;
  b.start_receiver();
  const auto answer = talk_to(b.port.port(), lengthened(make_message(sample_hello({.lowest = 7, .highest = 9}))));
  const auto message = parse_message(answer);
  ASSERT_TRUE(message) << message.error().message;
  ASSERT_TRUE(std::holds_alternative<Refuse>(*message));
  const Refuse& refuse = std::get<Refuse>(*message);
  EXPECT_EQ(refuse.reason, RefusalReason::version);
  EXPECT_EQ(refuse.versions.lowest, ProtocolVersions{}.lowest);
  EXPECT_EQ(refuse.versions.highest, ProtocolVersions{}.highest);
}

Welcome sample_welcome(uint16_t version) {
  return {.version = version,
          .compressions = 1,
          .receiver_session = 9,
          .next_sequence = 1,
          .durable = {0x42},
          .clock = {1}};
}

TEST(Versions, ALaterReceiversLongerWelcomeIsUnderstood) {
  const ScriptedReceiver b(lengthened(make_message(sample_welcome(1))));
  SendingEngine a(b.port());
  a.start_sender();
  const auto start = a.sender->await_receiver(kPatience);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->value, 0x42U);
}

TEST(Versions, ALaterReceiversLongerRefusalIsUnderstood) {
  const ScriptedReceiver b(lengthened(make_message(
      Refuse{.versions = {.lowest = 2, .highest = 3}, .reason = RefusalReason::version, .text = "b speaks 2 to 3"})));
  SendingEngine a(b.port());
  a.start_sender();
  const auto error = a.await_link_error();
  EXPECT_EQ(error.code, ErrorCode::link_version_unsupported);
  EXPECT_TRUE(contains(error.message, "b speaks 2 to 3")) << error.message;
}

TEST(Versions, AVersionThatNobodyOfferedIsRefusedByTheSender) {
  const ScriptedReceiver b(make_message(sample_welcome(4)));
  SendingEngine a(b.port());
  a.start_sender();
  const auto error = a.await_link_error();
  EXPECT_EQ(error.code, ErrorCode::link_version_unsupported);
  EXPECT_TRUE(contains(error.message, "chose protocol version 4, this engine speaks 1 to 3")) << error.message;
  EXPECT_FALSE(a.sender->status().connected);
}

}  // namespace
}  // namespace thalweg::propagation
