#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "capture/logical/batch_reader.h"
#include "capture/logical/capture_harness.h"
#include "capture/logical/pgoutput_parser.h"
#include "capture/logical/truncated_partition.h"
#include "pg/replication_stream.h"

// thalweg_output (engine/outputplugin) beside pgoutput: the same WAL through both, message by message.

namespace thalweg::capture {
namespace {

using Bytes = std::vector<std::byte>;

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16)));
  }
  return bytes;
}

// A message's kind and where in it a difference begins say more than two strings of hexadecimal digits.
std::string describe_difference(const std::vector<Bytes>& expected, const std::vector<Bytes>& actual) {
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (expected[i] == actual[i]) continue;
    const auto at = std::ranges::mismatch(expected[i], actual[i]).in1 - expected[i].begin();
    return "message " + std::to_string(i) + " of kind " + static_cast<char>(expected[i].at(0)) + " at byte " +
           std::to_string(at);
  }
  return expected.size() == actual.size()
             ? ""
             : std::to_string(expected.size()) + " messages, here " + std::to_string(actual.size());
}

class OutputPluginTest : public CaptureHarness {
 protected:
  static constexpr const char* kReader = "reads a slot";

  // A stream that a test has just closed may hold its slot for a moment more.
  void TearDown() override {
    for (const std::string slot : {"both_pgoutput", "both_thalweg_output"}) {
      const auto dropped = drop_slot(*source_, slot, kReader, kPatience);
      EXPECT_TRUE(dropped) << dropped.error().message;
    }
    CaptureHarness::TearDown();
  }
  void make_slots(const std::string& published = "ALL TABLES") {
    run("CREATE PUBLICATION everything FOR " + published + " WITH (publish_via_partition_root)");
    for (const std::string plugin : {"pgoutput", "thalweg_output"}) {
      run("SELECT pg_create_logical_replication_slot('both_" + plugin + "', '" + plugin + "', false, true)");
    }
  }
  static std::string changes(const std::string& plugin, const std::string& more) {
    return "SELECT encode(data, 'hex') FROM pg_logical_slot_peek_binary_changes('both_" + plugin +
           "', NULL, NULL, 'proto_version', '3', 'publication_names', 'everything', 'messages', 'true', 'two_phase', "
           "'on'" +
           more + ")";
  }
  std::vector<Bytes> decode(const std::string& plugin, const std::string& more) {
    std::vector<Bytes> out;
    const auto rows = source_->query(changes(plugin, more));
    EXPECT_TRUE(rows) << rows.error().message;
    for (size_t row = 0; rows && row < rows->size(); ++row) {
      out.push_back(from_hex(rows->text(static_cast<int>(row), 0)));
    }
    return out;
  }
  // The messages in the batches (`batches_`), without the lists of committed subtransactions, which go to `lists_`.
  std::vector<Bytes> decode_batches(const std::string& more) {
    batches_ = decode("thalweg_output", more + ", 'batch_version', '2'");
    lists_.clear();
    std::vector<Bytes> out;
    for (const Bytes& bytes : batches_) {
      BatchReader reader(bytes);
      auto message = reader.next();
      for (; message && *message; message = reader.next()) {
        const auto content = (*message)->bytes;
        (content[0] == std::byte{'k'} ? lists_ : out).emplace_back(content.begin(), content.end());
      }
      EXPECT_TRUE(message) << message.error().message;
    }
    return out;
  }
  void expect_same() {
    for (const std::string binary : {"true", "false"}) {
      for (const std::string streaming : {"on", "off"}) {
        const std::string more = ", 'binary', '" + binary + "', 'streaming', '" + streaming + "'";
        const auto expected = decode("pgoutput", more);
        EXPECT_FALSE(expected.empty());
        EXPECT_EQ(describe_difference(expected, decode_batches(more)), "") << more;
        EXPECT_LT(batches_.size(), expected.size()) << more;
      }
    }
  }

