#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "apply/apply_harness.h"

// Updates and deletes of rows that are not as the source's were before: conflicts only where old values are compared.

namespace thalweg::apply {
namespace {

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";
constexpr const char* kQuoted = "\"public\".\"items\"";
constexpr const char* kLog = "SELECT operation, kind, action, change FROM thalweg.conflict_log ORDER BY id";
constexpr const char* kRows = "SELECT id, name, amount FROM items ORDER BY id";
constexpr const char* kQueue = "SELECT code, message FROM thalweg.error_queue ORDER BY commit_lsn";

ConflictHandler handler(ConflictKind kind, ConflictAction action) { return {.kind = kind, .action = action}; }

uint64_t conflicts(ApplyHarness& h, ConflictKind kind) {
  uint64_t sum = 0;
  for (const auto& table : h.apply().tables()) sum += table.conflicts[static_cast<size_t>(kind)];
  return sum;
}

class OriginDiffers : public testing::Test {
 protected:
  void SetUp() override {
    h.parameters.disable_on_error = false;
    h.parameters.compared = {{}};
  }
  void make(const std::string& sql, char identity = 'f') {
    h.run(sql);
    h.describe("items", identity);
  }
  // Of one transaction.
  template <typename Write>
  void apply(Write write) {
    h.begin();
    write();
    h.commit();
    finish();
  }
  void finish() {
    const auto error = h.start_and_finish();
    ASSERT_FALSE(error) << error->message;
  }
  ApplyHarness h;
};

TEST_F(OriginDiffers, AnUpdateOfAChangedRowIsAConflict) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'one', 1), (2, 'other', 20)");
  apply([&] {
    h.update_full("items", {1, "one", 1}, {1, "one", 10});
    h.update_full("items", {2, "two", 2}, {2, "two", 22});
  });
  EXPECT_EQ(h.select(kRows), "1|one|1,2|other|20");
  EXPECT_EQ(h.select("SELECT code FROM thalweg.error_queue"), "apply_conflict");
  EXPECT_NE(h.select("SELECT message FROM thalweg.error_queue").find("not as the source's was before"),
            std::string::npos)
      << h.select(kQueue);
  EXPECT_EQ(conflicts(h, ConflictKind::update_origin_differs), 1U);
  EXPECT_EQ(conflicts(h, ConflictKind::update_missing), 0U);
}

TEST_F(OriginDiffers, WithoutDetectionItIsNone) {
  h.parameters.compared = {};
  make(kItems);
  h.run("INSERT INTO items VALUES (2, 'other', 20)");
  apply([&] { h.update_full("items", {2, "two", 2}, {2, "two", 22}); });
  EXPECT_EQ(h.select(kRows), "2|two|22");
}

TEST_F(OriginDiffers, ADiscardedUpdateLeavesTheRow) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'one', 1), (2, 'other', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  apply([&] {
    h.update_full("items", {1, "one", 1}, {1, "one", 10});
    h.update_full("items", {2, "two", 2}, {2, "two", 22});
    h.insert("items", {3, "three", 3});
  });
  EXPECT_EQ(h.select(kRows), "1|one|10,2|other|20,3|three|3");
  EXPECT_EQ(h.select(kLog), "UPDATE|update_origin_differs|discard|2");
  EXPECT_EQ(h.select("SELECT old_row->>'name', new_row->>'amount', destination_row->>'name', "
                     "destination_row->>'amount' FROM thalweg.conflict_log"),
            "two|22|other|20");
  EXPECT_EQ(conflicts(h, ConflictKind::update_origin_differs), 1U);
}

