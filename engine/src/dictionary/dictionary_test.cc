#include "dictionary/dictionary.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "dictionary/changing_session.h"
#include "dictionary/dictionary_file.h"
#include "dictionary/mined_source.h"

// The shadow beside the catalogs of a real server whose schema changes all the time.
// THALWEG_DICTIONARY_STEPS: how many statements (1 500). THALWEG_DICTIONARY_SEED: which ones (1).

namespace thalweg::dictionary {
namespace {

uint32_t setting(const char* name, uint32_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : static_cast<uint32_t>(std::stoul(given));
}

class DictionaryTest : public ::testing::Test {
 protected:
  // Whether the dictionary is what each session sees. A session that is asked in a transaction locks what it reads
  // until its end, and no catalog is rewritten meanwhile.
  void compare(bool asks_sessions) {
    ASSERT_TRUE(source_.catch_up());
    ASSERT_TRUE(source_.dictionary().is_ready());
    pg::Connection other = source_.connect();
    ASSERT_TRUE(source_.same_for(other));
    for (ChangingSession& session : sessions_) {
      if (!asks_sessions || !session.can_be_asked()) continue;
      ASSERT_TRUE(source_.same_for(session.connection()));
    }
  }
  void run(pg::Connection& connection, const std::string& sql) { MinedSource::value(connection, sql); }