  std::vector<Bytes> batches_;
  std::vector<Bytes> lists_;
};

TEST_F(OutputPluginTest, SendsWhatPgoutputSends) {
  run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 100);"
      "CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, at timestamptz, m mood, s small, l int[]);"
      "CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY FULL;"
      "CREATE TABLE \"Straße\" (id int PRIMARY KEY, big text); ALTER TABLE \"Straße\" ALTER big SET STORAGE EXTERNAL;"
      "CREATE TABLE g (id int PRIMARY KEY, gone int, twice int GENERATED ALWAYS AS (id * 2) STORED, last text);"
      "ALTER TABLE g DROP gone;"
      "CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
      "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
      "CREATE TABLE p2 (v text, id int NOT NULL PRIMARY KEY);"
      "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)");
  make_slots();
  run("BEGIN; INSERT INTO t VALUES (1, 'one', 1.5, now(), 'ok', 7, '{1,2}'), (2, NULL, 'NaN', 'infinity', NULL, NULL, "
      "NULL); UPDATE t SET v = 'uno' WHERE id = 1; UPDATE t SET id = 3 WHERE id = 2; DELETE FROM t; COMMIT");
  run("BEGIN; INSERT INTO f VALUES (1, 'x'); UPDATE f SET b = NULL; DELETE FROM f; COMMIT");
  run("INSERT INTO \"Straße\" VALUES (1, repeat('y', 9000)); UPDATE \"Straße\" SET id = 2");
  run("INSERT INTO g (id, last) VALUES (1, 'x'); UPDATE g SET last = 'y'; DELETE FROM g");
  run("INSERT INTO p VALUES (1, 'a'), (11, 'b'); UPDATE p SET v = 'c'; UPDATE p SET id = 2 WHERE id = 11; DELETE FROM "
      "p");
  run("TRUNCATE t, f RESTART IDENTITY CASCADE");
  run("ALTER TABLE t ADD extra bytea; INSERT INTO t (id, extra) VALUES (2, '\\x00ff')");
  run("SELECT pg_logical_emit_message(true, 'prefix', 'in'), pg_logical_emit_message(false, 'prefix', 'out')");
  run("INSERT INTO t (id, v) SELECT i, repeat('x', 30) FROM generate_series(100, 3000) i");
  run("BEGIN; INSERT INTO t (id, v) SELECT i, repeat('x', 30) FROM generate_series(5000, 7000) i; SAVEPOINT a;"
      "INSERT INTO t (id, v) SELECT i, repeat('x', 30) FROM generate_series(7001, 9000) i; ROLLBACK TO a;"
      "SELECT pg_logical_emit_message(false, 'prefix', 'between'); INSERT INTO t (id) VALUES (9001); COMMIT");
  run("BEGIN; INSERT INTO t (id, v) SELECT i, repeat('x', 30) FROM generate_series(10000, 13000) i; ROLLBACK");
  run("BEGIN; INSERT INTO t (id) VALUES (-1); PREPARE TRANSACTION 'kept'");
  run("BEGIN; INSERT INTO t (id, v) SELECT -i, repeat('x', 30) FROM generate_series(10, 3000) i;"
      "PREPARE TRANSACTION 'dropped'");
  run("COMMIT PREPARED 'kept'");
  run("ROLLBACK PREPARED 'dropped'");
  expect_same();
}

TEST_F(OutputPluginTest, FollowsThePublication) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE other (id int PRIMARY KEY)");
  make_slots();
  run("DROP PUBLICATION everything; CREATE PUBLICATION everything FOR TABLE t WITH (publish = 'insert, delete')");
  run("INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO other VALUES (1); UPDATE t SET v = 'c'; DELETE FROM t");
  run("INSERT INTO other VALUES (2)");  // an empty transaction for the stream
  if (value("SELECT current_setting('server_version_num')::int >= 150000") == "t") {
    run("ALTER PUBLICATION everything SET TABLE t (id) WHERE (id > 10); INSERT INTO t VALUES (5, 'no'), (15, 'yes')");
  }
  run("ALTER PUBLICATION everything SET TABLE other; INSERT INTO other VALUES (3); INSERT INTO t VALUES (6, 'no')");
  expect_same();
}

