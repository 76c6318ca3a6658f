#include "capture/logical/pgoutput_parser.h"

#include <gtest/gtest.h>

#include "capture/logical/pgoutput_bytes.h"

namespace thalweg::capture {
namespace {

using base::ErrorCode;

// Every kind of message, in an order that the protocol allows.
std::vector<PgoutputBytes> conversation() {
  return {
      begin_bytes(7),
      PgoutputBytes('O').u64(0x90).text("origin"),
      PgoutputBytes('Y').u32(70'000).text("public").text("mood"),
      relation_bytes(0, 16'400, "t", {"a", "b"}),
      insert_bytes(0, 16'400, {"1", "x"}),
      PgoutputBytes('U').u32(16'400).raw("K").tuple({"1", std::string(1, '\0')}).raw("N").tuple({"2", "x"}),
      PgoutputBytes('U').u32(16'400).raw("N").tuple({"2", "y"}),
      PgoutputBytes('D').u32(16'400).raw("O").tuple({"2", "y"}),
      PgoutputBytes('T').u32(1).u8(3).u32(16'400),
      PgoutputBytes('M').u8(1).u64(0x95).text("prefix").u32(3).raw("abc"),
      commit_bytes(),
      PgoutputBytes('M').u8(0).u64(0x150).text("prefix").u32(0),
      PgoutputBytes('S').u32(8).u8(1),
      relation_bytes(8, 16'400, "t", {"a", "b"}),
      insert_bytes(9, 16'400, {"3", "z"}),
      PgoutputBytes('M').u32(8).u8(1).u64(0x195).text("p").u32(1).raw("a"),
      PgoutputBytes('E'),
      PgoutputBytes('A').u32(8).u32(9),
      PgoutputBytes('k').u32(8).u32(2).u32(10).u32(11),
      PgoutputBytes('c').u32(8).u8(0).u64(0x200).u64(0x240).u64(2'000'000),
  };
}

TEST(PgoutputParser, ReadsEveryKind) {
  PgoutputParser parser;
  std::vector<PgoutputMessage> messages;
  const auto bytes = conversation();
  for (const auto& message : bytes) {
    const auto parsed = parser.parse(message);
    ASSERT_TRUE(parsed) << parsed.error().message;
    messages.push_back(**parsed);
  }
  EXPECT_EQ(messages[0].xid, base::Xid{7});
  EXPECT_EQ(messages[0].commit_lsn, base::Lsn{0x100});
  EXPECT_EQ(messages[0].commit_time.value, base::kPostgresEpochMicros + 1'000'000);
  const auto& table = messages[3].table;
  EXPECT_EQ(table.schema_name + "." + table.table_name, "public.t");
  EXPECT_EQ(table.replica_identity, 'd');
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_TRUE(table.columns[0].is_key);
  EXPECT_FALSE(table.columns[1].is_key);
  EXPECT_EQ(table.columns[1].type_modifier, -1);
  EXPECT_EQ(messages[4].relation, base::RelationId{16'400});
  EXPECT_EQ(messages[4].xid, base::Xid{7});
  EXPECT_TRUE(messages[4].old_tuple.empty());
  EXPECT_EQ(messages[5].old_flags, lcr::kOldKey);
  EXPECT_FALSE(messages[5].new_tuple.empty());
  EXPECT_EQ(messages[6].old_flags, 0);
  EXPECT_EQ(messages[7].old_flags, lcr::kOldRow);
  EXPECT_EQ(messages[8].truncate_flags, lcr::kCascade | lcr::kRestartIdentity);
  EXPECT_EQ(messages[8].truncated, std::vector<base::RelationId>{{16'400}});
  EXPECT_EQ(messages[10].end_lsn, base::Lsn{0x140});
  EXPECT_EQ(messages[14].xid, base::Xid{9});
  EXPECT_EQ(messages[17].subxid, base::Xid{9});
  EXPECT_EQ(messages[18].subxids, (std::vector<base::Xid>{{10}, {11}}));
  EXPECT_EQ(messages[19].kind, MessageKind::stream_commit);
  EXPECT_FALSE(parser.in_transaction());
}

TEST(PgoutputParser, RefusesEveryCutAndEveryAddition) {
  const auto bytes = conversation();
  for (size_t broken = 0; broken < bytes.size(); ++broken) {
    const std::span<const std::byte> whole = bytes[broken];
    for (size_t length = 0; length <= whole.size() + 1; ++length) {
      if (length == whole.size()) continue;
      PgoutputParser parser;
      for (size_t i = 0; i < broken; ++i) ASSERT_TRUE(parser.parse(bytes[i]));
      std::vector<std::byte> changed(whole.begin(), whole.begin() + static_cast<long>(std::min(length, whole.size())));
      changed.resize(length);
      const auto parsed = parser.parse(changed);
      ASSERT_FALSE(parsed) << "message " << broken << " of " << whole.size() << " bytes taken at " << length;
      EXPECT_EQ(parsed.error().code, ErrorCode::protocol_violation);
    }
  }
}

TEST(PgoutputParser, RefusesMessagesAtTheWrongPlace) {
  const auto refused = [](std::initializer_list<PgoutputBytes> before, const PgoutputBytes& last) {
    PgoutputParser parser;
    for (const auto& message : before) EXPECT_TRUE(parser.parse(message));
    return !parser.parse(last).has_value();
  };
  const auto stream_start = PgoutputBytes('S').u32(8).u8(1);
  EXPECT_TRUE(refused({}, insert_bytes(0, 1, {"1"})));
  EXPECT_TRUE(refused({}, relation_bytes(0, 1, "t", {"a"})));
  EXPECT_TRUE(refused({}, commit_bytes()));
  EXPECT_TRUE(refused({}, PgoutputBytes('E')));
  EXPECT_TRUE(refused({begin_bytes(7)}, begin_bytes(8)));
  EXPECT_TRUE(refused({begin_bytes(7)}, stream_start));
  EXPECT_TRUE(refused({begin_bytes(7)}, PgoutputBytes('A').u32(8).u32(9)));
  EXPECT_TRUE(refused({stream_start}, commit_bytes()));
  EXPECT_TRUE(refused({stream_start}, stream_start));
  EXPECT_TRUE(refused({}, begin_bytes(0)));
}

TEST(PgoutputParser, RefusesOtherVersionsAndNonsense) {
  for (const char kind : {'b', 'P', 'K', 'r', 'p', '\0', '\xff', 'z'}) {
    PgoutputParser parser;
    EXPECT_EQ(parser.parse(PgoutputBytes(kind).u32(1)).error().code, ErrorCode::protocol_violation);
  }
  PgoutputParser parser;
  ASSERT_TRUE(parser.parse(begin_bytes(7)));
  EXPECT_FALSE(parser.parse(PgoutputBytes('R').u32(1).text("s").text("t").raw("q").u16(0)));  // replica identity q
}

}  // namespace
}  // namespace thalweg::capture