TEST_F(OriginDiffers, AnOverwritingUpdateGivesTheSourcesWholeRow) {
  make(kItems);
  h.run("INSERT INTO items VALUES (2, 'other', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::overwrite)};
  apply([&] {
    h.update_full("items", {2, "large", 2}, {2, Unchanged{}, 22});
    h.update_full("items", {2, "large", 22}, {2, "end", 23});
  });
  EXPECT_EQ(h.select(kRows), "2|end|23");
  EXPECT_EQ(h.select(kLog), "UPDATE|update_origin_differs|overwrite|1") << "the second finds what the first one left";
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(OriginDiffers, ADeleteOfAChangedRow) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'other', 1), (2, 'other', 2)");
  h.parameters.conflict_handlers = {handler(ConflictKind::delete_origin_differs, ConflictAction::discard),
                                    handler(ConflictKind::delete_missing, ConflictAction::discard)};
  apply([&] {
    h.remove_full("items", {1, "one", 1});
    h.remove_full("items", {2, "other", 2});
    h.remove_full("items", {3, "three", 3});
  });
  EXPECT_EQ(h.select(kRows), "1|other|1");
  EXPECT_EQ(h.select(kLog), "DELETE|delete_origin_differs|discard|1,DELETE|delete_missing|discard|3");
  EXPECT_EQ(h.select("SELECT destination_row->>'name' FROM thalweg.conflict_log ORDER BY id"), "other,NULL");
}

TEST_F(OriginDiffers, AnOverwritingDeleteRemovesTheRow) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'other', 1)");
  h.parameters.conflict_handlers = {handler(ConflictKind::delete_origin_differs, ConflictAction::overwrite)};
  apply([&] { h.remove_full("items", {1, "one", 1}); });
  EXPECT_EQ(h.select(kRows), "");
  EXPECT_EQ(h.select(kLog), "DELETE|delete_origin_differs|overwrite|1");
}

TEST_F(OriginDiffers, AMissingRowIsStillMissing) {
  make(kItems);
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  apply([&] { h.update_full("items", {2, "two", 2}, {2, "two", 22}); });
  EXPECT_EQ(h.select("SELECT message LIKE '%no such row%' FROM thalweg.error_queue"), "t");
  EXPECT_EQ(conflicts(h, ConflictKind::update_missing), 1U);
  EXPECT_EQ(conflicts(h, ConflictKind::update_origin_differs), 0U);
}

TEST_F(OriginDiffers, OnlyTheColumnsOfTheListAreCompared) {
  make(kItems);
  h.parameters.compared = {{.table = kQuoted, .columns = {"amount"}}};
  h.run("INSERT INTO items VALUES (1, 'other', 1), (2, 'two', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  apply([&] {
    h.update_full("items", {1, "one", 1}, {1, "uno", 10});
    h.update_full("items", {2, "two", 2}, {2, "dos", 22});
  });
  EXPECT_EQ(h.select(kRows), "1|uno|10,2|two|20");
}

TEST_F(OriginDiffers, TheFirstEntryOfATableDecidesAndOthersAreNotCompared) {
  make(kItems);
  h.parameters.compared = {{.table = kQuoted, .except = {"name", "amount"}}, {}};
  h.run("CREATE TABLE others (id int PRIMARY KEY, name text)");
  h.describe("others", 'f');
  h.run("INSERT INTO items VALUES (1, 'other', 1)");
  h.run("INSERT INTO others VALUES (1, 'other')");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  apply([&] {
    h.update_full("items", {1, "one", 7}, {1, "uno", 10});
    h.update_full("others", {1, "one"}, {1, "uno"});
  });
  EXPECT_EQ(h.select(kRows), "1|uno|10");
  EXPECT_EQ(h.select("SELECT * FROM others"), "1|other");
}

TEST_F(OriginDiffers, AColumnThatIsNotThereStopsTheApply) {
  make(kItems);
  h.parameters.compared = {{.table = kQuoted, .columns = {"weight"}}};
  h.insert_one("items", {1, "one", 1});
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, base::ErrorCode::destination_table_differs);
  EXPECT_NE(error->message.find("\"weight\""), std::string::npos) << error->message;
}

