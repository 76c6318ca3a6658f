#include "rules/parser.h"

#include <gtest/gtest.h>

#include <string>

#include "rules/lexer.h"

namespace thalweg::rules {
namespace {

// The tree with every bracket written: what binds tighter shows.
std::string shown(const Expression& node) {
  std::string out;
  switch (node.kind) {
    case Syntax::column:
      return (node.row == Row::before ? "old." : node.row == Row::after ? "new." : "") + node.text;
    case Syntax::null:
      return "null";
    case Syntax::string:
      return "'" + node.text + "'";
    case Syntax::all:
      out = "and";
      break;
    case Syntax::any:
      out = "or";
      break;
    case Syntax::negation:
      out = "not";
      break;
    case Syntax::is_null:
      out = node.negated ? "is-not-null" : "is-null";
      break;
    case Syntax::distinct:
      out = "distinct";
      break;
    case Syntax::in:
      out = node.negated ? "not-in" : "in";
      break;
    case Syntax::between:
      out = "between";
      break;
    case Syntax::choice:
    case Syntax::matched:
      out = "case";
      break;
    default:
      out = node.text;
  }
  if (node.arguments.empty()) return out;
  out = "(" + out;
  for (const Expression& argument : node.arguments) out += " " + shown(argument);
  return out + ")";
}

TEST(ParserTest, BindsAsPostgres) {
  const std::pair<const char*, const char*> cases[] = {
      {"a = 1 or b = 2 and c = 3", "(or (= a 1) (and (= b 2) (= c 3)))"},
      {"a and b and c and d", "(and a b c d)"},
      {"not a = b", "(not (= a b))"},
      {"not a is null", "(not (is-null a))"},
      {"a = b is null", "(is-null (= a b))"},
      {"a + b * c - d", "(- (+ a (* b c)) d)"},
      {"a || b + c", "(|| a (+ b c))"},
      {"a between b + 1 and c and d", "(and (between a (+ b 1) c) d)"},
      {"a not in (1, 2)", "(not-in a 1 2)"},
      {"-1::int2", "(- (int2 1))"},
      {"- 5", "-5"},
      {"a=-1", "(= a -1)"},
      {"a like 'x%' escape '!'", "(~~ a (like_escape 'x%' '!'))"},
      {"a not ilike b || c", "(!~~* a (|| b c))"},
      {"a != 1", "(<> a 1)"},
      {"old.a is distinct from new.a", "(distinct old.a new.a)"},
      {"\"Old\".a", nullptr},
      {"\"A b\" = 'it''s'", "(= A b 'it's')"},
      {"case a when 1 then 2 end", "(case a 1 2 null)"},
      {"cast(a as double precision) > 1e3", "(> (float8 a) 1e3)"},
      {"date '2026-01-31' < d", "(< (date '2026-01-31') d)"},
      {"substring(a from 2 for 3)", "(substring a 2 3)"},
      {"overlay(a placing b from 2 for 3)", "(overlay a b 2 3)"},
      {"overlay(a placing b from 2)", "(overlay a b 2)"},
      {"overlay(a, b, 2)", "(overlay a b 2)"},
      {"greatest(a, 1) > least(b)", "(> (greatest a 1) (least b))"},
      {"~ a & b + c | d", "(| (& (~ a) (+ b c)) d)"},
      {"~ a + b", "(~ (+ a b))"},
      {"- ~ a + b", "(- (~ (+ a b)))"},
      {"a << 2 = b # 3", "(= (<< a 2) (# b 3))"},
      {"a ^@ 'x' || b", "(|| (^@ a 'x') b)"},
      {"a->'b'->>0 = 'x'", "(= (->> (-> a 'b') 0) 'x')"},
      {"a->-1 ? 'b' and c", "(and (? (-> a -1) 'b') c)"},
      {"(a->>'n')::int > 1", "(> (int4 (->> a 'n')) 1)"},
      {"a->>'n' like 'x%'", "(~~ (->> a 'n') 'x%')"},
      {"a->>'n' collate \"C\" < 'x'", "(< (->> a (C 'n')) 'x')"},
      {"position('a' in b)", "(position b 'a')"},
      {"trim(both 'x' from a)", "(btrim a 'x')"},
      {"extract(year from d) = 2026", "(= (extract 'year' d) 2026)"},
      {"TABLE = 'orders' AND Operation = 'INSERT'", "(and (= table 'orders') (= operation 'INSERT'))"},
  };
  for (const auto& [text, tree] : cases) {
    const auto parsed = parse(text);
    if (tree == nullptr) {
      EXPECT_FALSE(parsed) << text;
      continue;
    }
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message << " at " << parsed.error().column;
    EXPECT_EQ(shown(*parsed), tree) << text;
  }
}

TEST(ParserTest, SaysWhereTheTextIsWrong) {
  struct Case {
    const char* text;
    uint32_t line;
    uint32_t column;
  };
  const Case cases[] = {
      {"", 1, 1},
      {"a =", 1, 4},
      {"a = 1 b", 1, 7},
      {"a = 'open", 1, 5},
      {"größe =\n  1 and ;", 2, 9},
      {"größe = = 1", 1, 9},
      {"a < b < c", 1, 7},
      {"a -- comment", 1, 3},
      {"E'x' = a", 1, 1},
      {"a in ()", 1, 7},
      {"f()", 1, 1},
      {"a::json", 1, 4},
      {"12abc = 1", 1, 3},
      {"s.t.a = 1", 1, 1},
      {"case when a then b", 1, 19},
      {"select", 1, 1},
  };
  for (const Case& c : cases) {
    const auto parsed = parse(c.text);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().line, c.line) << c.text << ": " << parsed.error().message;
    EXPECT_EQ(parsed.error().column, c.column) << c.text << ": " << parsed.error().message;
  }
}

TEST(ParserTest, RefusesAMegabyteAndTenThousandLevels) {
  const std::string million = "a = '" + std::string(size_t{1} << 20, 'x') + "'";
  const auto long_one = parse(million);
  ASSERT_FALSE(long_one);
  EXPECT_EQ(long_one.error().offset, kConditionBytesMax);
  EXPECT_NE(long_one.error().message.find("longer"), std::string::npos);

  for (const char* opening : {"(", "not ", "-a+(", "case when "}) {
    std::string deep;
    for (int i = 0; i < 10'000 && deep.size() < kConditionBytesMax - 100; ++i) deep += opening;
    const auto nested = parse(deep + "a");
    ASSERT_FALSE(nested) << opening;
    EXPECT_NE(nested.error().message.find("nests deeper"), std::string::npos) << nested.error().message;
    EXPECT_GT(nested.error().offset, 0U);
  }
  std::string chain = "a";
  for (int i = 0; i < 10'000; ++i) chain += "+a";
  EXPECT_FALSE(parse(chain));
  // A list is not deep, however long.
  std::string list = "a = 0";
  for (int i = 1; i < 5'000; ++i) list += " or a = " + std::to_string(i);
  EXPECT_TRUE(parse(list));
}

TEST(ParserTest, RefusesWhatIsNotUtf8) {
  const auto broken = parse("größe =\n '\xff'");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().line, 2U);
  EXPECT_EQ(broken.error().column, 3U);
  EXPECT_FALSE(parse(std::string_view("a\0b", 3)));
  EXPECT_EQ(utf8_bytes("a\xed\xa0\x80"), 1U);
  EXPECT_EQ(utf8_bytes("\xc0\x80"), 0U);
  EXPECT_EQ(utf8_bytes("größe \xf0\x9f\x98\x80"), 12U);
}

}  // namespace
}  // namespace thalweg::rules
