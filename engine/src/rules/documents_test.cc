#include "rules/documents.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rules/evaluators.h"

namespace thalweg::rules {
namespace {

std::string text_of(std::string_view quoted) {
  Scratch scratch;
  Datum out;
  return unquoted(scratch, quoted, out) == Failure::none ? std::string(out.text()) : "corrupt";
}

TEST(DocumentsTest, ReadsEveryEscape) {
  EXPECT_EQ(text_of(R"("")"), "");
  EXPECT_EQ(text_of(R"("größe")"), "größe");
  EXPECT_EQ(text_of(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(text_of(R"("\u0041\u00e4\u20AC\ud83d\uDE00\u0001x")"), "Aä€😀\x01x");
}

TEST(DocumentsTest, RefusesWhatIsNoString) {
  for (const char* text :
       {"", "\"", "a", "\"a", R"("\")", R"("\x")", R"("\u12")", R"("\u12g4")", R"("\u0000")", R"("\ud83d")",
        R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")", R"("\ude00")", "\"a\"b\""}) {
    EXPECT_EQ(text_of(text), "corrupt") << text;
    EXPECT_FALSE(equals_unquoted(text, "a")) << text;
  }
}

TEST(DocumentsTest, ComparesWithoutTheQuotes) {
  EXPECT_TRUE(equals_unquoted(R"("a\"b")", "a\"b"));
  EXPECT_TRUE(equals_unquoted(R"("\ud83d\ude00")", "😀"));
  EXPECT_TRUE(equals_unquoted(R"("")", ""));
  EXPECT_FALSE(equals_unquoted(R"("a\n")", "a"));
  EXPECT_FALSE(equals_unquoted(R"("a\n")", "a\nb"));
}

TEST(DocumentsTest, WalksThroughParts) {
  DocumentParts object(R"({"a": {"b": [1, "}]"]}, "c\"": -1.50, "": null})");
  std::vector<std::string> parts;
  while (object.next()) parts.push_back(std::string(object.key()) + "=" + std::string(object.value()));
  EXPECT_FALSE(object.is_corrupt());
  EXPECT_EQ(parts, (std::vector<std::string>{R"("a"={"b": [1, "}]"]})", R"("c\""=-1.50)", R"(""=null)"}));
  DocumentParts array("[[], {}, [[1], 2]]");
  parts.clear();
  while (array.next()) parts.emplace_back(array.value());
  EXPECT_EQ(parts, (std::vector<std::string>{"[]", "{}", "[[1], 2]"}));
}

// A million brackets need no memory.
TEST(DocumentsTest, TakesAnyDepth) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  DocumentParts parts(deep);
  ASSERT_TRUE(parts.next());
  EXPECT_EQ(parts.value().size(), deep.size() - 2);
  EXPECT_FALSE(parts.next());
  EXPECT_FALSE(parts.is_corrupt());
}

TEST(DocumentsTest, NoticesWhatIsNoDocument) {
  for (const char* text : {"{", "[", "[1", "[1,", "[,", "[1 2]", "[1]x", "{\"a\"}", "{\"a\":", "{\"a\": }", "{1: 2}",
                           "[\"a]", "[[]", "[}]", "{\"a\" 1}", "[1,,2]"}) {
    DocumentParts parts(text);
    while (parts.next()) {
    }
    EXPECT_TRUE(parts.is_corrupt()) << text;
  }
  for (const char* text : {"", "x", "tru", "nul", "+1", "]"}) EXPECT_EQ(kind_of(text), DocumentKind::corrupt) << text;
}

TEST(DocumentsTest, KnowsAllKinds) {
  EXPECT_EQ(kind_of("{}"), DocumentKind::object);
  EXPECT_EQ(kind_of("[]"), DocumentKind::array);
  EXPECT_EQ(kind_of("\"\""), DocumentKind::string);
  EXPECT_EQ(kind_of("-1"), DocumentKind::number);
  EXPECT_EQ(kind_of("true"), DocumentKind::boolean);
  EXPECT_EQ(kind_of("null"), DocumentKind::null);
}

}  // namespace
}  // namespace thalweg::rules
