#include <gtest/gtest.h>

#include <future>
#include <random>
#include <set>

#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_parser.h"
#include "dictionary/mined_source.h"
#include "mining/builder.h"
#include "pg/replication_stream.h"

// Frames built from the WAL beside those that logical decoding gives for the same transactions of a real server.

namespace thalweg::capture {
namespace {

using dictionary::MinedSource;

// Frames as text, so that a difference can be read.
std::string shown(const lcr::FrameView& frame) {
  std::string text =
      fmt::format("kind {} flags {} xid {} relation {} version {} lsn {}", static_cast<int>(frame.kind()),
                  frame.header().flags, frame.xid().value, frame.header().relation, frame.header().table_version,
                  to_string(base::Lsn{frame.header().lsn}));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&frame.header()) + sizeof(lcr::FrameHeader);
  for (uint32_t i = 0; i < frame.header().body_length; ++i)
    text += fmt::format("{}{:02x}", i == 0 ? " " : "", bytes[i]);
  return text;
}

class Frames final : public FrameSink {
 public:
  std::span<std::byte> reserve(size_t frame_bytes) override {
    bytes_.resize(frame_bytes);
    return std::as_writable_bytes(std::span{bytes_});
  }
  void enqueue() override { take(std::as_bytes(std::span{bytes_})); }
  void take(std::span<const std::byte> frame) {
    std::vector<uint64_t> aligned((frame.size() + 7) / 8);
    std::memcpy(aligned.data(), frame.data(), frame.size());
    const auto view = lcr::FrameView::decode(std::as_bytes(std::span{aligned}));
    ASSERT_TRUE(view) << view.error().message;
    if (view->kind() == lcr::FrameKind::progress) return;
    // Logical decoding repeats a description after each invalidation.
    if (view->kind() == lcr::FrameKind::table && !described_.insert(shown(*view)).second) return;
    all.push_back(shown(*view));
  }
  std::vector<std::string> all;

 private:
  std::vector<char> bytes_;
  std::set<std::string> described_;
};

// The builder's changes as frames. What came in pieces is shown as if it had come whole: at its commit, without what
// was rolled back.
class FramesOf final : public mining::ChangeSink {
 public:
  explicit FramesOf(Frames& frames) : frames_(frames) {}
  base::Result<void> begin(base::Xid xid, const lcr::TransactionMark& mark) override {
    frames_.take(lcr::make_begin_frame(xid, mark));
    return {};
  }
  base::Result<void> describe(const lcr::TableDescription& table) override {
    lcr::TableDescription& last = tables_[table.relation];
    const uint32_t version = last.version + 1;
    last = table;
    last.version = version;
    undescribed_.insert(table.relation);
    return {};
  }
  base::Result<void> change(const lcr::RowFrame& row) override {
    lcr::RowFrame whole = row;
    whole.flags &= ~lcr::kStreamed;
    whole.subxid = {};
    whole.table_version = tables_.at(row.relation).version;
    std::vector<std::byte> bytes(lcr::row_frame_bytes(whole));
    lcr::write_row_frame(whole, bytes);
    take(row.flags, row.xid, row.subxid, {row.relation}, std::move(bytes));
    return {};
  }
  base::Result<void> truncate(const mining::TruncateChange& truncate) override {
    const auto flags = static_cast<uint16_t>(truncate.flags & ~lcr::kStreamed);
    take(truncate.flags, truncate.xid, truncate.subxid, {truncate.relations.begin(), truncate.relations.end()},
         lcr::make_truncate_frame(truncate.xid, {}, truncate.lsn, flags, truncate.relations));
    return {};
  }
  base::Result<void> message(base::Xid, std::string_view) override { return {}; }
  base::Result<void> rolled_back(base::Xid xid, base::Xid subxid, base::Lsn) override {
    EXPECT_TRUE(pieces_.contains(xid)) << "nothing of it went out";
    std::erase_if(pieces_[xid], [&](const Piece& piece) { return !subxid || piece.subxid == subxid; });
    if (!subxid) pieces_.erase(xid);
    return {};
  }
  base::Result<void> commit(base::Xid xid, const lcr::TransactionMark& mark) override {
    frames_.take(lcr::make_commit_frame(xid, false, mark));
    return {};
  }
  base::Result<void> commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                     std::span<const base::Xid> subtransactions) override {
    ++in_pieces;
    auto pieces = pieces_.extract(xid);
    EXPECT_FALSE(pieces.empty());
    std::erase_if(pieces.mapped(), [&](const Piece& piece) {
      return piece.subxid && std::ranges::find(subtransactions, piece.subxid) == subtransactions.end();
    });
    if (pieces.mapped().empty()) return {};
    lcr::TransactionMark begun = mark;
    begun.end_lsn = {};
    frames_.take(lcr::make_begin_frame(xid, begun));
    for (Piece& piece : pieces.mapped()) take(0, xid, {}, piece.relations, std::move(piece.frame));
    frames_.take(lcr::make_commit_frame(xid, false, mark));
    return {};
  }
  size_t in_pieces = 0;  // transactions

