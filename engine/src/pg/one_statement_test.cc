#include "pg/one_statement.h"

#include <gtest/gtest.h>

namespace thalweg::pg {
namespace {

TEST(OneStatement, WhatServersPrintIsOne) {
  for (const char* sql : {
           "",
           "ALTER TABLE a.t ADD CONSTRAINT c CHECK (x > 0)",
           "ALTER TABLE a.t ALTER x SET DEFAULT 'a;b'::text",
           "ALTER TABLE a.\"t;--\" ADD CHECK (x <> 'it''s; --')",
           "ALTER TABLE t ADD CHECK (x <> E'\\'; DROP TABLE t; --')",
           "DO $do$ BEGIN NULL; END $do$",
           "SELECT $$;$$ || $a1$ $$; $a1$;  \n",
           "CREATE INDEX i ON t ((a - -1), (b / 2), (c * 3))",
           "SELECT a$b, 'x'",
       }) {
    EXPECT_TRUE(is_one_statement(sql)) << sql;
  }
}

TEST(OneStatement, WhatHidesAnotherIsMore) {
  for (const char* sql : {
           "ALTER TABLE t ADD CHECK (true); CREATE TABLE owned AS SELECT current_user; --",
           "ALTER TABLE t ADD CHECK (true) -- NOT VALID",
           "ALTER TABLE t ADD CHECK (true) /* NOT VALID",
           "ALTER TABLE t ADD CHECK (x <> 'a\\'); DROP TABLE t; --'",
           "ALTER TABLE t ADD CHECK (x <> 'open)",
           "DO $do$ x $do$; ALTER ROLE mallory SUPERUSER; -- $do$",
           "SELECT type'\\'; DROP TABLE t",
       }) {
    EXPECT_FALSE(is_one_statement(sql)) << sql;
  }
}

}  // namespace
}  // namespace thalweg::pg
