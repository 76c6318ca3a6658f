#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/test_cluster.h"
#include "wal/record_parts.h"
#include "wal/wal_reader.h"

// A real server's WAL through the log reader and through PostgreSQL's own pg_waldump, record by record.

namespace thalweg::wal {
namespace {

constexpr uint32_t kSegmentBytes = 16U << 20;

std::string run(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"), &pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string output;
  std::array<char, 4096> part;
  while (std::fgets(part.data(), static_cast<int>(part.size()), pipe.get()) != nullptr) output += part.data();
  return output;
}

// The form that both sides are brought to: a line for each record, and one more for each of its blocks.
using Lines = std::vector<std::string>;

constexpr std::array kRmgrs = {"XLOG",       "Transaction",   "Storage", "CLOG",     "Database",
                               "Tablespace", "MultiXact",     "RelMap",  "Standby",  "Heap2",
                               "Heap",       "Btree",         "Hash",    "Gin",      "Gist",
                               "Sequence",   "SPGist",        "BRIN",    "CommitTs", "ReplicationOrigin",
                               "Generic",    "LogicalMessage"};
constexpr std::array kHeapRecords = {"INSERT",     "DELETE",       "UPDATE", "TRUNCATE",
                                     "HOT_UPDATE", "HEAP_CONFIRM", "LOCK",   "INPLACE"};
constexpr std::array kForks = {"", " fork fsm", " fork vm", " fork init"};

std::string padded(base::Lsn lsn) { return fmt::format("{:X}/{:08X}", lsn.value >> 32, lsn.value & 0xFFFFFFFF); }

void add(Lines& lines, const WalRecord& record, const RecordParts& parts) {
  size_t images = 0;
  for (const BlockReference& block : parts.blocks()) images += block.image.bytes.size();
  const size_t total = kRecordHeaderBytes + record.body.size();
  const auto rmgr = static_cast<size_t>(record.rmgr);
  std::string line = fmt::format("{} {}/{} tx {} {} prev {}", kRmgrs.at(rmgr), total - images, total, record.xid.value,
                                 padded(record.begin), padded(record.previous));
  if (record.rmgr == Rmgr::heap) {
    line += fmt::format(" {}{}", kHeapRecords.at((record.info & 0x70) >> 4), (record.info & 0x80) != 0 ? "+INIT" : "");
  }
  lines.push_back(line);
  for (const BlockReference& block : parts.blocks()) {
    lines.push_back(fmt::format("  #{}: rel {}/{}/{}{} blk {}{}", block.id, block.file.tablespace, block.file.database,
                                block.file.number, kForks.at(static_cast<size_t>(block.fork)), block.block,
                                !block.has_image      ? ""
                                : block.image.applies ? " FPW"
                                                      : " FPW for WAL verification"));
  }
}

Lines dumped(const std::string& output) {
  static const std::regex kRecord(
      R"(^rmgr: (\w+) +len \(rec/tot\): +(\d+)/ *(\d+), tx: +(\d+), lsn: ([0-9A-F/]+), prev ([0-9A-F/]+), desc: (\S+))");
  static const std::regex kBlock(
      R"(blkref #(\d+): (rel \S+(?: fork \w+)? blk \d+(?: FPW(?: for WAL verification)?)?))");
  Lines lines;
  std::istringstream all(output);
  for (std::string line; std::getline(all, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, kRecord)) {
      if (line.find("first record is after") == std::string::npos) ADD_FAILURE() << line;
      continue;
    }
    lines.push_back(fmt::format("{} {}/{} tx {} {} prev {}{}", found.str(1), found.str(2), found.str(3), found.str(4),
                                found.str(5), found.str(6), found.str(1) == "Heap" ? " " + found.str(7) : ""));
    for (std::sregex_iterator block(line.begin(), line.end(), kBlock), end; block != end; ++block) {
      lines.push_back("  #" + block->str(1) + ": " + block->str(2));
    }
  }
  return lines;
}

class WaldumpTest : public ::testing::Test {
 protected:
  WaldumpTest()
      : cluster_({.settings = {{"wal_keep_size", "1GB"},
                               {"max_wal_size", "2GB"},
                               {"full_page_writes", "on"},
                               {"autovacuum", "on"},
                               {"autovacuum_naptime", "1s"},
                               {"track_commit_timestamp", "on"}},
                  .hba_lines = {}}) {}