TEST_F(OriginDiffers, NullIsAValueLikeOthers) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, NULL, 1), (2, 'two', 2), (3, NULL, NULL)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  apply([&] {
    h.update_full("items", {1, "one", 1}, {1, "uno", 1});
    h.update_full("items", {2, nullptr, 2}, {2, "dos", 2});
    h.update_full("items", {3, nullptr, nullptr}, {3, "tres", 3});
  });
  EXPECT_EQ(h.select(kRows), "1|NULL|1,2|two|2,3|tres|3");
}

TEST_F(OriginDiffers, AnUnchangedLargeValueIsComparedByItsOldOne) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'large', 1), (2, 'other', 2)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  apply([&] {
    h.update_full("items", {1, "large", 1}, {1, Unchanged{}, 10});
    h.update_full("items", {2, "large", 2}, {2, Unchanged{}, 20});
  });
  EXPECT_EQ(h.select(kRows), "1|large|10,2|other|2");
}

TEST_F(OriginDiffers, WhatIsNotToldIsNotCompared) {
  make(kItems, 'd');
  h.run("INSERT INTO items VALUES (1, 'other', 1), (2, 'other', 2), (3, 'other', 3)");
  apply([&] {
    h.update("items", {1, "uno", 10});
    h.update_key("items", {2, nullptr, nullptr}, {20, "dos", 20});
    h.remove("items", {3, nullptr, nullptr});
  });
  EXPECT_EQ(h.select(kRows), "1|uno|10,20|dos|20");
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(OriginDiffers, APartitionThatToldLessThanItsTableIsNotCompared) {
  make(kItems, 'f');
  h.run("INSERT INTO items VALUES (1, 'other', 1)");
  apply([&] { h.update("items", {1, "uno", 10}); });
  EXPECT_EQ(h.select(kRows), "1|uno|10");
}

// pgoutput says that the old row is whole, as the table's identity is, and the partition told its key.
TEST_F(OriginDiffers, APartitionsKeyBelowAFullIdentityIsNoOldRow) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'other', 1), (2, 'two', 2), (3, 'three', 3)");
  apply([&] {
    h.remove_full("items", {1, nullptr, nullptr});
    h.update_full("items", {2, nullptr, nullptr}, {20, "dos", 20});
    h.update("items", {3, "tres", 3});
  });
  EXPECT_EQ(h.select(kRows), "3|tres|3,20|dos|20");
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(OriginDiffers, ARowThatATriggerKeepsIsNoConflict) {
  make(kItems);
  h.run(
      "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
      "CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION keep(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER keep; INSERT INTO items VALUES (1, 'one', 1), (2, 'two', 2)");
  for (const auto kind : {ConflictKind::update_missing, ConflictKind::delete_missing,
                          ConflictKind::update_origin_differs, ConflictKind::delete_origin_differs}) {
    h.parameters.conflict_handlers.push_back(handler(kind, ConflictAction::discard));
  }
  apply([&] { h.update_full("items", {1, "one", 1}, {1, "uno", 10}); });
  apply([&] { h.remove_full("items", {2, "two", 2}); });
  EXPECT_EQ(h.select(kRows), "1|one|1,2|two|2");
  EXPECT_EQ(h.select(kLog), "");
  EXPECT_EQ(h.select("SELECT message LIKE '%the row is there, but was not written' FROM thalweg.error_queue"), "t,t");
  EXPECT_EQ(conflicts(h, ConflictKind::update_missing) + conflicts(h, ConflictKind::delete_missing), 0U);
}

TEST_F(OriginDiffers, ARowThatCannotBeWrittenIsNotMissingWithoutAComparisonEither) {
  h.parameters.compared = {};
  make("CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint GENERATED ALWAYS AS IDENTITY)", 'd');
  h.run("INSERT INTO items OVERRIDING SYSTEM VALUE VALUES (1, 'one', 7)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_missing, ConflictAction::overwrite),
                                    handler(ConflictKind::update_missing, ConflictAction::discard)};
  apply([&] { h.update("items", {1, "uno", 1}); });
  EXPECT_EQ(h.select(kRows), "1|one|7");
  EXPECT_EQ(h.select(kLog), "");
  EXPECT_EQ(h.select("SELECT message LIKE '%the row is there, but was not written' FROM thalweg.error_queue"), "t");
}

