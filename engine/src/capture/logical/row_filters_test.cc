#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "capture/logical/batch_reader.h"
#include "capture/logical/capture_harness.h"
#include "capture/logical/pgoutput_parser.h"
#include "capture/source_filters.h"
#include "rules/condition_maker.h"
#include "rules/source_table.h"
#include "support/sanitized.h"

// Rules that thalweg_output evaluates at the source, beside the engine's judgement of the same changes.

namespace thalweg::capture {
namespace {

using rules::Rule;
using Lsns = std::set<uint64_t>;  // of changes

constexpr uint64_t kSeed = 20'261'130;
#if THALWEG_SANITIZED
constexpr size_t kConditions = 60;
#else
constexpr size_t kConditions = 600;
#endif
constexpr int kRows = 40;
const TableKey kTable{"public", "t"};

Rule rule(std::string condition, uint8_t kinds = rules::kEveryKind) {
  return {.name = "r", .schema = {}, .table = {}, .kinds = kinds, .condition = std::move(condition)};
}

class RowFiltersTest : public CaptureHarness {
 protected:
  static constexpr const char* kReader = "reads a slot";

  void TearDown() override {
    const auto dropped = drop_slot(*source_, "filtered", kReader, kPatience);
    EXPECT_TRUE(dropped) << dropped.error().message;
    CaptureHarness::TearDown();
  }
  void make_filtered_slot() {
    run("CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_via_partition_root)");
    run("SELECT pg_create_logical_replication_slot('filtered', 'thalweg_output')");
  }
  base::RelationId relation_of(const std::string& table) {
    return {static_cast<uint32_t>(std::stoul(value("SELECT '" + table + "'::regclass::oid")))};
  }
  // The option as a capture would give it at this moment.
  std::string written(const rules::RuleSets& sets, const std::string& table = "t") {
    StreamRules rules;
    rules.tables[kTable] = sets;
    rules.source = "here";
    SourceFilters filters;
    const auto option = filters.write(*source_, rules, {{relation_of(table), kTable}});
    EXPECT_TRUE(option) << option.error().message;
    return option.value_or("");
  }
  std::string written(const std::string& condition, const std::string& table = "t") {
    return written({.negative = {}, .positive = std::vector{rule(condition)}}, table);
  }
  base::Result<pg::Rows> peek(const std::string& option, const std::string& more = "") {
    return source_->query(
        "SELECT encode(data, 'hex') FROM pg_logical_slot_peek_binary_changes('filtered', NULL, NULL, 'proto_version', "
        "'2', 'publication_names', 'everything', 'binary', 'true', 'batch_version', '3'" +
        more + (option.empty() ? "" : ", 'row_filters', " + source_->quote_literal(option)) + ")");
  }
  // Calls visit(message, lsn) for all that comes.
  void for_each_message(const std::string& option, const auto& visit) {
    const auto rows = peek(option);
    ASSERT_TRUE(rows) << rows.error().message << "\n" << option;
    PgoutputParser parser;
    for (size_t row = 0; row < rows->size(); ++row) {
      const std::string hex(rows->text(row, 0));
      std::vector<std::byte> bytes;
      for (size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
      }
      BatchReader batch(bytes);
      for (auto message = batch.next(); message && *message; message = batch.next()) {
        const auto parsed = parser.parse((*message)->bytes);
        ASSERT_TRUE(parsed) << parsed.error().message;
        visit(**parsed, (*message)->lsn);
      }
    }
  }
  static bool is_row(const PgoutputMessage& message) {
    return message.kind == MessageKind::insert || message.kind == MessageKind::update ||
           message.kind == MessageKind::remove;
  }
  Lsns changes(const std::string& option) {
    Lsns found;
    for_each_message(option, [&](const PgoutputMessage& message, base::Lsn lsn) {
      if (is_row(message)) found.insert(lsn.value);
    });
    return found;
  }
  // Kinds of the changes that come, in their order: "IUD".
  std::string kinds(const std::string& option) {
    std::string found;
    for_each_message(option, [&](const PgoutputMessage& message, base::Lsn) {
      if (is_row(message) || message.kind == MessageKind::truncate) found += static_cast<char>(message.kind);
    });
    return found;
  }
};

class DifferentialRowFiltersTest : public RowFiltersTest {
 protected:
  void make_table() {
    std::string columns = "k integer PRIMARY KEY";
    for (const rules::SampleColumn& column : rules::kSampleColumns) {
      columns += ", " + std::string(column.name) + " " + std::string(column.sql_type);
    }
    run("CREATE TYPE mood AS ENUM ('low', 'middle', 'high'); CREATE TABLE t (" + columns + ")");
    make_filtered_slot();
    std::string names;
    for (const rules::SampleColumn& column : rules::kSampleColumns) {
      names += (names.empty() ? "" : ", ") + std::string(column.name);
    }
    for (int k = 1; k <= kRows; ++k) {
      run("INSERT INTO t VALUES (" + std::to_string(k) + ", " + maker_.row() + ")");
      run("UPDATE t SET (" + names + ") = (" + maker_.row() + ") WHERE k = " + std::to_string(k));
    }
    run("DELETE FROM t WHERE k % 3 = 0");
  }

