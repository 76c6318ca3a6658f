#include "instantiation/lost_identity.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace thalweg::instantiation {
namespace {

const TableName kOrders{"public", "orders"};
const TableName kEvent{"public", "event"};

LostIdentity orders(IdentityFlaw flaw, const std::string& usable = {}, bool is_primary = false) {
  return {.relation = 10, .name = kOrders, .flaw = flaw, .usable_index = usable, .is_usable_index_primary = is_primary};
}

std::vector<LostIdentity> leaves(size_t count, IdentityFlaw flaw = IdentityFlaw::no_key) {
  std::vector<LostIdentity> out;
  for (uint32_t i = 1; i <= count; ++i) {
    out.push_back({.relation = 10 + i, .name = {"public", "event_" + std::to_string(i)}, .flaw = flaw});
  }
  return out;
}

TEST(LostIdentityTest, SaysWhatFailsAndWhy) {
  EXPECT_EQ(reason_of(orders(IdentityFlaw::no_key)),
            "\"public\".\"orders\" has no replica identity: it has no primary key. PostgreSQL refuses updates and "
            "deletes of its rows at the source; inserts continue to arrive.");
  const auto says = [](IdentityFlaw flaw, std::string_view words) {
    return reason_of(orders(flaw)).find(words) != std::string::npos;
  };
  EXPECT_TRUE(says(IdentityFlaw::nothing, "set to NOTHING. PostgreSQL refuses"));
  EXPECT_TRUE(says(IdentityFlaw::dropped, "the index that was chosen for it is gone. PostgreSQL refuses"));
  EXPECT_TRUE(says(IdentityFlaw::invalid, "is invalid. PostgreSQL refuses"));
  EXPECT_TRUE(says(IdentityFlaw::deferrable, "is deferrable. PostgreSQL refuses"));
  EXPECT_TRUE(says(IdentityFlaw::generated, "or cannot be applied")) << "PostgreSQL 17 does not refuse them";
}

TEST(LostIdentityTest, TheCureIsAnIndexThatIsThere) {
  EXPECT_EQ(cure_of(orders(IdentityFlaw::no_key, "Orders code")),
            "At the source, run ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY USING INDEX \"Orders code\";");
  EXPECT_EQ(cure_of(orders(IdentityFlaw::nothing, "orders_pkey", true)),
            "At the source, run ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY DEFAULT;");
}

// Names that look like the end of a statement, too.
TEST(LostIdentityTest, TheFirstWayAloneIsSql) {
  EXPECT_EQ(cure_sql_of(orders(IdentityFlaw::nothing)), "ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY FULL;")
      << "a key instead is in words";
  LostIdentity odd = orders(IdentityFlaw::no_key, "Orders; code");
  odd.name = {"shop; x", "say \"hi\""};
  EXPECT_EQ(cure_sql_of(odd),
            "ALTER TABLE \"shop; x\".\"say \"\"hi\"\"\" REPLICA IDENTITY USING INDEX \"Orders; code\";");
  EXPECT_EQ(cure_sql_of_leaves(leaves(2)),
            "ALTER TABLE \"public\".\"event_1\" REPLICA IDENTITY FULL;\n"
            "ALTER TABLE \"public\".\"event_2\" REPLICA IDENTITY FULL;");
  EXPECT_EQ(std::ranges::count(cure_sql_of_leaves(leaves(7)), '\n'), 4) << "of those that the words name";
}

TEST(LostIdentityTest, WithoutAnIndexItIsAKeyOrTheWholeRow) {
  EXPECT_EQ(cure_of(orders(IdentityFlaw::no_key)),
            "At the source, run ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY FULL; Old rows then go into the WAL "
            "whole. Or add a primary key, at each destination too.");
  // A key alone is no identity while that is something else.
  for (const auto flaw : {IdentityFlaw::nothing, IdentityFlaw::dropped, IdentityFlaw::invalid}) {
    EXPECT_TRUE(cure_of(orders(flaw))
                    .ends_with("Or add a primary key, at each destination too, and run ALTER TABLE "
                               "\"public\".\"orders\" REPLICA IDENTITY "
                               "DEFAULT;"));
  }
  for (const auto flaw : {IdentityFlaw::deferrable, IdentityFlaw::generated}) {
    EXPECT_EQ(
        cure_of(orders(flaw)),
        "At the source, run ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY FULL; Old rows then go into the WAL "
        "whole.");
  }
}

TEST(LostIdentityTest, NamesLeavesAndCountsTheRest) {
  EXPECT_EQ(reason_of_leaves(kEvent, leaves(1)),
            "Partitions of \"public\".\"event\": \"public\".\"event_1\" has no replica identity: PostgreSQL refuses "
            "updates and deletes of its rows at the source.");
  const std::string reason = reason_of_leaves(kEvent, leaves(7));
  EXPECT_NE(reason.find("\"public\".\"event_5\" and 2 more have no replica identity"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("event_6"), std::string::npos);
}

TEST(LostIdentityTest, CuresEachLeafOrTheRoot) {
  EXPECT_EQ(
      cure_of_leaves(kEvent, leaves(1)),
      "At the source, run ALTER TABLE \"public\".\"event_1\" REPLICA IDENTITY FULL; Do so for partitions that are "
      "added from now on, too. Or add a primary key to \"public\".\"event\", which partitions get by themselves, and "
      "to the "
      "destinations' tables.");
  const std::string many = cure_of_leaves(kEvent, leaves(7, IdentityFlaw::nothing));
  EXPECT_NE(many.find("REPLICA IDENTITY FULL; Do so for the 2 others, too."), std::string::npos) << many;
  EXPECT_EQ(many.find("primary key"), std::string::npos) << "NOTHING stays NOTHING with a key";
  std::vector<LostIdentity> keyed = leaves(1, IdentityFlaw::nothing);
  keyed.front().usable_index = "event_1_pkey";
  keyed.front().is_usable_index_primary = true;
  EXPECT_EQ(cure_of_leaves(kEvent, keyed),
            "At the source, run ALTER TABLE \"public\".\"event_1\" REPLICA IDENTITY DEFAULT;");
}

}  // namespace
}  // namespace thalweg::instantiation