// As though somebody else had put the row back before apply looked.
TEST_F(OriginDiffers, ARowThatIsAgainAsItWasIsWritten) {
  make(kItems);
  h.run(
      "CREATE SEQUENCE calls; CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN IF nextval(''public.calls'') <= 3 THEN RETURN NULL; END IF; RETURN NEW; END'; "
      "CREATE TRIGGER keep BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION keep(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER keep; INSERT INTO items VALUES (1, 'one', 1)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_missing, ConflictAction::discard)};
  apply([&] { h.update_full("items", {1, "one", 1}, {1, "uno", 10}); });
  EXPECT_EQ(h.select(kRows), "1|uno|10");
  EXPECT_EQ(h.select(kLog), "");
  EXPECT_EQ(h.select("SELECT last_value FROM calls"), "4") << "in a group, alone, settling, once more";
  EXPECT_EQ(h.apply().tables().at(0).updates, 1U);
}

TEST_F(OriginDiffers, AnUpdateOfTheKeyComparesTheRowThatMoves) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'one', 1), (2, 'other', 2)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::overwrite)};
  apply([&] {
    h.update_full("items", {1, "one", 1}, {10, "uno", 10});
    h.update_full("items", {2, "two", 2}, {20, "dos", 20});
  });
  EXPECT_EQ(h.select(kRows), "10|uno|10,20|dos|20");
  EXPECT_EQ(h.select(kLog), "UPDATE|update_origin_differs|overwrite|2");
}

TEST_F(OriginDiffers, ARowThatItsTransactionChangedBeforeIsAsItLeftIt) {
  make(kItems);
  h.run("INSERT INTO items VALUES (1, 'one', 1)");
  apply([&] {
    h.update_full("items", {1, "one", 1}, {1, "uno", 2});
    h.update_full("items", {1, "uno", 2}, {1, "eins", 3});
    h.insert("items", {2, "two", 2});
    h.update_full("items", {2, "two", 2}, {2, "dos", 20});
    h.remove_full("items", {1, "eins", 3});
    h.insert("items", {1, "again", 5});
    h.update_full("items", {1, "again", 5}, {1, "ended", 6});
  });
  EXPECT_EQ(h.select(kRows), "1|ended|6,2|dos|20");
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(OriginDiffers, AStreamedTransactionThatSpillsIsComparedAndSettled) {
  make(kItems);
  h.parameters.txn_lcr_spill_threshold = 100;
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  h.run("INSERT INTO items SELECT n, 'old', n FROM generate_series(1, 1000) AS n");
  h.run("UPDATE items SET name = 'other' WHERE id IN (7, 500, 1000)");
  h.begin(true);
  for (int64_t id = 1; id <= 1000; ++id) h.update_full("items", {id, "old", id}, {id, "new", id});
  h.commit_streamed(h.xid());
  finish();
  EXPECT_EQ(h.select("SELECT name, count(*) FROM items GROUP BY 1 ORDER BY 1"), "new|997,other|3");
  EXPECT_EQ(h.select("SELECT string_agg(destination_row->>'id', ' ' ORDER BY id) FROM thalweg.conflict_log"),
            "7 500 1000");
}

// Every way that rows are written in: merged and in sets, singly, and in one round trip.
TEST_F(OriginDiffers, GroupsThatAreMergedFindTheSameConflicts) {
  make(kItems);
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard),
                                    handler(ConflictKind::delete_origin_differs, ConflictAction::discard)};
  h.run("INSERT INTO items SELECT n, 'old', n FROM generate_series(1, 400) AS n");
  h.run("UPDATE items SET amount = 0 WHERE id % 100 = 7");
  for (int64_t id = 1; id <= 400; ++id) {
    h.begin();
    h.update_full("items", {id, "old", id}, {id, "mid", id});
    h.commit();
  }
  for (int64_t id = 1; id <= 400; id += 2) {
    h.begin();
    if (id % 4 == 1) {
      h.remove_full("items", {id, "mid", id});
    } else {
      h.update_full("items", {id, "mid", id}, {id, "new", id});
    }
    h.commit();
  }
  finish();
  EXPECT_EQ(h.select("SELECT name, count(*) FROM items GROUP BY 1 ORDER BY 1"), "mid|200,new|96,old|4");
  EXPECT_EQ(h.select("SELECT kind, count(*) FROM thalweg.conflict_log GROUP BY 1 ORDER BY 1"),
            "update_origin_differs|8");
  EXPECT_GT(h.counter("APPLY SERVER", "sets"), 0U) << "the other transactions are written in sets";
}