  // Every change as a frame, once.
  void read_all() {
    for_each_message("", [&](const PgoutputMessage& message, base::Lsn lsn) {
      if (message.kind == MessageKind::relation) table_ = rules::table_of(message.table);
      if (!is_row(message)) return;
      const lcr::FrameKind kind = message.kind == MessageKind::insert   ? lcr::FrameKind::insert
                                  : message.kind == MessageKind::update ? lcr::FrameKind::update
                                                                        : lcr::FrameKind::remove;
      const lcr::RowFrame row{.kind = kind,
                              .flags = message.old_flags,
                              .xid = {1},
                              .subxid = {},
                              .relation = message.relation,
                              .table_version = 1,
                              .lsn = lsn,
                              .old_tuple = message.old_tuple,
                              .new_tuple = message.new_tuple};
      auto& frame = frames_[lsn.value];
      frame.resize(lcr::row_frame_bytes(row));
      lcr::write_row_frame(row, frame);
    });
    ASSERT_EQ(frames_.size(), 2u * kRows + kRows / 3);
    ASSERT_TRUE(rules::complete(*source_, relation_of("t"), table_));
  }

  Lsns passed_by_engine(rules::TableRules& compiled) {
    Lsns passed;
    for (auto& [lsn, frame] : frames_) {
      const auto judgement = compiled.judge(lcr::FrameView::trusted(frame.data()),
                                            {.source = "here", .tag = {}, .commit_time = {}}, scratch_);
      EXPECT_NE(judgement.decision, rules::Decision::failed);
      EXPECT_NE(judgement.decision, rules::Decision::undecidable);
      if (judgement.decision == rules::Decision::pass) passed.insert(lsn);
    }
    return passed;
  }