  MinedSource source_;
  std::vector<ChangingSession> sessions_;
};

TEST_F(DictionaryTest, IsWhatEachSessionSees) {
  const uint32_t seed = setting("THALWEG_DICTIONARY_SEED", 1);
  constexpr std::array kCompressions = {"off", "pglz", "lz4", "zstd"};
  pg::Connection other = source_.connect();
  const std::string compression = kCompressions.at(seed % kCompressions.size());
  run(other, "ALTER SYSTEM SET wal_compression = " + MinedSource::offered(other, "wal_compression", compression, "on"));
  run(other, "SELECT pg_reload_conf()");
  source_.keep_wal();
  source_.begin(source_.first_contents());
  for (int i = 0; i < 4; ++i) sessions_.emplace_back(source_.connect(), i, seed * 10 + i);
  std::mt19937 random(seed);
  const std::string file = source_.cluster().directory() + "/dictionary";
  uint32_t saved = 0;
  const uint32_t steps = setting("THALWEG_DICTIONARY_STEPS", 1500);
  for (uint32_t step = 0; step < steps; ++step) {
    sessions_[random() % sessions_.size()].step();
    if (random() % 25 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(compare(random() % 3 == 0)) << "seed " << seed << ", step " << step;
    if (random() % 3 != 0) continue;
    const auto written = DictionaryFile::save(source_.dictionary(), file);
    ASSERT_TRUE(written) << written.error().message;
    if (!*written) continue;
    ++saved;
    auto loaded = DictionaryFile::load(file);
    ASSERT_TRUE(loaded) << loaded.error().message;
    source_.resume(std::move(*loaded));
  }
  compare(true);
  EXPECT_GT(saved, steps / 300);
  uint32_t changes = 0;
  uint32_t rewrites = 0;
  for (const ChangingSession& session : sessions_) {
    changes += session.changes();
    rewrites += session.rewrites();
  }
  EXPECT_GT(changes, steps / 4);
  EXPECT_GT(rewrites, steps / 300);
}

// PostgreSQL's regression suite is in none of Debian's packages. THALWEG_SQL_SCRIPTS: a folder that has its scripts.
TEST_F(DictionaryTest, IsWhatScriptsLeave) {
  const char* const folder = std::getenv("THALWEG_SQL_SCRIPTS");
  if (folder == nullptr) GTEST_SKIP() << "no THALWEG_SQL_SCRIPTS";
  std::vector<std::string> scripts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) scripts.push_back(entry.path().string());
  std::ranges::sort(scripts);
  ASSERT_FALSE(scripts.empty());
  source_.keep_wal();
  source_.begin(source_.first_contents());
  for (const std::string& script : scripts) {
    const std::string command = "PGOPTIONS='-c statement_timeout=20s -c client_min_messages=error' " +
                                test::TestCluster::program("psql") + " -Xq -d '" + source_.cluster().conninfo() +
                                "' -f " + script + " >/dev/null 2>&1 </dev/null";
    (void)std::system(command.c_str());  // most of a script's statements are to succeed, some are not
    ASSERT_NO_FATAL_FAILURE(compare(false)) << script;
  }
}

TEST_F(DictionaryTest, StartsWhileTransactionsAreOpen) {
  pg::Connection first = source_.connect();
  pg::Connection second = source_.connect();
  pg::Connection third = source_.connect();
  pg::Connection observer = source_.connect();
  run(first,
      "CREATE TABLE kept (id int PRIMARY KEY, note text); CREATE TABLE gone (id int); CREATE TYPE y AS ENUM ('a')");
  source_.keep_wal();
  run(first, "BEGIN; ALTER TABLE kept ADD COLUMN of_first int");
  auto contents = std::async(std::launch::async, [&] { return source_.first_contents(); });
  // The slot waits for the transactions that run; then for those that ran when these had ended.
  source_.wait_for_slot(first);
  run(second, "BEGIN; CREATE TABLE of_second (id int); ALTER TABLE gone RENAME TO renamed");
  run(first, "COMMIT");
  source_.wait_for_slot(second);
  // This one is open at the position of the first contents, which do not have what it does.
  run(third, "BEGIN; CREATE TABLE of_third (id int); DROP TABLE kept; SAVEPOINT a; DROP TYPE y; ROLLBACK TO a");
  run(second, "COMMIT");
  source_.begin(contents.get());
  ASSERT_TRUE(source_.catch_up());
  ASSERT_TRUE(source_.same_for(observer));
  ASSERT_TRUE(source_.same_for(third));
  run(third, "ALTER TYPE y ADD VALUE 'b'; COMMIT");
  ASSERT_TRUE(source_.catch_up());
  ASSERT_TRUE(source_.same_for(observer));
}

TEST_F(DictionaryTest, FollowsCatalogsThatAreRewrittenUnderOpenTransactions) {
  pg::Connection open = source_.connect();
  pg::Connection other = source_.connect();
  run(other, "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int)");
  source_.keep_wal();
  source_.begin(source_.first_contents());
  run(open,
      "BEGIN; ALTER TABLE a ADD COLUMN note text; CREATE TABLE c (LIKE a); CREATE TYPE y AS ENUM ('a', 'b');"
      " SAVEPOINT s; DROP TABLE b; ROLLBACK TO s");
  // One that is given up leaves the file that was there.
  run(other, "BEGIN; CLUSTER pg_class USING pg_class_oid_index; CREATE TABLE d (id int); ROLLBACK");
  for (const char* catalog : {"pg_class", "pg_attribute", "pg_type", "pg_index", "pg_namespace", "pg_enum", "pg_range",
                              "pg_inherits", "pg_extension"}) {
    run(other, std::string("VACUUM FULL ") + catalog);
    ASSERT_TRUE(source_.catch_up()) << catalog;
    ASSERT_TRUE(source_.same_for(other)) << catalog;
  }
  run(other, "BEGIN; CLUSTER pg_class USING pg_class_oid_index; CREATE TABLE d (id int); COMMIT");
  // It locks what it reads, so it is asked once nobody rewrites a catalog any more.
  ASSERT_TRUE(source_.catch_up());
  ASSERT_TRUE(source_.same_for(open));
  run(open, "COMMIT");
  run(other, "DROP TABLE a");
  ASSERT_TRUE(source_.catch_up());
  ASSERT_TRUE(source_.same_for(other));
}

TEST_F(DictionaryTest, OutlivesTheServersEnds) {
  source_.keep_wal();
  source_.begin(source_.first_contents());
  {
    pg::Connection open = source_.connect();
    pg::Connection prepared = source_.connect();
    run(prepared, "BEGIN; CREATE TABLE p (id int); SAVEPOINT a; CREATE TABLE q (id int); PREPARE TRANSACTION 'p'");
    run(prepared, "BEGIN; CREATE TABLE r (id int); PREPARE TRANSACTION 'r'");
    run(open, "BEGIN; CREATE TABLE lost (id int); SAVEPOINT a; CREATE TYPE lost_too AS ENUM ('a')");
    ASSERT_TRUE(source_.catch_up());
    source_.cluster().crash();
  }
  source_.cluster().start();
  pg::Connection other = source_.connect();
  ASSERT_TRUE(source_.catch_up());
  ASSERT_TRUE(source_.same_for(other));
  run(other, "ROLLBACK PREPARED 'r'");
  run(other, "COMMIT PREPARED 'p'");
  run(other, "CREATE TABLE lost (id int)");
  ASSERT_TRUE(source_.catch_up());
  ASSERT_TRUE(source_.same_for(other));
}

TEST_F(DictionaryTest, RefusesADamagedFile) {
  source_.keep_wal();
  source_.begin(source_.first_contents());
  const std::string file = source_.cluster().directory() + "/dictionary";
  ASSERT_EQ(DictionaryFile::save(source_.dictionary(), file), false) << "before the first contents are reached";
  ASSERT_TRUE(source_.catch_up());
  ASSERT_EQ(DictionaryFile::save(source_.dictionary(), file), true);
  std::string bytes = *base::read_file(file);
  for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_FALSE(DictionaryFile::load(file)) << at;
  }
  std::ofstream(file, std::ios::binary) << bytes.substr(0, bytes.size() / 3);
  EXPECT_FALSE(DictionaryFile::load(file));
}

}  // namespace
}  // namespace thalweg::dictionary