TEST_F(OutputPluginTest, ABatchIsATransactionOrAPartOfIt) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  make_slots();
  run("INSERT INTO t VALUES (1, 'a')");
  run("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(2, 3000) i");
  decode_batches("");
  ASSERT_GT(batches_.size(), 4u);
  const auto last_kind = [](const Bytes& batch) {
    BatchReader reader(batch);
    char kind = '\0';
    for (auto message = reader.next(); message && *message; message = reader.next()) {
      kind = static_cast<char>((*message)->bytes[0]);
    }
    return kind;
  };
  EXPECT_EQ(last_kind(batches_.front()), 'C');
  EXPECT_EQ(last_kind(batches_[1]), 'I');
  EXPECT_EQ(last_kind(batches_.back()), 'C');
  for (const Bytes& batch : batches_) EXPECT_LT(batch.size(), 64u * 1024 + 200);
}

// A server that is behind reads ahead, and batches gather over transactions; the positions that it reports meanwhile
// are never beyond what it has sent.
TEST_F(OutputPluginTest, GathersOverTransactionsWhenBehind) {
  constexpr int kTransactions = 6000;
  run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int)");
  make_slots("TABLE t");
  run("SET synchronous_commit = off");
  run("DO $$ BEGIN FOR i IN 1 .. " + std::to_string(kTransactions) +
      " LOOP INSERT INTO t VALUES (i); COMMIT;"
      "IF i % 100 = 0 THEN INSERT INTO other VALUES (i); COMMIT; END IF; END LOOP; END $$");
  auto stream = pg::ReplicationStream::open(conninfo_, kReader);
  ASSERT_TRUE(stream) << stream.error().message;
  const auto started = stream->start(
      "both_thalweg_output", {}, {"everything"},
      {.plugin = pg::OutputPlugin::thalweg_output, .batch_version = kBatchVersion, .binary = true, .messages = false});
  ASSERT_TRUE(started) << started.error().message;
  int commits = 0;
  int batches = 0;
  int said = 0;
  base::Lsn passed;  // what a keepalive said
  const auto read = [&](int until) {
    while (commits < until) {
      auto message = stream->receive(kPatience);
      ASSERT_TRUE(message) << message.error().message;
      ASSERT_TRUE(*message) << commits << " transactions came";
      if ((*message)->is_keepalive) {
        ++said;
        passed = std::max(passed, (*message)->wal_end);
        continue;
      }
      if (++batches % 8 == 0) {
        ASSERT_TRUE(stream->send_feedback({.written = {}, .flushed = {}, .applied = {}, .reply_requested = true}));
      }
      BatchReader batch((*message)->payload);
      for (auto batched = batch.next(); batched && *batched; batched = batch.next()) {
        const auto bytes = (*batched)->bytes;
        if (bytes[0] != std::byte{'C'}) continue;
        ++commits;
        ASSERT_GT(lcr::load_network<uint64_t>(&bytes[10]), passed.value) << "transaction " << commits;  // its end
      }
    }
  };
  read(kTransactions);
  EXPECT_GT(said, 0);
  EXPECT_LT(batches, kTransactions / 8);
  run("INSERT INTO t VALUES (0)");  // the end of WAL is not waited for
  read(kTransactions + 1);
}