  rules::ConditionMaker maker_{kSeed};
  rules::RuleTable table_;
  std::map<uint64_t, std::vector<std::byte>> frames_;
  rules::Scratch scratch_;
};

TEST_F(DifferentialRowFiltersTest, TheSourceSendsExactlyWhatTheEngineLetsPass) {
  make_table();
  read_all();
  size_t asked = 0, kept_back = 0, passed = 0;
  constexpr uint8_t kRowChanges = rules::kInsert | rules::kUpdate;
  while (asked < kConditions && !HasFailure()) {
    rules::RuleSets sets;
    // Deletes always pass: nobody asks the source about them.
    if (maker_.below(2) == 0) sets.negative = std::vector{rule(maker_.condition(2), kRowChanges)};
    if (!sets.negative || maker_.below(2) == 0) {
      sets.positive = std::vector{rule(maker_.condition(2), kRowChanges), rule("", rules::kDelete)};
      if (maker_.below(2) == 0) sets.positive->push_back(rule(maker_.condition(1), kRowChanges));
    }
    auto compiled = rules::TableRules::compile(sets, table_);
    if (!compiled) continue;
    const auto filter = rules::source_filter(sets, table_, rules::kUpdate, "here");
    if (filter.place != rules::SourceFilter::Place::source) continue;
    ++asked;
    const Lsns expected = passed_by_engine(*compiled);
    EXPECT_EQ(changes(written(sets)), expected) << filter.text;
    passed += expected.size();
    kept_back += frames_.size() - expected.size();
  }
  // Filters that keep back all or nothing would show little.
  EXPECT_GT(passed, asked * frames_.size() / 10);
  EXPECT_GT(kept_back, asked * frames_.size() / 10);
}

TEST_F(RowFiltersTest, OneKindOfChangesOrBoth) {
  run("CREATE TABLE t (id int PRIMARY KEY, n int)");
  make_filtered_slot();
  run("INSERT INTO t VALUES (1, 1), (2, 2); UPDATE t SET n = n + 1; DELETE FROM t WHERE id = 1; TRUNCATE t");
  EXPECT_EQ(kinds(""), "IIUUDT");
  EXPECT_EQ(kinds(written("n = 2")), "IUDT") << "the deletes and the truncate are the engine's";
  EXPECT_EQ(kinds(written({.negative = {}, .positive = std::vector<Rule>{}})), "DT");
  const auto subset = [](std::string condition) {
    Rule made = rule(std::move(condition));
    made.subset = true;
    return rules::RuleSets{.negative = {}, .positive = std::vector{made}};
  };
  EXPECT_EQ(kinds(written(subset("n = 2"))), "IUUDT");
}

TEST_F(RowFiltersTest, AValueThatDidNotComeIsNotGuessed) {
  run("CREATE TABLE t (id int PRIMARY KEY, n int, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL");
  make_filtered_slot();
  run("INSERT INTO t VALUES (1, 1, repeat('x', 5000)), (2, 2, 'short'), (3, 3, NULL)");
  run("UPDATE t SET n = 0");                  // the first one's long value is not sent
  run("UPDATE t SET v = repeat('y', 5000)");  // all of them are
  EXPECT_EQ(kinds(written("v = 'short'")), "IUU");
  EXPECT_EQ(kinds(written("v LIKE 'x%'")), "IU");
  EXPECT_EQ(kinds(written("v LIKE 'y%'")), "UUUU");
  EXPECT_EQ(kinds(written("n > 0")), "III");
}

TEST_F(RowFiltersTest, ATableThatIsNoLongerTheSameIsNotFiltered) {
  run("CREATE SCHEMA s; CREATE TABLE t (id int PRIMARY KEY, n int, v text)");
  make_filtered_slot();
  run("INSERT INTO t VALUES (1, 1, 'a')");
  const std::string relation = std::to_string(relation_of("t").value);
  const std::string filter = written("n = 2 AND v = 'b'");
  ASSERT_FALSE(filter.empty());
  EXPECT_EQ(kinds(filter), "");
  for (const auto& [change, back] : std::map<std::string, std::string>{
           {"ALTER TABLE t RENAME n TO m", "ALTER TABLE t RENAME m TO n"},
           {"ALTER TABLE t ALTER n TYPE bigint", "ALTER TABLE t ALTER n TYPE int"},
           {"ALTER TABLE t ALTER v TYPE varchar", "ALTER TABLE t ALTER v TYPE text"},
           {"ALTER TABLE t ALTER v TYPE text COLLATE \"C\"", "ALTER TABLE t ALTER v TYPE text COLLATE \"default\""},
           {"ALTER TABLE t RENAME TO u", "ALTER TABLE u RENAME TO t"},
           {"ALTER TABLE t SET SCHEMA s", "ALTER TABLE s.t SET SCHEMA public"},
           {"ALTER SCHEMA public RENAME TO p", "ALTER SCHEMA p RENAME TO public"}}) {
    const std::string before = kinds(filter);
    run(change + "; DO $$ BEGIN EXECUTE format('INSERT INTO %s VALUES (1 + (SELECT max(id) FROM %1$s), 1, ''a'')', " +
        "(SELECT oid::regclass FROM pg_class WHERE oid = " + relation + ")); END $$");
    EXPECT_EQ(kinds(filter), before + "I") << change;
    run(back + "; INSERT INTO t VALUES (1 + (SELECT max(id) FROM t), 1, 'a')");
    EXPECT_EQ(kinds(filter), before + "I") << back;
  }
  const std::string attribute = written("source = 'here' AND n = 2");
  const std::string before_column = kinds(attribute);
  run("ALTER TABLE t ADD source text; INSERT INTO t VALUES (98, 1, 'a'); ALTER TABLE t DROP source;"
      "INSERT INTO t VALUES (99, 1, 'a')");
  EXPECT_EQ(kinds(attribute), before_column + "I") << "the engine refuses the rule meanwhile";
  run("ALTER TABLE t RENAME TO u");
  EXPECT_EQ(written("n = 2", "u"), "") << "its rules depend on its names";
  run("ALTER TABLE u RENAME TO t");
  run("ALTER TABLE t ADD extra int DEFAULT 5; ALTER TABLE t DROP extra; INSERT INTO t VALUES (100, 1, 'a')");
  const std::string before = kinds(filter);
  run("INSERT INTO t VALUES (101, 2, 'b')");
  EXPECT_EQ(kinds(filter), before + "I") << "columns that are not read may come and go";
}

TEST_F(RowFiltersTest, PartitionsAreNotFiltered) {
  run("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)");
  make_filtered_slot();
  run("INSERT INTO t VALUES (1)");
  EXPECT_EQ(written("id = 2"), "");
  EXPECT_EQ(written("id = 2", "t1"), "");
  const auto leaf = std::to_string(relation_of("t1").value);
  EXPECT_EQ(kinds("(" + leaf + " insert \"public\" \"t1\" () (value 16 \"00\"))"), "I");
}

TEST_F(RowFiltersTest, StreamedTransactionsAreFiltered) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  make_filtered_slot();
  run("BEGIN; INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i; SAVEPOINT a;"
      "INSERT INTO t VALUES (5000, 'y'); COMMIT");
  const auto rows = peek(written("id >= 2999"), ", 'streaming', 'on'");
  ASSERT_TRUE(rows) << rows.error().message;
  size_t bytes = 0;
  for (size_t row = 0; row < rows->size(); ++row) bytes += rows->text(row, 0).size() / 2;
  EXPECT_LT(bytes, 2000u);
  EXPECT_EQ(kinds(written("id >= 2999")), "III");
}

TEST_F(RowFiltersTest, RefusesWhatIsNoFilterAndNamesTheTable) {
  run("CREATE TABLE t (id int PRIMARY KEY)");
  make_filtered_slot();
  const std::string begin = "(1 insert \"public\" \"t\" ((\"id\" 23 0) (\"v\" 25 100) (\"j\" 114 0)) ";
  for (const char* expression : {"",
                                 "(",
                                 "(column 3)",
                                 "(column 0)",
                                 "(column)",
                                 "(value 23 \"00000001\")",
                                 "(value 16 \"0\")",
                                 "(value 16 \"0g\")",
                                 "(value 16 \"0001\")",
                                 "(value 16 \"\")",
                                 "(value 114 \"00\")",
                                 "(call pg_sleep (column 0))",
                                 "(call int4eq (column 0))",
                                 "(call int4eq (column 0) (column 1))",
                                 "(call texteq (column 0) (column 1))",
                                 "(call texteq (column 2) (column 2))",
                                 "(call int4eq (column 0) (column 0) (column 0))",
                                 "(and)",
                                 "(and (column 0))",
                                 "(not (value 16) (value 16))",
                                 "(distinct int4_numeric (column 0))",
                                 "(nothing (value 16))",
                                 "(value 16) (value 16)"}) {
    const auto refused = peek(begin + expression + ")");
    ASSERT_FALSE(refused) << expression;
    if (refused.error().sqlstate == "08P01") continue;  // a constant's bytes: the table is in the context
    EXPECT_EQ(refused.error().sqlstate, "22023") << expression << ": " << refused.error().message;
    EXPECT_TRUE(refused.error().message.contains("public.t")) << expression << ": " << refused.error().message;
  }
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "(not ";
  const auto refused = peek(begin + deep);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "54001");
  const auto earlier = source_->query(
      "SELECT pg_logical_slot_peek_binary_changes('filtered', NULL, NULL, 'proto_version', '2', 'publication_names', "
      "'everything', 'batch_version', '2', 'row_filters', '')");
  ASSERT_FALSE(earlier);
  EXPECT_EQ(earlier.error().sqlstate, "22023");
}

}  // namespace
}  // namespace thalweg::capture
