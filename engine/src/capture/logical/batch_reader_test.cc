#include "capture/logical/batch_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "capture/logical/pgoutput_bytes.h"

namespace thalweg::capture {
namespace {

using base::ErrorCode;

// PgoutputBytes begins with a letter; a batch begins with its version.
PgoutputBytes batch() { return PgoutputBytes('\2'); }

TEST(BatchReader, GivesEachMessageWithItsPosition) {
  const auto bytes = batch().u32(3).u64(0x1'0000'0010).raw("abc").u32(0).u64(0).u32(1).u64(7).raw("d");
  BatchReader reader(bytes);
  const auto first = reader.next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->lsn, base::Lsn{0x1'0000'0010});
  EXPECT_EQ((*first)->bytes.size(), 3u);
  EXPECT_EQ((*first)->bytes[2], std::byte{'c'});
  const auto second = reader.next();
  ASSERT_TRUE(second && *second);
  EXPECT_FALSE((*second)->lsn);
  EXPECT_TRUE((*second)->bytes.empty());
  EXPECT_EQ((*reader.next())->bytes[0], std::byte{'d'});
  const auto end = reader.next();
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
}

TEST(BatchReader, AnEmptyBatchIsRefused) {
  EXPECT_EQ(BatchReader({}).next().error().code, ErrorCode::protocol_violation);
}

TEST(BatchReader, AnotherVersionIsNamed) {
  for (const char version : {'\0', '\5'}) {
    const auto bytes = PgoutputBytes(version).u32(0).u64(0);
    const auto refused = BatchReader(bytes).next();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::protocol_violation);
    EXPECT_NE(refused.error().message.find("; this engine knows 1 to 4"), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(BatchReader(PgoutputBytes('\1').u32(0).u64(0)).next());
}

TEST(BatchReader, EveryCutIsNoticed) {
  const auto whole = batch().u32(2).u64(9).raw("ab").u32(1).u64(9).raw("c").bytes();
  for (size_t length = 1; length < whole.size(); ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    BatchReader reader(cut);
    auto message = reader.next();
    while (message && *message) message = reader.next();
    const bool between_messages = length == 1 || length == 15;
    EXPECT_EQ(message.has_value(), between_messages) << length;
  }
}

TEST(BatchReader, ALengthBeyondTheBatchIsRefused) {
  const auto bytes = batch().u32(0xFFFF'FFFF).u64(9).raw("abc");
  const auto refused = BatchReader(bytes).next();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("4294967295 bytes"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace thalweg::capture