  std::string sql(const std::string& statements) {
    const std::string file = cluster_.directory() + "/statements.sql";
    std::ofstream(file) << statements;
    return run(test::TestCluster::program("psql") + " -XAtq -v ON_ERROR_STOP=1 -d '" + cluster_.conninfo() + "' -f " +
               file);
  }
  void pgbench(const std::string& arguments) {
    const std::string output = run(test::TestCluster::program("pgbench") + " " + arguments +
                                   " -h 127.0.0.1 -U postgres -p " + std::to_string(cluster_.port()) + " postgres");
    ASSERT_EQ(output.find("rror"), std::string::npos) << output;
  }
  Lines read_up_to(base::Lsn end, std::set<Compression>& compressions) {
    const std::string directory = cluster_.directory() + "/data/pg_wal/";
    Lines lines;
    WalReader reader({.start = {kSegmentBytes}});
    RecordParts parts;
    for (base::Lsn segment{kSegmentBytes}; segment < end; segment.value += kSegmentBytes) {
      std::ifstream file(directory + fmt::format("00000001{:08X}{:08X}", 0, segment.value / kSegmentBytes),
                         std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      EXPECT_EQ(bytes.size(), kSegmentBytes);
      const auto whole = std::as_bytes(std::span{bytes});
      reader.feed(whole.first(std::min<size_t>(whole.size(), end.value - segment.value)));
      while (true) {
        const auto record = reader.next();
        if (!record) ADD_FAILURE() << record.error().message;
        if (!record || *record == nullptr) break;
        const auto parsed = parts.parse(**record, *reader.format());
        if (!parsed) ADD_FAILURE() << parsed.error().message;
        add(lines, **record, parts);
        for (const BlockReference& block : parts.blocks()) {
          if (block.has_image) compressions.insert(block.image.compression);
        }
      }
    }
    return lines;
  }

  test::TestCluster cluster_;
};

constexpr const char* kWorkload = R"(
CREATE TABLE notes (id bigint PRIMARY KEY, note text, tags int[], place point, period int4range, mark uuid);
CREATE INDEX ON notes USING gin (tags); CREATE INDEX ON notes USING gist (place);
CREATE INDEX ON notes USING spgist (period); CREATE INDEX ON notes USING hash (mark);
CREATE INDEX ON notes USING brin (id);
INSERT INTO notes SELECT n, repeat(md5(n::text), n % 200), ARRAY[n, n % 7], point(n, n), int4range(n, n + 5),
  gen_random_uuid() FROM generate_series(1, 5000) n;
ALTER TABLE notes ALTER note SET STORAGE EXTERNAL;
UPDATE notes SET note = repeat(md5(id::text), 400) WHERE id % 50 = 0;
CHECKPOINT;
UPDATE notes SET tags = tags || 1 WHERE id % 3 = 0;
DELETE FROM notes WHERE id % 11 = 0;
BEGIN; INSERT INTO notes (id) VALUES (-1); SAVEPOINT a; INSERT INTO notes (id) VALUES (-2); ROLLBACK TO a;
SAVEPOINT b; INSERT INTO notes (id) VALUES (-3); COMMIT;
BEGIN; UPDATE notes SET note = 'prepared' WHERE id = 1; PREPARE TRANSACTION 'a'; COMMIT PREPARED 'a';
BEGIN; DELETE FROM notes WHERE id = 2; PREPARE TRANSACTION 'b'; ROLLBACK PREPARED 'b';
INSERT INTO notes (id) VALUES (5) ON CONFLICT DO NOTHING;
INSERT INTO notes (id) VALUES (90001) ON CONFLICT (id) DO UPDATE SET note = 'again';
SELECT pg_logical_emit_message(true, 'thalweg', repeat('m', 20000));
SELECT pg_replication_origin_create('elsewhere');
CREATE SEQUENCE numbers; SELECT nextval('numbers');
VACUUM (FREEZE, ANALYZE) notes; VACUUM FULL notes; CLUSTER notes USING notes_pkey;
CREATE TABLE gone (LIKE notes INCLUDING ALL); INSERT INTO gone SELECT * FROM notes; TRUNCATE gone; DROP TABLE gone;
ALTER TABLE notes ADD more int DEFAULT 7; ALTER TABLE notes ALTER more TYPE bigint;
VACUUM FULL pg_class; REINDEX TABLE notes;
CREATE DATABASE another STRATEGY wal_log;
SELECT pg_switch_wal();
INSERT INTO notes (id, note) SELECT n, 'after the switch' FROM generate_series(100000, 100500) n;
)";

TEST_F(WaldumpTest, EveryRecordIsTheSame) {
  EXPECT_EQ(sql(kWorkload).find("ERROR"), std::string::npos);
  pgbench("-i -q -s 2");
  cluster_.crash();
  cluster_.start();
  for (const std::string compression : {"off", "pglz", "lz4", "zstd"}) {
    const std::string output =
        sql("ALTER SYSTEM SET wal_compression = " + compression + ";\nSELECT pg_reload_conf();\nCHECKPOINT;");
    EXPECT_EQ(output, "t\n");
    pgbench("-c 4 -t 100");
  }
  std::string text = sql("SELECT pg_switch_wal() \\g /dev/null\nSELECT pg_current_wal_flush_lsn();");
  text.erase(text.find_last_not_of("\n") + 1);
  const auto end = base::parse_lsn(text);
  ASSERT_TRUE(end) << text;
  const std::string dump = run(test::TestCluster::program("pg_waldump") + " -p " + cluster_.directory() +
                               "/data/pg_wal -s 0/1000000 -e " + text);
  std::set<Compression> compressions;
  const Lines expected = dumped(dump);
  const Lines actual = read_up_to(*end, compressions);
  EXPECT_GT(expected.size(), 50'000U);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(actual[i], expected[i]) << i;
  EXPECT_EQ(compressions.size(), 4U);
}

}  // namespace
}  // namespace thalweg::wal
