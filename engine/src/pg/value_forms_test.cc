#include "pg/value_forms.h"

#include <gtest/gtest.h>

#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

class ValueFormsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
    ASSERT_TRUE(opened) << opened.error().message;
    connection_.emplace(*std::move(opened));
    run("DROP SCHEMA IF EXISTS forms CASCADE; CREATE SCHEMA forms; SET search_path = forms; "
        "CREATE TYPE mood AS ENUM ('sad'); CREATE TYPE plain AS (a integer, b text); "
        "CREATE DOMAIN word AS tsquery; CREATE TYPE deep AS (p plain, words word[]); CREATE DOMAIN deepest AS deep; "
        "CREATE TYPE words AS RANGE (subtype = tsquery)");
  }
  void run(const std::string& sql) {
    const auto done = connection_->script(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  ValueForms forms_of(const std::string& columns) {
    run("DROP TABLE IF EXISTS t; CREATE TABLE t (" + columns + ")");
    const auto forms = value_forms(*connection_, "SELECT $1::regclass::oid", "forms.t");
    EXPECT_TRUE(forms) << forms.error().message;
    return forms ? *forms : ValueForms{};
  }

  std::optional<Connection> connection_;
};

TEST_F(ValueFormsTest, FindsTypesWithoutBinaryFormWhereverTheyStand) {
  for (const char* type : {"aclitem", "aclitem[]", "tsquery", "tsquery[]", "int2vector", "oidvector", "regclass",
                           "regrole[]", "word", "word[]", "deep", "deep[]", "deepest", "words", "words[]"}) {
    EXPECT_TRUE(forms_of(std::string("id integer, value ") + type).needs_text) << type;
  }
}

TEST_F(ValueFormsTest, LeavesTheOthersBinary) {
  for (const char* type : {"integer", "text[]", "oid", "tsvector[]", "numrange", "int4multirange", "mood", "mood[]",
                           "plain", "plain[]", "xml", "pg_snapshot"}) {
    EXPECT_FALSE(forms_of(std::string("id integer, value ") + type).needs_text) << type;
  }
}

TEST_F(ValueFormsTest, NoticesOidsOfTypesInsideValues) {
  EXPECT_TRUE(forms_of("moods mood[]").holds_type_oids);
  EXPECT_TRUE(forms_of("p plain[]").holds_type_oids);
  EXPECT_FALSE(forms_of("m mood, p plain, numbers integer[]").holds_type_oids);
}

TEST_F(ValueFormsTest, GeneratedAndDroppedColumnsDoNotCount) {
  run("DROP TABLE IF EXISTS t; CREATE TABLE t (a text, q tsquery, g tsquery GENERATED ALWAYS AS (to_tsquery('english', "
      "a)) STORED); "
      "ALTER TABLE t DROP COLUMN q");
  const auto forms = value_forms(*connection_, "SELECT $1::regclass::oid", "forms.t");
  ASSERT_TRUE(forms) << forms.error().message;
  EXPECT_FALSE(forms->needs_text);
}

}  // namespace
}  // namespace thalweg::pg
