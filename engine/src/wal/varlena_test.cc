#include "wal/varlena.h"

#include <gtest/gtest.h>

#include "wal/tuple_values.h"

// Values cut anywhere, and lengths that are not true.

namespace thalweg::wal {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span{text}); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// A header of one byte: five, with itself.
const std::string kShort = "\x0B";
// A header of four bytes: the length with itself, and whether what follows is compressed.
std::string header(uint32_t bytes, bool is_compressed = false) {
  const uint32_t word = bytes << 2 | (is_compressed ? 2 : 0);
  return {reinterpret_cast<const char*>(&word), sizeof word};
}

TEST(VarlenaTest, HasItsContentOfEitherLength) {
  const std::string brief = kShort + "abcd and more";
  const auto whole = parse_varlena(bytes_of(brief));
  ASSERT_TRUE(whole);
  EXPECT_EQ(text_of(whole->content), "abcd");
  EXPECT_EQ(whole->bytes, 5U);
  const std::string stored = header(8) + "abcd and more";
  const auto long_one = parse_varlena(bytes_of(stored));
  ASSERT_TRUE(long_one);
  EXPECT_EQ(text_of(long_one->content), "abcd");
  EXPECT_EQ(long_one->bytes, 8U);
  const std::string plain = "abcd and more";
  const auto fixed = parse_value(bytes_of(plain), 4);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(text_of(fixed->content), "abcd");
}

TEST(VarlenaTest, IsNoneWhereTheBytesEnd) {
  const std::string pointer = std::string("\x01\x12", 2) + std::string(16, 'p');
  const std::string compressed = header(16, true) + std::string("\x20\0\0\0", 4) + "12345678";
  for (const std::string& whole : {kShort + "abcd", header(8) + "abcd", pointer, compressed}) {
    ASSERT_TRUE(parse_varlena(bytes_of(whole)));
    for (size_t size = 0; size < whole.size(); ++size) {
      // A copy of exactly this size, so that the sanitizer sees any read behind it.
      const std::vector<std::byte> cut(bytes_of(whole).begin(), bytes_of(whole).begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(parse_varlena(cut)) << size << " of " << whole.size();
    }
  }
  EXPECT_FALSE(parse_value(bytes_of("abc"), 4));
  EXPECT_FALSE(parse_value(bytes_of("abc"), -2));
  EXPECT_FALSE(parse_varlena(bytes_of(header(3) + "abcd"))) << "less than its own header";
  EXPECT_FALSE(parse_varlena(bytes_of(header(7, true) + "abcd"))) << "less than its own header";
  EXPECT_FALSE(parse_varlena(bytes_of(std::string("\x01\x01", 2) + std::string(16, 'p')))) << "not on disk";
}

TEST(VarlenaTest, TakesNoMemoryForALengthThatCannotBe) {
  constexpr uint32_t kAnnounced = 1U << 29;
  EXPECT_FALSE(decompressed(bytes_of("12345678"), 0, kAnnounced));
  EXPECT_FALSE(decompressed(bytes_of("12345678"), 1, kAnnounced));
  EXPECT_FALSE(decompressed(bytes_of("12345678"), 2, 8)) << "of a method that is not known";
}

TEST(TupleValuesTest, EndWithTheTuple) {
  // Two columns, the first one NULL; then a number that is cut.
  std::string data("\x02", 1);
  data +=
      "1234"
      "56";
  const HeapTuple tuple{.infomask2 = 3, .infomask = kHasNull, .header_bytes = 24, .data = bytes_of(data)};
  ASSERT_TRUE(is_whole(tuple));
  TupleValues values(tuple);
  EXPECT_EQ(values.next(4, 'i').state, TupleValue::State::null);
  const TupleValue second = values.next(4, 'i');
  ASSERT_EQ(second.state, TupleValue::State::present);
  EXPECT_EQ(text_of(second.value.content), "1234");
  EXPECT_EQ(values.next(4, 'i').state, TupleValue::State::null);
  EXPECT_EQ(values.next(4, 'i').state, TupleValue::State::absent);
  const HeapTuple without{.infomask2 = 2, .infomask = 0, .header_bytes = 24, .data = bytes_of(data)};
  TupleValues cut(without);
  EXPECT_EQ(cut.next(4, 'i').state, TupleValue::State::present);
  EXPECT_EQ(cut.next(4, 'i').state, TupleValue::State::damaged);
}

}  // namespace
}  // namespace thalweg::wal