// A value is compared as the destination stores it.
TEST_F(OriginDiffers, ValuesThatTheDestinationStoresOtherwiseAreTheSame) {
  make(
      "CREATE DOMAIN short AS numeric(6, 1); CREATE TYPE mood AS ENUM ('good', 'bad'); "
      "CREATE TABLE items (id int PRIMARY KEY, padded char(8), document jsonb, list text[], feeling mood, "
      "at timestamp(0), price short, span int4range)");
  h.run("INSERT INTO items VALUES (1, 'ab', '{\"a\": 1}', '{x,y}', 'good', '2026-01-01 10:00:00.4', 1.25, '[1,5)')");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_origin_differs, ConflictAction::discard)};
  const auto from = [&](const std::string& column) {
    return h.select("SELECT encode(" + column + ", 'escape') FROM items");
  };
  const auto bytes = [&](const std::string& sql) {
    std::string out;
    const std::string hex = h.select("SELECT encode(" + sql + ", 'hex')");
    for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
  };
  EXPECT_EQ(from("bpcharsend(padded)"), "ab      ");
  const auto row = [&](const std::string& document, const std::string& feeling) {
    return Row{1,
               bytes("bpcharsend('ab')"),
               bytes("jsonb_send('" + document + "')"),
               bytes("array_send('{x,y}'::text[])"),
               bytes("enum_send('" + feeling + "'::mood)"),
               bytes("timestamp_send('2026-01-01 10:00:00.4')"),
               bytes("numeric_send(1.25)"),
               bytes("range_send('[1,5)'::int4range)")};
  };
  apply([&] {
    h.update_full("items", row("{\"a\":1}", "good"), row("{\"a\":2}", "bad"));
    h.update_full("items", row("{\"a\":1}", "bad"), row("{\"a\":3}", "bad"));
  });
  EXPECT_EQ(h.select("SELECT document, feeling FROM items"), "{\"a\": 2}|bad");
  EXPECT_EQ(h.select("SELECT change FROM thalweg.conflict_log"), "2");
}

TEST_F(OriginDiffers, AParkedTransactionIsExecutedAsItsOperatorWants) {
  make(kItems);
  h.run("INSERT INTO items VALUES (2, 'other', 20)");
  h.begin();
  h.update_full("items", {2, "two", 2}, {2, "two", 22});
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  const std::string id = h.select("SELECT id FROM thalweg.error_queue");
  const auto executed = h.execute_error(std::stoll(id));
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select(kRows), "2|two|22");
  // The next change finds what it left.
  h.begin();
  h.update_full("items", {2, "two", 22}, {2, "zwei", 23});
  h.commit();
  EXPECT_FALSE(h.finish());
  EXPECT_EQ(h.select(kRows), "2|zwei|23");
  EXPECT_EQ(h.select(kQueue), "");
}

}  // namespace
}  // namespace thalweg::apply
