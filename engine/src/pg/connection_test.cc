#include "pg/connection.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_server.h"
#include "support/sanitized.h"
#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using base::ErrorCode;

Connection connect() {
  auto opened = Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  return *std::move(opened);
}

TEST(Quoting, KeepsAnyName) {
  EXPECT_EQ(quote_identifier("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(quote_table("Straße", "t"), "\"Straße\".\"t\"");
  EXPECT_EQ(quote_table("", "t"), "\"t\"");
}

TEST(ErrorMap, FollowsTheCatalogue) {
  EXPECT_EQ(error_from_sqlstate("08006", "").code, ErrorCode::connection_lost);
  EXPECT_EQ(error_from_sqlstate("25006", "").code, ErrorCode::destination_read_only);
  EXPECT_EQ(error_from_sqlstate("28P01", "").code, ErrorCode::authentication_failed);
  EXPECT_EQ(error_from_sqlstate("42501", "").code, ErrorCode::insufficient_privilege);
  EXPECT_EQ(error_from_sqlstate("42P01", "").code, ErrorCode::missing_table);
  EXPECT_EQ(error_from_sqlstate("40P01", "").code, ErrorCode::database_busy);
  EXPECT_EQ(error_from_sqlstate("53100", "").code, ErrorCode::disk_full);
  EXPECT_EQ(error_from_sqlstate("57P01", "").code, ErrorCode::connection_lost);
  EXPECT_EQ(error_from_sqlstate("23505", "").code, ErrorCode::database_error);
  EXPECT_EQ(error_from_sqlstate("23505", "m").sqlstate, "23505");
}

TEST(Connection, QueriesWithParameters) {
  Connection connection = connect();
  const auto rows = connection.query("SELECT $1::int + 1, $2::text, NULL::int, true", {"41", "ä'\"\\"});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->columns(), 4u);
  EXPECT_EQ(rows->integer(0, 0), 42);
  EXPECT_EQ(rows->text(0, 1), "ä'\"\\");
  EXPECT_TRUE(rows->is_null(0, 2));
  EXPECT_TRUE(rows->boolean(0, 3));
  EXPECT_TRUE(rows->is_null(5, 0));
  EXPECT_GE(connection.server_version(), 140000);
  EXPECT_GT(connection.backend_pid(), 0);
}

// The audience of a message depends on what it may quote. A function may raise any text under any SQLSTATE.
TEST(Connection, TellsMessagesThatMayShowRows) {
  Connection connection = connect();
  const auto shows_rows = [&](const char* sql, const char* sqlstate) {
    const auto failed = connection.script(sql);
    EXPECT_EQ(failed.error().sqlstate, sqlstate) << sql;
    return failed.error().may_show_rows;
  };
  EXPECT_FALSE(shows_rows("SELECT FROM not_there", "42P01"));
  EXPECT_FALSE(shows_rows("SELECT pg_catalog.not_there()", "42883"));
  EXPECT_TRUE(shows_rows("SELECT 'secret'::int", "22P02"));
  EXPECT_TRUE(shows_rows("DO $$BEGIN RAISE EXCEPTION 'secret'; END$$", "P0001"));
  EXPECT_TRUE(shows_rows("DO $$BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = 'MYAPP'; END$$", "MYAPP"));
  EXPECT_TRUE(shows_rows("DO $$BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '42501'; END$$", "42501"));
}

TEST(Connection, SessionHasOneForm) {
  Connection connection = connect();
  ASSERT_TRUE(connection.script("ALTER ROLE postgres SET datestyle = 'German'"));
  Connection other = connect();
  const auto rows = other.query(
      "SELECT date '2026-11-21', current_setting('client_encoding'), '\\x01'::bytea, "
      "current_setting('statement_timeout'), current_setting('tcp_keepalives_idle')");
  ASSERT_TRUE(connection.script("ALTER ROLE postgres RESET datestyle"));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->text(0, 0), "2026-11-21");
  EXPECT_EQ(rows->text(0, 1), "UTF8");
  EXPECT_EQ(rows->text(0, 2), "\\x01");
  EXPECT_EQ(rows->text(0, 3), "0");
  EXPECT_EQ(rows->text(0, 4), "5");
}

TEST(Connection, ErrorsSayWhatTheServerSaid) {
  Connection connection = connect();
  ASSERT_TRUE(connection.script("CREATE TEMP TABLE k (id int PRIMARY KEY); INSERT INTO k VALUES (7)"));
  const auto failed = connection.query("INSERT INTO k VALUES (7)");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::database_error);
  EXPECT_EQ(failed.error().sqlstate, "23505");
  EXPECT_NE(failed.error().message.find("k_pkey"), std::string::npos);
  EXPECT_NE(failed.error().message.find("(id)=(7)"), std::string::npos) << failed.error().message;
  EXPECT_NE(failed.error().table.find("\"k\""), std::string::npos);
  EXPECT_FALSE(connection.broken());
  EXPECT_EQ(connection.query("SELECT * FROM nowhere").error().code, ErrorCode::missing_table);
  EXPECT_TRUE(connection.query("SELECT 1"));
}

