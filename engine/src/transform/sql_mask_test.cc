#include "transform/sql_mask.h"

#include <gtest/gtest.h>

#include <array>

#include "support/test_cluster.h"
#include "transform/keyed_hash.h"
#include "transform/row_transformation.h"

namespace thalweg::transform {
namespace {

class SqlMaskTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = ""});
    ASSERT_TRUE(opened) << opened.error().message;
    source_.emplace(*std::move(opened));
  }
  base::Result<void> check(const std::string& value, const std::string& type) {
    return check_constant(*source_, value, type, "t", "c");
  }
  std::optional<pg::Connection> source_;
};

// The copy masks in SQL, the capture by itself.
TEST_F(SqlMaskTest, MasksAsTheCaptureDoes) {
  constexpr std::array<const char*, 6> kTexts = {"", "a", "Größe", "日本語のテキスト", "a'b\"c\\d", "e\u0301tude"};
  for (const char* const text : kTexts) {
    for (const auto& [first, last] : {std::pair{0U, 0U}, {1U, 2U}, {3U, 0U}, {0U, 4U}, {1000U, 1000U}}) {
      const Mask mask{.kind = MaskKind::partial, .value = {}, .keep_first = first, .keep_last = last};
      const auto masked = source_->query(
          "SELECT " + sql_mask(*source_, mask, "v", "character varying(30)") + " FROM (SELECT $1::text v) t", {text});
      ASSERT_TRUE(masked) << masked.error().message;
      std::string expected;
      mask_part(text, mask, expected);
      EXPECT_EQ(masked->text(0, 0), expected) << text << ' ' << first << ' ' << last;
    }
  }
  const Mask constant{.kind = MaskKind::constant, .value = "it's\\n"};
  EXPECT_EQ(source_->query("SELECT " + sql_mask(*source_, constant, "v", "text"))->text(0, 0), "it's\\n");
  EXPECT_TRUE(source_->query("SELECT " + sql_mask(*source_, {}, "v", "integer[]") + " IS NULL")->boolean(0, 0));
}

TEST_F(SqlMaskTest, HashesAsTheCaptureDoes) {
  for (const std::string& key : {std::string("a key of hashes"), std::string(200, 'k')}) {
    auto source = pg::Connection::open(test::shared_cluster().conninfo(),
                                       {.search_path = "", .session_settings = session_settings(key)});
    ASSERT_TRUE(source) << source.error().message;
    KeyedHash hash(key);
    for (const auto& [digits, type] : {std::pair{64U, "text"}, {20U, "character varying(20)"}}) {
      const Mask mask{.kind = MaskKind::hash, .value = {}, .digits = digits};
      for (const char* const text : {"", "a", "Größe", "日本語のテキスト", "a'b\"c\\d"}) {
        const auto masked =
            source->query("SELECT " + sql_mask(*source, mask, "v", type) + " FROM (SELECT $1::text v) t", {text});
        ASSERT_TRUE(masked) << masked.error().message;
        std::string expected;
        hash.write(text, digits, expected);
        EXPECT_EQ(masked->text(0, 0), expected) << text;
      }
      const auto none = source->query("SELECT " + sql_mask(*source, mask, "NULL::text", type) + " IS NULL");
      ASSERT_TRUE(none) << none.error().message;
      EXPECT_TRUE(none->boolean(0, 0));
    }
    const Mask mask{.kind = MaskKind::digits, .value = {}};
    for (const char* const text :
         {"", "7", "Größe 12-34", "日本 9", "4111 1111 1111 1111 4111 1111 1111 1111", "e\u03011"}) {
      const auto masked = source->query("SELECT " + sql_mask(*source, mask, "v", "character varying(60)") +
                                            " FROM (SELECT $1::character varying v) t",
                                        {text});
      ASSERT_TRUE(masked) << masked.error().message;
      std::string expected;
      hash.replace_digits(text, expected);
      EXPECT_EQ(masked->text(0, 0), expected) << text;
    }
    const auto none = source->query("SELECT " + sql_mask(*source, mask, "NULL::text", "text") + " IS NULL");
    ASSERT_TRUE(none) << none.error().message;
    EXPECT_TRUE(none->boolean(0, 0));
  }
  // Without the key there is no hash, and no value in the clear.
  const Mask mask{.kind = MaskKind::hash, .value = {}};
  EXPECT_FALSE(source_->query("SELECT " + sql_mask(*source_, mask, "v", "text") + " FROM (SELECT 'x'::text v) t"));
}

TEST_F(SqlMaskTest, TakesConstantsOnlyAsPostgresWritesThem) {
  EXPECT_TRUE(check("1970-01-01", "date"));
  EXPECT_TRUE(check("", "text"));
  EXPECT_TRUE(check("5.00", "numeric(6,2)"));
  EXPECT_TRUE(check("{1,2}", "integer[]"));
  // Each would be another value, or another one tomorrow.
  for (const auto& [value, type] : {std::pair{"now", "timestamp with time zone"},
                                    {"5", "numeric(6,2)"},
                                    {"too long", "character varying(3)"},
                                    {"x", "integer"},
                                    {"2026-02-30", "date"}}) {
    const auto checked = check(value, type);
    ASSERT_FALSE(checked) << value;
    EXPECT_EQ(checked.error().code, base::ErrorCode::transformation_refused) << checked.error().message;
  }
}

}  // namespace
}  // namespace thalweg::transform