 private:
  struct Piece {
    base::Xid subxid;
    std::vector<base::RelationId> relations;
    std::vector<std::byte> frame;
  };
  void take(uint16_t flags, base::Xid xid, base::Xid subxid, std::vector<base::RelationId> relations,
            std::vector<std::byte> frame) {
    if ((flags & lcr::kStreamed) != 0) {
      pieces_[xid].push_back({subxid, std::move(relations), std::move(frame)});
      return;
    }
    for (const base::RelationId relation : relations) {
      if (undescribed_.erase(relation) != 0) frames_.take(lcr::make_table_frame(tables_.at(relation)));
    }
    frames_.take(frame);
  }

  Frames& frames_;
  std::unordered_map<base::RelationId, lcr::TableDescription> tables_;
  std::set<base::RelationId> undescribed_;
  std::unordered_map<base::Xid, std::vector<Piece>> pieces_;
};

class MinedFramesTest : public ::testing::Test {
 protected:
  MinedFramesTest() : source_(dictionary::mined_options({{"logical_decoding_work_mem", "1GB"}})) {}

  void run(const std::string& sql) { MinedSource::value(session_, sql); }
  // The capture starts once `before` has run.
  void begin(const std::string& before) {
    run(before);
    run("CREATE PUBLICATION everything FOR ALL TABLES");
    source_.keep_wal();
    run("SELECT pg_create_logical_replication_slot('decoded', 'pgoutput')");
    start(source_.first_contents());
  }
  void start(dictionary::FirstContents contents) {
    from_ = contents.as_of;
    source_.begin(std::move(contents));
    builder_.emplace(source_.dictionary(),
                     mining::BuilderOptions{.from = from_,
                                            .is_wanted = [](auto) { return mining::Wanted::everything; },
                                            .sink = &sink_,
                                            .memory_bytes = memory_bytes_});
    source_.give_to([this](const auto& record, const auto& parts, const auto& format) {
      return builder_->apply(record, parts, format);
    });
  }
  void compare() {
    const base::Lsn end = *base::parse_lsn(MinedSource::value(session_, "SELECT pg_current_wal_insert_lsn()"));
    ASSERT_TRUE(source_.catch_up());
    Frames decoded;
    decode(end, decoded);
    ASSERT_FALSE(decoded.all.empty());
    for (size_t i = 0; i < std::min(mined_.all.size(), decoded.all.size()); ++i) {
      ASSERT_EQ(mined_.all[i], decoded.all[i]) << "frame " << i;
    }
    EXPECT_EQ(mined_.all.size(), decoded.all.size());
  }

  pg::Connection& session() { return session_; }
  pg::Connection connect() const { return source_.connect(); }
  void keep_wal() { source_.keep_wal(); }
  const MinedSource& source() const { return source_; }
  dictionary::FirstContents first_contents() const { return source_.first_contents(); }
  // Nearly all transactions come in pieces; what is open at the start is less than this.
  void allow_little_memory() { memory_bytes_ = 3000; }
  const mining::Builder& builder() const { return *builder_; }
  size_t in_pieces() const { return sink_.in_pieces; }
  testing::AssertionResult source_catch_up() { return source_.catch_up(); }
  void catch_up() { ASSERT_TRUE(source_.catch_up()); }
  const std::vector<std::string>& mined() const { return mined_.all; }

 private:
  void decode(base::Lsn end, Frames& frames) {
    auto stream = pg::ReplicationStream::open(base::Conninfo{source_.cluster().conninfo()}, "builder");
    ASSERT_TRUE(stream) << stream.error().message;
    const auto started = stream->start("decoded", from_, {"everything"},
                                       {.plugin = pg::OutputPlugin::pgoutput, .binary = true, .streaming = false});
    ASSERT_TRUE(started) << started.error().message;
    PgoutputParser parser;
    FrameTranslator translator(frames);
    while (true) {
      const auto message = stream->receive(std::chrono::seconds{10});
      ASSERT_TRUE(message) << message.error().message;
      if (!*message) continue;
      if ((*message)->is_keepalive) {
        if ((*message)->wal_end >= end && !parser.in_transaction()) break;
        (void)stream->send_feedback({.written = (*message)->wal_end, .flushed = {}, .applied = {}});
        continue;
      }
      const auto parsed = parser.parse((*message)->payload);
      ASSERT_TRUE(parsed) << parsed.error().message;
      const auto done = translator.translate(**parsed, parser, (*message)->wal_start);
      ASSERT_TRUE(done) << done.error().message;
    }
  }

