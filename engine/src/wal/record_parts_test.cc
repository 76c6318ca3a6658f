#include "wal/record_parts.h"

#include <gtest/gtest.h>

#include <string>

namespace thalweg::wal {
namespace {

// Bodies, field by field as they lie in the WAL.
class Body {
 public:
  Body& u8(uint8_t value) { return raw({reinterpret_cast<const char*>(&value), sizeof value}); }
  Body& u16(uint16_t value) { return raw({reinterpret_cast<const char*>(&value), sizeof value}); }
  Body& u32(uint32_t value) { return raw({reinterpret_cast<const char*>(&value), sizeof value}); }
  Body& raw(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  Body& file(uint32_t number) { return u32(1663).u32(5).u32(number); }
  base::Result<void> parse(RecordParts& parts, int version = 15) const {
    WalRecord record;
    record.begin = {0x1234};
    record.body = std::as_bytes(std::span{bytes_});
    for (const WalFormat& format : wal_formats()) {
      if (format.version == version) return parts.parse(record, format);
    }
    return base::fail(base::ErrorCode::unsupported_version, "");
  }

 private:
  std::string bytes_;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(RecordPartsTest, BlocksWithDataAndTheRecordsOwn) {
  RecordParts parts;
  const Body body = Body()
                        .u8(0)
                        .u8(0x20)
                        .u16(3)
                        .file(16384)
                        .u32(7)  // a block of the main fork, with data
                        .u8(2)
                        .u8(0x40 | 0x80 | 2)
                        .u16(0)
                        .u32(9)  // the same file's visibility map, made anew
                        .u8(253)
                        .u16(11)
                        .u8(252)
                        .u32(1234)  // origin and top-level transaction
                        .u8(255)
                        .u8(4)
                        .raw("abc")
                        .raw("main");
  const auto parsed = body.parse(parts);
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parts.blocks().size(), 2U);
  const BlockReference& first = parts.blocks()[0];
  EXPECT_EQ(first.file, (RelationFile{1663, 5, 16384}));
  EXPECT_EQ(std::tuple(first.block, first.fork, first.has_image, text(first.data)),
            std::tuple(7U, Fork::main, false, "abc"));
  const BlockReference* const third = parts.block(2);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(third->file, first.file);
  EXPECT_EQ(std::tuple(third->block, third->fork, third->is_initialised, third->has_data),
            std::tuple(9U, Fork::visibility_map, true, false));
  EXPECT_EQ(parts.block(1), nullptr);
  EXPECT_EQ(text(parts.data()), "main");
  EXPECT_EQ(parts.origin(), 11);
  EXPECT_EQ(parts.top_level_xid(), base::Xid{1234});
}

TEST(RecordPartsTest, ImagesWithHolesAndCompression) {
  const std::string image(kPageBytes - 100, 'i');
  RecordParts parts;
  const Body whole =
      Body().u8(0).u8(0x10).u16(0).u16(kPageBytes - 100).u16(40).u8(0x01 | 0x02).file(1).u32(0).raw(image);
  ASSERT_TRUE(whole.parse(parts));
  EXPECT_EQ(parts.blocks()[0].image.hole_bytes, 100);
  EXPECT_EQ(parts.blocks()[0].image.hole_offset, 40);
  EXPECT_TRUE(parts.blocks()[0].image.applies);
  EXPECT_TRUE(text(parts.blocks()[0].image.bytes) == image);
  EXPECT_EQ(parts.image_bytes(), image.size());
  // The same flags of another version mean something else: 0x02 is pglz in 14.
  const Body compressed =
      Body().u8(0).u8(0x10).u16(0).u16(3).u16(40).u8(0x01 | 0x02).u16(100).file(1).u32(0).raw("zip");
  ASSERT_TRUE(compressed.parse(parts, 14));
  EXPECT_EQ(parts.blocks()[0].image.compression, Compression::pglz);
  EXPECT_FALSE(compressed.parse(parts, 15));
  for (const auto& [flag, compression] :
       {std::pair{0x04, Compression::pglz}, std::pair{0x08, Compression::lz4}, std::pair{0x10, Compression::zstd}}) {
    ASSERT_TRUE(Body()
                    .u8(0)
                    .u8(0x10)
                    .u16(0)
                    .u16(3)
                    .u16(40)
                    .u8(static_cast<uint8_t>(0x01 | flag))
                    .u16(100)
                    .file(1)
                    .u32(0)
                    .raw("zip")
                    .parse(parts, 18));
    EXPECT_EQ(parts.blocks()[0].image.compression, compression);
    EXPECT_FALSE(parts.blocks()[0].image.applies);
  }
}

TEST(RecordPartsTest, RefusesWhatDoesNotFit) {
  RecordParts parts;
  const auto block = [] { return Body().u8(0).u8(0x20).u16(3).file(1).u32(0); };
  ASSERT_TRUE(block().raw("abc").parse(parts));
  EXPECT_FALSE(block().raw("ab").parse(parts)) << "too few bytes";
  EXPECT_FALSE(block().raw("abcd").parse(parts)) << "too many";
  EXPECT_FALSE(Body().u8(0).u8(0xA0).u16(3).u32(0).raw("abc").parse(parts)) << "the same file as none before";
  EXPECT_FALSE(Body().u8(0).u8(0x20).u16(0).file(1).u32(0).parse(parts)) << "data of no bytes";
  EXPECT_FALSE(Body().u8(0).u8(0).u16(3).file(1).u32(0).raw("abc").parse(parts)) << "bytes of no data";
  EXPECT_FALSE(Body().u8(0).u8(0x05).u16(0).file(1).u32(0).parse(parts)) << "no such fork";
  EXPECT_FALSE(Body().u8(1).u8(0).u16(0).file(1).u32(0).u8(1).u8(0).u16(0).file(1).u32(0).parse(parts))
      << "one id twice";
  EXPECT_FALSE(Body().u8(33).u8(0).u16(0).file(1).u32(0).parse(parts)) << "no such part";
  EXPECT_FALSE(Body().u8(254).u32(0xFFFFFFFF).raw("abc").parse(parts)) << "a length that nobody has";
  EXPECT_FALSE(Body()
                   .u8(0)
                   .u8(0x10)
                   .u16(0)
                   .u16(10)
                   .u16(8190)
                   .u8(0x01 | 0x04)
                   .u16(100)
                   .file(1)
                   .u32(0)
                   .raw("0123456789")
                   .parse(parts))
      << "a hole that is not on the page";
  EXPECT_TRUE(Body().parse(parts)) << "a switch has no parts";
}

}  // namespace
}  // namespace thalweg::wal