TEST(Connection, CountsAffectedRows) {
  Connection connection = connect();
  ASSERT_TRUE(connection.script("CREATE TEMP TABLE n AS SELECT generate_series(1, 5) AS i"));
  EXPECT_EQ(connection.query("UPDATE n SET i = i + 1")->affected(), 5u);
  EXPECT_EQ(connection.query("DELETE FROM n WHERE i > 4")->affected(), 2u);
}

TEST(Connection, RefusalsAreTold) {
  auto unreachable = Connection::open("host=127.0.0.1 port=1 dbname=x user=y", {.search_path = "public"});
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().code, ErrorCode::database_unreachable);

  auto missing = Connection::open(test::shared_cluster().conninfo("nowhere"), {.search_path = "public"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::missing_database);
  EXPECT_EQ(missing.error().message.find("LOCATION"), std::string::npos) << missing.error().message;

  auto nonsense = Connection::open("host=x password='s3cret", {.search_path = "public"});
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(nonsense.error().message.find("s3cret"), std::string::npos);
}

TEST(Connection, PasswordsAreChecked) {
  test::TestCluster cluster{
      {.settings = {},
       .hba_lines = {"host all locked 127.0.0.1/32 scram-sha-256", "host all banned 127.0.0.1/32 reject"}}};
  auto admin = Connection::open(cluster.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(admin);
  ASSERT_TRUE(admin->script("CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE banned LOGIN"));
  const std::string locked = cluster.conninfo("postgres", "locked");
  EXPECT_TRUE(Connection::open(locked + " password=right", {.search_path = "public"}));
  for (const std::string& conninfo : {locked + " password=wrong", locked, cluster.conninfo("postgres", "banned")}) {
    auto refused = Connection::open(conninfo, {.search_path = "public"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::authentication_failed) << refused.error().message;
    EXPECT_EQ(refused.error().message.find("wrong"), std::string::npos);
  }
  cluster.crash();
  const auto lost = admin->query("SELECT 1");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::connection_lost) << lost.error().message;
  EXPECT_TRUE(admin->broken());
  EXPECT_EQ(Connection::open(cluster.conninfo(), {.search_path = "public"}).error().code,
            ErrorCode::database_unreachable);
}

TEST(Connection, CopiesIn) {
  Connection connection = connect();
  ASSERT_TRUE(connection.script("CREATE TEMP TABLE c (a int, b text)"));
  ASSERT_TRUE(connection.copy_in_begin("COPY c FROM STDIN"));
  std::string line;
  for (int i = 0; i < 200'000; ++i) {
    line = std::to_string(i) + "\tsome text that makes the whole larger than a socket's buffer\n";
    ASSERT_TRUE(connection.copy_in_put(std::as_bytes(std::span{line})));
  }
  const auto copied = connection.copy_in_end();
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(*copied, 200'000u);
  EXPECT_EQ(connection.query("SELECT sum(a) FROM c")->integer(0, 0), 19'999'900'000);
}

TEST(Connection, CopyInFailsAndIsLeft) {
  Connection connection = connect();
  ASSERT_TRUE(connection.script("CREATE TEMP TABLE c (a int)"));
  ASSERT_TRUE(connection.copy_in_begin("COPY c FROM STDIN"));
  const std::string nonsense = "one\n";
  ASSERT_TRUE(connection.copy_in_put(std::as_bytes(std::span{nonsense})));
  const auto failed = connection.copy_in_end();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().sqlstate, "22P02");
  ASSERT_TRUE(connection.copy_in_begin("COPY c FROM STDIN"));
  connection.copy_in_fail("not today");
  EXPECT_EQ(connection.query("SELECT count(*) FROM c")->integer(0, 0), 0);
  EXPECT_EQ(connection.copy_in_begin("SELECT 1").error().code, ErrorCode::invalid_request);
  EXPECT_EQ(connection.query("COPY c FROM STDIN").error().code, ErrorCode::invalid_request);
  EXPECT_EQ(connection.query("COPY (SELECT generate_series(1, 1000000)) TO STDOUT").error().code,
            ErrorCode::invalid_request);
  EXPECT_TRUE(connection.query("SELECT 1"));
}

TEST(Connection, CopiesOut) {
  Connection connection = connect();
  ASSERT_TRUE(connection.copy_out_begin("COPY (SELECT generate_series(1, 100000)) TO STDOUT"));
  size_t rows = 0;
  while (true) {
    const auto next = connection.copy_out_next();
    ASSERT_TRUE(next) << next.error().message;
    if (!*next) break;
    ++rows;
  }
  EXPECT_EQ(rows, 100'000u);
  EXPECT_TRUE(connection.query("SELECT 1"));
  ASSERT_TRUE(connection.copy_out_begin("COPY (SELECT 1 / (3 - i) FROM generate_series(1, 9) i) TO STDOUT"));
  auto next = connection.copy_out_next();
  while (next && *next) next = connection.copy_out_next();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().sqlstate, "22012");
  EXPECT_TRUE(connection.query("SELECT 1"));
}

TEST(Connection, IsCancelledFromAnotherThread) {
  Connection connection = connect();
  const auto canceller = connection.canceller();
  Connection observer = connect();
  std::thread other([&] {
    const std::string pid = std::to_string(connection.backend_pid());
    while (observer.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1::int AND wait_event = 'PgSleep'", {pid})
               ->size() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    canceller.cancel();
  });
  const auto cancelled = connection.query("SELECT pg_sleep(60)");
  other.join();
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().sqlstate, "57014");
}

// Something between that tells processes of its own of the login: it may give the session to us alone, or to all.
TEST(Connection, ASessionIsOursWhoseStatementsReachOneProcess) {
  const auto open = [](std::vector<int> processes) {
    const test::FakeServer server({.statements = 3, .processes = std::move(processes)});
    return Connection::open(server.conninfo(), {});
  };
  EXPECT_TRUE(open({7}));
  for (const auto& processes : {std::vector{7, 8}, std::vector{7, 7, 8}}) {
    const auto shared = open(processes);
    ASSERT_FALSE(shared);
    EXPECT_EQ(shared.error().code, ErrorCode::connection_pooler) << shared.error().message;
  }
}

TEST(Connection, EverySessionHasItsOwnMark) {
  Connection one = connect();
  Connection other = connect();
  const auto mark = [](Connection& connection) {
    return std::string(connection.query("SELECT current_setting('thalweg.session')")->text(0, 0));
  };
  EXPECT_EQ(mark(one).size(), 16u);
  EXPECT_NE(mark(one), mark(other));
}

// A server, or whatever answers for one, that takes the connection and says nothing: libpq would wait for ever.
TEST(Connection, ACancellationIsNotWaitedForWithoutEnd) {
  const test::FakeServer server({.statements = 1});
  auto connection = Connection::open(server.conninfo(), {});
  ASSERT_TRUE(connection) << connection.error().message;
  const auto canceller = connection->canceller();
  canceller.cancel();
  canceller.cancel();
}

// The session answers every statement, so it is not lost: but what comes of the cancellation is not known.
TEST(Connection, ASessionIsLeftThatMayStillBeCancelled) {
  const test::FakeServer server({.statements = 1, .then = test::FakeServerOptions::Then::copy_out});
  auto connection = Connection::open(server.conninfo(), {});
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->query("COPY t TO STDOUT").error().code, ErrorCode::invalid_request);
  EXPECT_TRUE(connection->broken());
}

// The server answers a statement, or greets a client, without an end.
TEST(Connection, AnAnswerIsBounded) {
  using Then = test::FakeServerOptions::Then;
  constexpr size_t kMiB = size_t{1} << 20;
  const auto open = [](const test::FakeServer& server) {
    base::Conninfo conninfo(server.conninfo());
    conninfo.side = base::ErrorSide::destination;
    return Connection::open(conninfo, {});
  };
  const auto expect_bounded = [](const base::Error& error) {
    EXPECT_EQ(error.code, ErrorCode::database_error) << error.message;
    EXPECT_EQ(error.side, base::ErrorSide::destination);
    EXPECT_NE(error.message.find("MiB"), std::string::npos) << error.message;
  };
  const test::FakeServer large({.statements = 1, .then = Then::rows, .bytes = 100 * kMiB});
  auto served = open(large);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_TRUE(served->script("SELECT"));
  EXPECT_TRUE(served->script("SELECT")) << "the session goes on";
  for (const Then then : {Then::rows, Then::notices, Then::statuses}) {
    // More than the bound and the kernel's buffer, which may be full before the first read.
    const test::FakeServer endless({.statements = 1, .then = then, .bytes = 320 * kMiB});
    const auto expect_over = [&](auto&& ask) {
      auto connection = open(endless);
      ASSERT_TRUE(connection) << connection.error().message;
      const auto answer = ask(*connection);
      ASSERT_FALSE(answer) << static_cast<int>(then);
      expect_bounded(answer.error());
      EXPECT_TRUE(connection->broken());
    };
    expect_over([](Connection& connection) { return connection.script("SELECT"); });
    if (THALWEG_SANITIZED) break;  // gigabytes of small messages take a quarter of an hour then
    expect_over([](Connection& connection) { return connection.query("SELECT"); });
    expect_over([](Connection& connection) {
      Pipeline pipeline(connection);
      EXPECT_TRUE(pipeline.execute("SELECT"));
      return pipeline.sync();
    });
  }
  for (const Then then : {Then::notices, Then::statuses}) {
    const test::FakeServer greets({.statements = -1, .then = then, .bytes = 8 * kMiB});
    const auto opened = open(greets);
    ASSERT_FALSE(opened) << static_cast<int>(then);
    expect_bounded(opened.error());
  }
}

}  // namespace
}  // namespace thalweg::pg