  MinedSource source_;
  pg::Connection session_ = source_.connect();
  base::Lsn from_;
  uint64_t memory_bytes_ = UINT64_MAX;
  std::optional<mining::Builder> builder_;
  Frames mined_;
  FramesOf sink_{mined_};
};

TEST_F(MinedFramesTest, RowsSubtransactionsAndPreparedTransactions) {
  begin(
      "CREATE TABLE t (id int PRIMARY KEY, note text, amount numeric(12,3)); CREATE TABLE f (a int, b text);"
      " ALTER TABLE f REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 'before', 1)");
  run("INSERT INTO t SELECT n, repeat('x', n), n / 7.0 FROM generate_series(2, 400) n");
  run("UPDATE t SET amount = -amount WHERE id % 3 = 0");
  run("UPDATE t SET id = -id WHERE id % 5 = 0");
  run("DELETE FROM t WHERE id % 11 = 0");
  run("INSERT INTO f SELECT n, CASE WHEN n % 2 = 0 THEN 'even' END FROM generate_series(1, 50) n");
  run("UPDATE f SET b = 'odd' WHERE a % 2 = 1");
  run("DELETE FROM f WHERE a < 10");
  run("BEGIN; INSERT INTO t VALUES (1001); SAVEPOINT a; INSERT INTO t VALUES (1002); ROLLBACK TO a;"
      " INSERT INTO t VALUES (1003); SAVEPOINT b; INSERT INTO t VALUES (1004); SAVEPOINT c; INSERT INTO t VALUES "
      "(1005);"
      " RELEASE c; ROLLBACK TO b; SAVEPOINT d; INSERT INTO t VALUES (1006); COMMIT");
  run("BEGIN; INSERT INTO t VALUES (1010); ROLLBACK");
  run("BEGIN; INSERT INTO t VALUES (1011); PREPARE TRANSACTION 'p'");
  run("BEGIN; INSERT INTO t VALUES (1012); PREPARE TRANSACTION 'q'");
  run("INSERT INTO t VALUES (1013)");
  run("COMMIT PREPARED 'p'");
  run("ROLLBACK PREPARED 'q'");
  run("INSERT INTO t VALUES (1013) ON CONFLICT DO NOTHING");
  run("INSERT INTO t VALUES (1013), (1014) ON CONFLICT (id) DO UPDATE SET note = 'again'");
  run("TRUNCATE f RESTART IDENTITY");
  run("TRUNCATE t, f CASCADE");
  compare();
}

TEST_F(MinedFramesTest, TransactionsThatComeInPieces) {
  allow_little_memory();
  begin(
      "CREATE TABLE t (id int PRIMARY KEY, note text); CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY "
      "FULL; INSERT INTO f VALUES (0, 'before'); INSERT INTO t VALUES (0, 'before')");
  pg::Connection other = connect();
  run("BEGIN; INSERT INTO t SELECT n, repeat(md5(n::text), 200) FROM generate_series(1, 20) n");
  MinedSource::value(other, "BEGIN; INSERT INTO f SELECT n, 'of the other' FROM generate_series(1, 20) n");
  run("SAVEPOINT a; UPDATE t SET note = 'gone'; SAVEPOINT b; DELETE FROM t WHERE id > 10; RELEASE b; ROLLBACK TO a");
  MinedSource::value(other, "SAVEPOINT c; DELETE FROM f WHERE a < 10; RELEASE c; COMMIT");
  run("SAVEPOINT d; TRUNCATE f; SAVEPOINT e; INSERT INTO t VALUES (100, 'kept'); RELEASE e; RELEASE d; COMMIT");
  run("BEGIN; INSERT INTO t VALUES (200, 'gone'); ROLLBACK");
  run("BEGIN; INSERT INTO t VALUES (201, 'prepared'); PREPARE TRANSACTION 'p'");
  run("INSERT INTO t VALUES (202) ON CONFLICT DO NOTHING");
  EXPECT_FALSE(builder().first_open()) << "nothing was read yet";
  run("COMMIT PREPARED 'p'");
  compare();
  EXPECT_EQ(in_pieces(), 2U);
  EXPECT_EQ(builder().held_bytes(), 0U);
  EXPECT_FALSE(builder().first_open());
  MinedSource::value(other, "BEGIN; INSERT INTO f VALUES (1)");
  const base::Lsn before = *base::parse_lsn(MinedSource::value(session(), "SELECT pg_current_wal_insert_lsn()"));
  run("INSERT INTO t VALUES (300)");
  catch_up();
  EXPECT_TRUE(builder().first_open());
  EXPECT_LT(builder().first_open(), before);
}

