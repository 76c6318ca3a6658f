#include "instantiation/destination_names.h"

#include <gtest/gtest.h>

namespace thalweg::instantiation {
namespace {

const TableName kSale{"shop", "sale"};
const TableName kSold{"archive", "Sold goods"};

TableShape sale() {
  TableShape table;
  table.name = kSale;
  ColumnShape& id = table.columns.emplace_back();
  id.name = "id";
  id.default_expression = "nextval('shop.sale_id_seq'::regclass)";
  table.constraints = {{.name = "whole",
                        .kind = 'c',
                        .definition = "CHECK ((body <> ' REFERENCES shop.sale('::text))",
                        .columns = {},
                        .references = {}},
                       {.name = "again",
                        .kind = 'f',
                        .definition = "FOREIGN KEY (before) REFERENCES shop.sale(id) ON DELETE CASCADE",
                        .columns = {},
                        .references = kSale},
                       {.name = "other",
                        .kind = 'f',
                        .definition = "FOREIGN KEY (at) REFERENCES public.\"Place\"(id)",
                        .columns = {},
                        .references = TableName{"public", "Place"}}};
  table.indexes = {{.name = "by_body",
                    .definition = "CREATE INDEX by_body ON shop.sale USING btree (f(' ON shop.sale USING '::text))"}};
  table.sequences = {{.name = {"shop", "sale_id_seq"},
                      .type = "bigint",
                      .start = {},
                      .increment = {},
                      .minimum = {},
                      .maximum = {},
                      .cache = {},
                      .owner_column = "id"}};
  TableShape& partition = table.partitions.emplace_back();
  partition.name = {"shop", "sale_1"};
  partition.parent = kSale;
  TableShape& elsewhere = table.partitions.emplace_back();
  elsewhere.name = {"old", "sale_2"};
  elsewhere.parent = kSale;
  return table;
}

TEST(DestinationNames, StandInEveryDefinitionThatMentionsTheTable) {
  DestinationNames names;
  names.add(kSale, kSold);
  names.add_parts(sale());
  const TableShape there = named_there(sale(), names);
  EXPECT_EQ(there.name, kSold);
  EXPECT_EQ(there.columns[0].default_expression, R"(nextval('"archive"."sale_id_seq"'::regclass))");
  EXPECT_EQ(there.sequences[0].name, (TableName{"archive", "sale_id_seq"}));
  EXPECT_EQ(there.constraints[0].definition, sale().constraints[0].definition) << "a text is no name";
  EXPECT_EQ(there.constraints[1].definition,
            R"(FOREIGN KEY (before) REFERENCES "archive"."Sold goods"(id) ON DELETE CASCADE)");
  EXPECT_EQ(there.constraints[1].references, kSold);
  EXPECT_EQ(there.constraints[2].definition, sale().constraints[2].definition);
  EXPECT_EQ(there.indexes[0].definition,
            R"(CREATE INDEX by_body ON "archive"."Sold goods" USING btree (f(' ON shop.sale USING '::text)))");
  EXPECT_EQ(there.partitions[0].name, (TableName{"archive", "sale_1"}));
  EXPECT_EQ(there.partitions[0].parent, kSold);
  EXPECT_EQ(there.partitions[1].name, (TableName{"old", "sale_2"})) << "it is in another schema than its table";
  EXPECT_EQ(there.partitions[1].parent, kSold);
}

TEST(DestinationNames, OfATableThatStaysInItsSchemaLeaveItsPartsWhereTheyAre) {
  DestinationNames names;
  names.add(kSale, {"shop", "sold"});
  names.add_parts(sale());
  const TableShape there = named_there(sale(), names);
  EXPECT_EQ(there.sequences[0].name, (TableName{"shop", "sale_id_seq"}));
  EXPECT_EQ(there.columns[0].default_expression, sale().columns[0].default_expression);
  EXPECT_EQ(there.partitions[0].name, (TableName{"shop", "sale_1"}));
  EXPECT_EQ(there.partitions[0].parent, (TableName{"shop", "sold"}));
}

TEST(DestinationNames, AreFoundAsPostgresWritesThem) {
  const TableName quoted{"my shop", "it's"};
  for (const char* written : {R"(my shop.it's)", R"("my shop"."it's")", R"("my shop".it's)", R"(my shop."it's")"}) {
    EXPECT_EQ(with_reference(std::string("FOREIGN KEY (a) REFERENCES ") + written + "(b)", quoted, kSold),
              R"(FOREIGN KEY (a) REFERENCES "archive"."Sold goods"(b))");
  }
  TableShape table;
  table.name = quoted;
  table.columns.emplace_back().default_expression = R"(nextval('"my shop"."it''s_seq"'::regclass))";
  table.sequences.emplace_back().name = {"my shop", "it's_seq"};
  table.sequences.back().owner_column = "id";
  DestinationNames names;
  names.add(quoted, {"b", "t"});
  names.add_parts(table);
  EXPECT_EQ(named_there(table, names).columns[0].default_expression, R"(nextval('"b"."it''s_seq"'::regclass))");
  EXPECT_EQ(with_reference("CHECK (true)", quoted, kSold), "CHECK (true)");
}

TEST(DestinationNames, AreTheTablesOwnWhereThereAreNone) {
  const TableShape there = named_there(sale(), {});
  EXPECT_EQ(there.name, kSale);
  EXPECT_EQ(there.indexes[0].definition, sale().indexes[0].definition);
}

}  // namespace
}  // namespace thalweg::instantiation