// Where the first expectation fails, the server tells of the abort: from that release on pgoutput may stream
// (docs/decisions/subtransactions.md).
TEST_F(OutputPluginTest, SaysWhichSubtransactionsCommittedWherePgoutputForgetsAnAbort) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL");
  make_slots();
  struct Reader {
    std::optional<pg::ReplicationStream> stream;
    std::vector<Bytes> messages;
  };
  std::map<pg::OutputPlugin, Reader> readers;
  for (const auto plugin : {pg::OutputPlugin::pgoutput, pg::OutputPlugin::thalweg_output}) {
    auto stream = pg::ReplicationStream::open(conninfo_, kReader);
    ASSERT_TRUE(stream) << stream.error().message;
    const auto started = stream->start("both_" + std::string{pg::name_of(plugin)}, {}, {"everything"},
                                       {.plugin = plugin, .batch_version = kBatchVersion});
    ASSERT_TRUE(started) << started.error().message;
    readers[plugin].stream = std::move(*stream);
  }
  const auto read_until = [&](char kind, int times) {
    for (auto& [plugin, reader] : readers) {
      const auto seen = [&] {
        return std::ranges::count(reader.messages, std::byte(kind), [](const Bytes& message) { return message[0]; });
      };
      while (seen() < times) {
        const auto message = reader.stream->receive(kPatience);
        ASSERT_TRUE(message && *message) << "message " << kind << " of " << pg::name_of(plugin);
        if ((*message)->is_keepalive) continue;
        const auto payload = (*message)->payload;
        if (plugin == pg::OutputPlugin::pgoutput) {
          reader.messages.emplace_back(payload.begin(), payload.end());
          continue;
        }
        BatchReader batch(payload);
        for (auto batched = batch.next(); batched && *batched; batched = batch.next()) {
          reader.messages.emplace_back((*batched)->bytes.begin(), (*batched)->bytes.end());
        }
      }
    }
  };
  run("BEGIN; INSERT INTO t VALUES (1, 'kept'); SAVEPOINT a; INSERT INTO t VALUES (2, repeat('x', 12000000))");
  read_until('I', 2);
  run("ROLLBACK TO a; SAVEPOINT b; INSERT INTO t VALUES (3, 'kept, too'); RELEASE b; COMMIT");
  read_until('c', 1);
  for (const auto& [plugin, reader] : readers) {
    std::vector<uint32_t> streamed;  // the transaction, what was rolled back, what committed
    for (const Bytes& message : reader.messages) {
      EXPECT_NE(message[0], std::byte{'A'}) << pg::name_of(plugin);
      if (message[0] == std::byte{'I'}) streamed.push_back(lcr::load_network<uint32_t>(&message[1]));
    }
    ASSERT_EQ(streamed.size(), 3u) << pg::name_of(plugin);
    const auto list =
        std::ranges::find(reader.messages, std::byte{'k'}, [](const Bytes& message) { return message[0]; });
    EXPECT_EQ(list == reader.messages.end(), plugin == pg::OutputPlugin::pgoutput);
    if (list == reader.messages.end()) continue;
    ASSERT_EQ(list->size(), 13u) << "one subtransaction";
    EXPECT_EQ(lcr::load_network<uint32_t>(&(*list)[1]), streamed[0]);
    EXPECT_EQ(lcr::load_network<uint32_t>(&(*list)[9]), streamed[2]);
  }
}