// Type aclitem has no binary form: no row with one can be sent.
TEST_F(MinedFramesTest, WhatCannotBeReadCountsOnceItIsCommitted) {
  begin("CREATE TABLE t (id int PRIMARY KEY)");
  run("BEGIN; ALTER TABLE t ADD COLUMN a aclitem; INSERT INTO t VALUES (1), (2); ROLLBACK");
  run("BEGIN; INSERT INTO t VALUES (3); SAVEPOINT s; ALTER TABLE t ADD COLUMN a aclitem; INSERT INTO t VALUES (4);"
      " ROLLBACK TO s; INSERT INTO t VALUES (5); COMMIT");
  compare();
  run("ALTER TABLE t ADD COLUMN a aclitem");
  run("INSERT INTO t VALUES (6)");
  const auto caught_up = source_catch_up();
  EXPECT_FALSE(caught_up);
  EXPECT_NE(std::string{caught_up.message()}.find("column a"), std::string::npos) << caught_up.message();
}

TEST_F(MinedFramesTest, ValuesOutsideOfTheirRows) {
  begin(
      "CREATE TABLE t (id int PRIMARY KEY, a text, b text, c bytea); ALTER TABLE t ALTER b SET STORAGE EXTERNAL;"
      " ALTER TABLE t ALTER c SET COMPRESSION lz4; CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY "
      "FULL");
  run("INSERT INTO t SELECT n, repeat(md5(n::text), n * 20), repeat(md5(n::text), n * 30),"
      " decode(repeat(md5(n::text), n * 40), 'hex') FROM generate_series(1, 40) n");
  run("UPDATE t SET a = a || 'x' WHERE id % 2 = 0");
  run("UPDATE t SET id = id + 1000 WHERE id % 3 = 0");
  run("UPDATE t SET b = NULL WHERE id % 7 = 0");
  run("INSERT INTO f SELECT n, repeat(md5(n::text), 200) FROM generate_series(1, 10) n");
  run("UPDATE f SET a = a + 1");
  run("DELETE FROM f WHERE a > 5");
  run("COPY t FROM PROGRAM 'for i in 2001 2002 2003; do printf \"%s\\t\" $i; head -c 60000 /dev/urandom | base64 -w0;"
      " printf \"\\t%s\\t%s\\n\" b c; done'");
  run("BEGIN; INSERT INTO t VALUES (3001, repeat('y', 100000), repeat('z', 5000)); SAVEPOINT a;"
      " INSERT INTO t VALUES (3002, repeat('y', 100000), repeat('w', 5000)); ROLLBACK TO a;"
      " INSERT INTO t VALUES (3003, repeat('v', 100000), repeat('v', 5000)); COMMIT");
  compare();
}

TEST_F(MinedFramesTest, ChangesOfTheSchemaBetweenRowsAndWithinTransactions) {
  begin("CREATE TABLE t (id int PRIMARY KEY, a text)");
  run("INSERT INTO t VALUES (1, 'one')");
  run("BEGIN; ALTER TABLE t ADD COLUMN b int; INSERT INTO t VALUES (2, 'two', 2); SAVEPOINT s; ALTER TABLE t DROP "
      "COLUMN a;"
      " INSERT INTO t VALUES (3, 3); ROLLBACK TO s; INSERT INTO t VALUES (4, 'four', 4); COMMIT");
  run("BEGIN; CREATE TABLE n (id int PRIMARY KEY); INSERT INTO n VALUES (1); ALTER TABLE n ADD COLUMN x text DEFAULT "
      "'d';"
      " INSERT INTO n VALUES (2); COMMIT");
  run("ALTER TABLE t ALTER b TYPE bigint");
  run("INSERT INTO t VALUES (5, 'five', 5)");
  run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (6, 'six', 6); COMMIT");
  run("CREATE TABLE copied AS SELECT * FROM t");
  run("ALTER TABLE t RENAME TO renamed; INSERT INTO renamed VALUES (7, 'seven', 7)");
  run("VACUUM FULL renamed");
  run("INSERT INTO renamed VALUES (8, 'eight', 8)");
  run("ALTER TABLE renamed REPLICA IDENTITY FULL; UPDATE renamed SET a = 'x' WHERE id = 8");
  run("CREATE MATERIALIZED VIEW m AS SELECT * FROM renamed; REFRESH MATERIALIZED VIEW m");
  run("CREATE UNLOGGED TABLE u (id int); INSERT INTO u VALUES (1); CREATE TEMP TABLE v (id int); INSERT INTO v VALUES "
      "(1)");
  compare();
}

