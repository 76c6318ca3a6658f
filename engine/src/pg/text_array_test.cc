#include "pg/text_array.h"

#include <gtest/gtest.h>

#include "pg/connection.h"
#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using Elements = std::vector<std::string>;

TEST(TextArray, IsReadAsTheServerWritesIt) {
  auto connection = Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
  ASSERT_TRUE(connection);
  for (const Elements& elements :
       {Elements{}, Elements{"a"}, Elements{"a", "b c"}, Elements{"", "a", ""}, Elements{""},
        Elements{"\"public\".\"t\"", "\"a\\\"\".\"b,c\"", "{x}", "NULL", "back\\slash", "two\nlines", "Größe"}}) {
    const auto written = connection->query("SELECT $1::text[], cardinality($1::text[])", {text_array(elements)});
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->integer(0, 1), static_cast<int64_t>(elements.size()));
    EXPECT_EQ(parse_text_array(written->text(0, 0)), elements) << written->text(0, 0);
    EXPECT_EQ(parse_text_array(text_array(elements)), elements);
  }
}

}  // namespace
}  // namespace thalweg::pg
