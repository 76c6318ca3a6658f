#include "transform/keyed_hash.h"

#include <gtest/gtest.h>

namespace thalweg::transform {
namespace {

std::string hash_of(std::string_view key, std::string_view text, size_t digits = 64) {
  std::string out = "of another value";
  KeyedHash(key).write(text, digits, out);
  return out;
}

// Of RFC 4231: cases 1, 2 and 6, whose key is longer than a block.
TEST(KeyedHash, IsHmac) {
  EXPECT_EQ(hash_of(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hash_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hash_of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(KeyedHash, ReplacesDigitsAndNothingElse) {
  constexpr std::string_view kText = "+49 30 Größe 12345678901234567890123456789012345";
  constexpr std::string_view kOther = "+49 30 Größe 12345678901234567890123456789012346";
  KeyedHash hash("a key");
  std::string masked, again;
  hash.replace_digits(kText, masked);
  ASSERT_EQ(masked.size(), kText.size());
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  size_t kept = 0;
  for (size_t i = 0; i < kText.size(); ++i) {
    EXPECT_EQ(is_digit(masked[i]), is_digit(kText[i]));
    if (is_digit(kText[i])) {
      kept += masked[i] == kText[i] ? 1 : 0;
    } else {
      EXPECT_EQ(masked[i], kText[i]);
    }
  }
  EXPECT_LT(kept, 13U) << "of 39 digits";
  hash.replace_digits(kText, again);
  EXPECT_EQ(masked, again);
  hash.replace_digits(kOther, again);
  EXPECT_NE(masked.substr(0, 30), again.substr(0, 30)) << "each digit depends on all of the value";
  hash.replace_digits("", masked);
  EXPECT_EQ(masked, "");
}

TEST(KeyedHash, IsTheSameForEqualValuesOnly) {
  KeyedHash hash("a key");
  std::string first, second;
  hash.write("anna", 20, first);
  hash.write("berta", 20, second);
  EXPECT_NE(first, second);
  hash.write("anna", 20, second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 20U);
  EXPECT_EQ(first, hash_of("a key", "anna").substr(0, 20));
  EXPECT_NE(first, hash_of("another key", "anna", 20));
}

}  // namespace
}  // namespace thalweg::transform