TEST_F(MinedFramesTest, ValuesOfTheTypes) {
  run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN short AS text CHECK (length(value) < 10)");
  begin(
      "CREATE TABLE v (id serial PRIMARY KEY, a bool, b bytea, c \"char\", d name, e int8, f int2, g oid, h json, i "
      "point,"
      " j lseg, k box, l line, m float4, n float8, o circle, p macaddr, q macaddr8, r money, s char(7), t varchar, u "
      "date,"
      " v time, w timestamp, x timestamptz, y interval, z timetz, aa bit(5), ab varbit, ac numeric, ad uuid, ae pg_lsn,"
      " af xid8, ag tid, ah mood, ai short, aj int[], ak text[], al numeric[], am mood[], ao timestamptz[], ap "
      "\"char\"[],"
      " an bool GENERATED ALWAYS AS (f > 3) STORED)");
  run("INSERT INTO v SELECT nextval('v_id_seq'), n % 2 = 0, decode(md5(n::text), 'hex'), chr(n % 90 + 33)::\"char\", "
      "'name ' || n,"
      " n * 1234567890123, n % 30000, n, '{\"n\": 1}', point(n, -n / 3.0), lseg(point(1, n), point(n, 2)),"
      " box(point(n, n), point(0, 1)), line(point(0, 0), point(1, n)), n / 3.0, -n / 7.0, circle(point(1, 2), n),"
      " '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', n::numeric::money, 'c' || n % 1000, repeat('v', n % 200),"
      " '2000-01-01'::date + n * 100, make_time(n % 24, n % 60, 1.5), '1999-01-01'::timestamp + n * interval '1 hour',"
      " 'infinity', make_interval(n % 9, 1, 2, 3, 4), '12:00:00+05:30', B'10101', (n % 100)::bit(9)::varbit,"
      " (n - 500) * 1000000.12345678 ^ (n % 9), gen_random_uuid(), '16/B374D848', n::text::xid8, '(3,4)',"
      " CASE n % 2 WHEN 0 THEN 'sad' ELSE 'ok' END::mood, 'short', ARRAY[n, NULL, -n], ARRAY['a', repeat('b', n % "
      "300), NULL],"
      " ARRAY[[1.5, n], [3, 'NaN']]::numeric[], ARRAY['ok', 'sad']::mood[], ARRAY[now(), NULL], ARRAY['x'::\"char\"]"
      " FROM generate_series(1, 1000) n");
  run("INSERT INTO v (ac) VALUES ('NaN'), ('Infinity'), ('-Infinity'), (0), (0.000), (1e100), (-1e-100), (10000), "
      "(0.0001)");
  run("INSERT INTO v (aj, ak) VALUES ('{}', '{}'), ('[2:3]={1,2}', '{{a,b},{c,d}}')");
  compare();
}