// Named by the root's and the partition's oid: pgoutput sends nothing of them. Users' messages of that prefix are
// dropped.
TEST_F(OutputPluginTest, TellsOfPartitionsThatAreTruncatedAlone) {
  run("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);"
      "CREATE TABLE lowest PARTITION OF low FOR VALUES FROM (0) TO (5);"
      "CREATE TABLE other (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE others PARTITION OF other FOR VALUES FROM (0) TO (10)");
  make_slots("TABLE p");
  run("TRUNCATE lowest");
  run("TRUNCATE low, p");
  run("TRUNCATE low");
  run("TRUNCATE others");
  run("BEGIN; SAVEPOINT a; TRUNCATE lowest; ROLLBACK TO a; INSERT INTO p VALUES (1); COMMIT");
  run("SELECT pg_logical_emit_message(t, 'thalweg_output.truncated_partition', '\\x0001'::bytea) FROM "
      "unnest(ARRAY[true, false]) t");
  const auto messages_of = [&](const std::string& version) {
    std::vector<std::string> found;
    PgoutputParser parser;
    for (const Bytes& bytes : decode("thalweg_output", ", 'batch_version', '" + version + "'")) {
      BatchReader reader(bytes);
      for (auto message = reader.next(); message && *message; message = reader.next()) {
        const auto parsed = parser.parse((*message)->bytes);
        EXPECT_TRUE(parsed) << parsed.error().message;
        if ((*parsed)->kind == MessageKind::truncate) found.emplace_back("TRUNCATE");
        if ((*parsed)->kind != MessageKind::message) continue;
        EXPECT_EQ((*parsed)->prefix, kTruncatedPartitionPrefix);
        const auto named = read_truncated_partition((*parsed)->content);
        EXPECT_TRUE(named);
        EXPECT_EQ(named->xid, parser.open_xid());
        EXPECT_EQ(std::to_string(named->table.value), value("SELECT 'p'::regclass::oid"));
        EXPECT_EQ(std::to_string(named->mark.partition.value), value("SELECT 'lowest'::regclass::oid"));
        found.push_back(named->mark.schema_name + "." + named->mark.partition_name);
      }
    }
    return found;
  };
  EXPECT_EQ(messages_of("3"), (std::vector<std::string>{"TRUNCATE"}));
  EXPECT_EQ(messages_of("4"), (std::vector<std::string>{"public.lowest", "TRUNCATE", "public.lowest"}));
}

TEST_F(OutputPluginTest, AReaderThatDoesNotAskForTheListGetsWholeTransactions) {
  run("CREATE TABLE t (id int PRIMARY KEY, v text)");
  make_slots();
  run("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i");
  const auto whole = decode("thalweg_output", ", 'streaming', 'on', 'batch_version', '1'");
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(whole[0][0], std::byte{1});
  BatchReader reader(whole[0]);
  const auto first = reader.next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->bytes[0], std::byte{'B'});
}

TEST_F(OutputPluginTest, AnErrorLeavesNothingBehind) {
  // A type whose values can be stored but not written out.
  run("CREATE TYPE mute; CREATE FUNCTION mute_in(cstring) RETURNS mute LANGUAGE internal IMMUTABLE STRICT AS 'int4in';"
      "CREATE FUNCTION mute_out(mute) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'enum_out';"
      "CREATE TYPE mute (INPUT = mute_in, OUTPUT = mute_out, LIKE = int4);"
      "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE m (id int PRIMARY KEY, v mute)");
  make_slots();
  run("BEGIN; INSERT INTO t VALUES (1); INSERT INTO m VALUES (2, '3'); COMMIT");
  // The second row's message ends in its middle, behind whole ones.
  const auto failed = source_->query(changes("thalweg_output", ", 'batch_version', '2'"));
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("invalid internal value for enum"), std::string::npos);
  // From its start the publication, looked up as of each change, must not have had the table.
  run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'both_%'");
  run("DROP PUBLICATION everything");
  make_slots("TABLE t");
  run("BEGIN; INSERT INTO t VALUES (4); INSERT INTO m VALUES (5, '6'); INSERT INTO t VALUES (7); COMMIT");
  expect_same();  // in the session that has failed
}

TEST_F(OutputPluginTest, AReaderHasToKnowBatches) {
  make_slots();
  const auto missing = source_->query(changes("thalweg_output", ""));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("option batch_version is missing"), std::string::npos);
  const auto unknown = source_->query(changes("thalweg_output", ", 'batch_version', '5'"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().sqlstate, "0A000");
  EXPECT_NE(unknown.error().message.find("batch_version \"5\" is not supported, only 1 to 4"), std::string::npos);
  const auto other = source_->query(changes("thalweg_output", ", 'batch_version', '1', 'nonsense', 'x'"));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("nonsense"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::capture