// Transactions of several sessions at once, with subtransactions, values outside of their rows, and changes of schemas.
TEST_F(MinedFramesTest, RandomTransactions) {
  begin(
      "CREATE TABLE a (id int PRIMARY KEY, x text, y int); CREATE TABLE b (id int, x text, y int);"
      " ALTER TABLE b REPLICA IDENTITY FULL; CREATE TABLE c (id bigint PRIMARY KEY, x text COMPRESSION lz4, y int)");
  std::mt19937 random(7);
  const auto pick = [&](uint32_t below) { return random() % below; };
  std::vector<pg::Connection> sessions;
  std::vector<bool> open(4, false);
  for (size_t i = 0; i < open.size(); ++i) sessions.push_back(connect());
  for (int step = 0; step < 3000; ++step) {
    const size_t i = pick(static_cast<uint32_t>(open.size()));
    const std::string table(1, "abc"[pick(3)]);
    const uint32_t id = pick(500) * 4 + static_cast<uint32_t>(i);  // sessions do not wait for each other
    std::string sql;
    switch (pick(14)) {
      case 0:
        sql = open[i] ? (pick(3) == 0 ? "ROLLBACK" : "COMMIT") : "BEGIN";
        break;
      case 1:
        sql = open[i] ? "SAVEPOINT s" : "BEGIN";
        break;
      case 2:
        sql = open[i] ? "ROLLBACK TO s" : "CHECKPOINT";
        break;
      case 3:
        sql = fmt::format("UPDATE {} SET x = repeat(md5(x), {}) WHERE id = {}", table, pick(300), id);
        break;
      case 4:
        sql = fmt::format("UPDATE {} SET id = id + 2000 WHERE id = {}", table, id);
        break;
      case 5:
        sql = fmt::format("DELETE FROM {} WHERE id = {}", table, id);
        break;
      case 6:
        sql = fmt::format("UPDATE {} SET y = coalesce(y, 0) + 1 WHERE id = {}", table, id);
        break;
      case 7:
        sql = fmt::format("INSERT INTO {} (id) VALUES ({}) ON CONFLICT DO NOTHING", table, id);
        break;
      case 8:
        if (pick(4) != 0) continue;
        sql = open[i] ? fmt::format("PREPARE TRANSACTION 'p{}'", step) : "VACUUM " + table;
        break;
      case 9:
        if (pick(5) != 0) continue;
        sql = fmt::format("ALTER TABLE {0} ADD COLUMN z{1} int; ALTER TABLE {0} DROP COLUMN IF EXISTS z{2}", table,
                          pick(6), pick(6));
        break;
      default:
        sql = fmt::format(
            "INSERT INTO {} (id, x, y) SELECT n, repeat(md5(n::text), {}), n FROM generate_series({}, {}, 4) n", table,
            pick(200), id, id + pick(30) * 4);
    }
    const auto done = sessions[i].script("SET lock_timeout = '50ms'; " + sql);
    if (sql == "BEGIN") open[i] = true;
    if (done && (sql == "COMMIT" || sql == "ROLLBACK" || sql.starts_with("PREPARE"))) {
      open[i] = false;
      if (sql.starts_with("PREPARE") && pick(2) == 0) (void)sessions[i].script("COMMIT PREPARED '" + sql.substr(21));
    }
    if (!done && open[i] && !sessions[i].script("ROLLBACK TO s")) {
      (void)sessions[i].script("ROLLBACK");
      open[i] = false;
    }
  }
  for (pg::Connection& connection : sessions) (void)connection.script("ROLLBACK");
  const auto prepared = session().query("SELECT gid FROM pg_prepared_xacts");
  ASSERT_TRUE(prepared);
  for (size_t i = 0; i < prepared->size(); ++i) run("ROLLBACK PREPARED '" + std::string{prepared->text(i, 0)} + "'");
  compare();
}

TEST_F(MinedFramesTest, StartsWhileTransactionsAreOpen) {
  pg::Connection first = connect();
  pg::Connection second = connect();
  pg::Connection third = connect();
  run("CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t SELECT n, 'before' FROM generate_series(1, 9) n");
  run("CREATE PUBLICATION everything FOR ALL TABLES");
  keep_wal();
  MinedSource::value(first, "BEGIN; INSERT INTO t VALUES (101, 'of the first')");
  auto contents = std::async(std::launch::async, [&] { return first_contents(); });
  source().wait_for_slot(first);
  MinedSource::value(second, "BEGIN; INSERT INTO t VALUES (102, 'of the second')");
  MinedSource::value(first, "COMMIT");
  source().wait_for_slot(second);
  // Its rows are in the WAL before the first contents, and it commits behind them.
  MinedSource::value(third,
                     "BEGIN; INSERT INTO t VALUES (103, 'of the third'); SAVEPOINT a; INSERT INTO t VALUES (104);"
                     " ROLLBACK TO a; UPDATE t SET a = 'after' WHERE id = 1");
  MinedSource::value(second, "COMMIT");
  start(contents.get());
  MinedSource::value(third, "DELETE FROM t WHERE id = 2; COMMIT");
  catch_up();
  size_t rows = 0;
  for (const std::string& frame : mined())
    rows += frame.starts_with("kind 3") || frame.starts_with("kind 4") || frame.starts_with("kind 5");
  EXPECT_EQ(rows, 3U) << "those of the third; what had committed before is in the copy";
}

}  // namespace
}  // namespace thalweg::capture
