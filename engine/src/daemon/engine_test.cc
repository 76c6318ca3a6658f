#include "daemon/engine.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "pg/connection.h"
#include "support/fake_server.h"
#include "support/test_cluster.h"

// Streams from their desired state to rows at the destination, between two databases of a real cluster.

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using control::DesiredStatus;
namespace fs = std::filesystem;

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thalweg-engine-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    state_ = name;
    static int number = 0;
    ++number;
    definition_.id = "enginetest" + std::to_string(number);
    definition_.name = "test";
    definition_.status = DesiredStatus::enabled;
    definition_.tables = {{"public", "t"}};
    definition_.parameters.parallelism = 2;
    std::string source = "engine_source_" + std::to_string(number);
    std::string destination = "engine_destination_" + std::to_string(number);
    pg::Connection admin = connect("postgres");
    run(admin, "CREATE DATABASE " + source);
    run(admin, "CREATE DATABASE " + destination);
    definition_.source = {source, test::shared_cluster().conninfo(source)};
    control::DestinationDefinition& only = definition_.destinations.emplace_back();
    only.id = "warehouse";
    only.name = destination;
    only.status = DesiredStatus::enabled;
    only.conninfo = test::shared_cluster().conninfo(destination);
    // As a document that is read from the disk has them: else the two are never the same.
    definition_.source.conninfo.within = only.conninfo.within = std::make_shared<const base::Networks>();
    source_.emplace(connect(source));
    destination_.emplace(connect(destination));
    run(*source_,
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 100) g");
    start();
  }
  void TearDown() override {
    if (engine_) {
      // Slots of one test must not hold the cluster's WAL, nor its slots, for the next.
      definition_.status = DesiredStatus::dropped;
      definition_.force = true;
      if (put()) wait_for_state(State::dropped);
      engine_.reset();
    }
    fs::remove_all(state_);
  }

  static pg::Connection connect(const std::string& database) {
    auto connection = pg::Connection::open(test::shared_cluster().conninfo(database), {.search_path = "public"});
    if (!connection) throw std::runtime_error(connection.error().message);
    return std::move(*connection);
  }
  static pg::Rows run(pg::Connection& connection, const std::string& sql) {
    auto rows = connection.script(sql);
    if (!rows) throw std::runtime_error(sql + ": " + rows.error().message);
    return std::move(*rows);
  }
  static std::string value(pg::Connection& connection, const std::string& sql) {
    return std::string(run(connection, sql).text(0, 0));
  }

  void start() {
    auto opened = Engine::open(state_, state_ / "key", clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    engine_ = std::move(*opened);
  }
  bool put() {
    for (control::DestinationDefinition& destination : definition_.destinations)
      destination.parameters = definition_.parameters;
    auto stored = engine_->put_desired({.revision = ++revision_, .streams = {definition_}});
    EXPECT_TRUE(stored) << stored.error().message;
    return stored.has_value();
  }
  control::StreamStatus status() { return engine_->status().at(0); }
  control::DestinationStatus destination() { return status().destinations.at(0); }
  static std::string describe(const control::StreamStatus& status) {
    const control::StateNames names = names_of(status.state);
    return std::string(names.status) + " " + std::string(names.phase) +
           (status.error ? ": " + status.error->error.message : "");
  }
  // Polls; the limit only ends a test that has failed.
  void wait_until(const std::string& what, const std::function<bool()>& condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "never came: " << what << "; is " << describe(status());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void wait_for_state(State wanted) {
    const control::StateNames names = names_of(wanted);
    wait_until(std::string(names.status) + " " + std::string(names.phase), [&] { return status().state == wanted; });
  }
  std::string content(pg::Connection& connection) {
    return value(connection, "SELECT count(*) || coalesce(md5(string_agg(t::text, ',' ORDER BY id)), '') FROM t");
  }
  void wait_for_equality() {
    wait_until("equality", [&] { return content(*source_) == content(*destination_); });
  }
  // At the destination: another one after a new copy.
  std::string version_of_a_row() { return value(*destination_, "SELECT xmin FROM t WHERE id = 2"); }
  std::string slots() {
    return value(*source_,
                 "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'thalweg_" + definition_.id + "'");
  }

  fs::path state_;
  base::SystemClock clock_;
  control::StreamDefinition definition_;
  uint64_t revision_ = 0;
  std::optional<pg::Connection> source_, destination_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, AStreamThatIsOnlyNamedGoesOnAsItWasUntilItIsDropped) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  EXPECT_FALSE(engine_->put_desired({.revision = ++revision_, .streams = {}})) << "it is not DROPPED";
  ASSERT_TRUE(engine_->put_desired({.revision = ++revision_, .streams = {}, .kept = {definition_.id}}));
  run(*source_, "INSERT INTO t VALUES (1000, 'kept')");
  wait_for_equality();
  engine_.reset();
  start();
  run(*source_, "INSERT INTO t VALUES (1001, 'after a restart')");
  wait_for_equality();
  ASSERT_TRUE(engine_->put_desired({.revision = ++revision_, .streams = {}, .dropped = {definition_.id}}));
  wait_for_state(State::dropped);
  EXPECT_EQ(slots(), "0");
  ASSERT_TRUE(engine_->put_desired({.revision = ++revision_, .streams = {}, .dropped = {"neverhere"}}));
  EXPECT_TRUE(engine_->status().empty());
}

TEST_F(EngineTest, AStreamLivesFromItsCopyToItsDrop) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  wait_for_equality();
  run(*source_,
      "INSERT INTO t VALUES (1000, 'new'); UPDATE t SET v = 'changed' WHERE id = 5; DELETE FROM t WHERE id = 6");
  wait_for_equality();
  const control::DestinationStatus running = destination();
  ASSERT_TRUE(running.instantiation);
  EXPECT_EQ(running.instantiation->tables.at(0).rows_copied, 100);
  EXPECT_EQ(running.tables.at(0).state, control::TableState::replicating);
  EXPECT_TRUE(running.applied);
  EXPECT_EQ(running.backlog.state, control::BacklogState::none);
  EXPECT_EQ(engine_->stats().streams.at(0).components.size(),
            2 + 2 + 2u);  // capture, queue, reader, coordinator, appliers

  // A live parameter does not make a new session: its counters go on.
  definition_.parameters.group_size = 1;
  ASSERT_TRUE(put());
  run(*source_, "INSERT INTO t VALUES (1001, 'live')");
  wait_for_equality();
  wait_until("counters", [&] { return destination().tables.at(0).changes.inserts == 2; });
  ASSERT_TRUE(running.counted_since);
  EXPECT_EQ(destination().counted_since, running.counted_since);

  definition_.status = DesiredStatus::disabled;
  ASSERT_TRUE(put());
  wait_for_state(State::disabled);
  run(*source_, "INSERT INTO t VALUES (1002, 'while disabled')");
  engine_.reset();
  start();
  wait_for_state(State::disabled);
  EXPECT_FALSE(destination().counted_since);
  definition_.status = DesiredStatus::enabled;
  ASSERT_TRUE(put());
  wait_for_equality();

  auto forgotten = engine_->put_desired({.revision = revision_ + 1, .streams = {}});
  ASSERT_FALSE(forgotten);
  EXPECT_EQ(forgotten.error().code, ErrorCode::desired_state_conflict);
  definition_.status = DesiredStatus::dropped;
  ASSERT_TRUE(put());
  wait_for_state(State::dropped);
  EXPECT_EQ(slots(), "0");
  EXPECT_EQ(value(*source_, "SELECT count(*) FROM pg_publication"), "0");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'"), "0");
  EXPECT_NE(value(*destination_, "SELECT count(*) FROM t"), "0");
  ASSERT_TRUE(engine_->put_desired({.revision = ++revision_, .streams = {}}));
  EXPECT_TRUE(engine_->status().empty());
  engine_.reset();
}

TEST_F(EngineTest, ChangesDuringTheCopyArriveOnce) {
  run(*source_, "INSERT INTO t SELECT g, 'v' || g FROM generate_series(101, 60000) g; ANALYZE t");
  definition_.parameters.copy_range_rows = 1000;
  std::jthread writer([&](const std::stop_token& stop) {
    pg::Connection connection = connect(definition_.source.name);
    for (int i = 0; !stop.stop_requested(); ++i) {
      run(connection, "UPDATE t SET id = id + 100000 WHERE id = " + std::to_string(1 + i * 7));
      run(connection, "INSERT INTO t VALUES (" + std::to_string(-1 - i) + ", 'during')");
      run(connection, "DELETE FROM t WHERE id = " + std::to_string(3 + i * 11));
    }
  });
  ASSERT_TRUE(put());
  wait_until("some ranges", [&] {
    const auto shown = destination().instantiation;
    return shown && !shown->tables.empty() && shown->tables.at(0).ranges_copied > 5;
  });
  // The engine goes in the middle of the copy, and comes back.
  engine_.reset();
  start();
  wait_for_state(State::replicating);
  writer.request_stop();
  writer.join();
  wait_for_equality();
  EXPECT_NE(status().state, State::aborted);
}

TEST_F(EngineTest, AnAbortedStreamSaysWhyAndStaysSoOverARestart) {
  run(*source_, "ALTER TABLE t DROP CONSTRAINT t_pkey");
  ASSERT_TRUE(put());
  wait_for_state(State::aborted);
  ASSERT_TRUE(status().error);
  EXPECT_EQ(status().error->error.code, ErrorCode::replica_identity_missing);
  EXPECT_EQ(slots(), "0");
  EXPECT_EQ(value(*source_, "SELECT count(*) FROM pg_publication"), "0");
  EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'"), "0");
  engine_.reset();
  run(*source_, "ALTER TABLE t ADD PRIMARY KEY (id)");
  start();
  EXPECT_EQ(status().state, State::aborted);
  EXPECT_EQ(status().error->error.code, ErrorCode::replica_identity_missing);
  ASSERT_TRUE(engine_->retry({.stream = definition_.id, .destination = ""}));
  wait_for_state(State::replicating);
  EXPECT_FALSE(status().error);
  wait_for_equality();
}

TEST_F(EngineTest, ASlotDroppedBehindOurBackIsNeverSteppedOver) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  definition_.status = DesiredStatus::disabled;
  ASSERT_TRUE(put());
  wait_for_state(State::disabled);
  // Its server notices a little later that nobody reads it any more; until then it drops nothing.
  wait_until("the slot is free", [&] {
    return value(*source_, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'thalweg_" + definition_.id +
                               "' AND active") == "0";
  });
  run(*source_, "SELECT pg_drop_replication_slot('thalweg_" + definition_.id + "')");
  run(*source_, "INSERT INTO t VALUES (1000, 'lost')");
  definition_.status = DesiredStatus::enabled;
  ASSERT_TRUE(put());
  wait_for_state(State::aborted);
  EXPECT_EQ(status().error->error.code, ErrorCode::slot_lost);
}

TEST_F(EngineTest, ADatabaseThatCannotBeReachedIsRetriedAndCanBeGivenUp) {
  definition_.source.conninfo = "host=127.0.0.1 port=1 dbname=x";
  ASSERT_TRUE(put());
  wait_for_state(State::retrying);
  ASSERT_TRUE(status().error);
  EXPECT_EQ(status().error->error.code, ErrorCode::database_unreachable);
  EXPECT_TRUE(status().retry_at);
  EXPECT_EQ(names_of(status().state).status, "ENABLED");
  definition_.status = DesiredStatus::dropped;
  definition_.force = true;
  ASSERT_TRUE(put());
  wait_for_state(State::dropped);
  ASSERT_TRUE(status().error);
  EXPECT_NE(status().error->error.message.find("pg_drop_replication_slot('thalweg_" + definition_.id),
            std::string::npos);
}

// Holds a table at the destination; the end of it, or of its patience, lets it go.
class Held {
 public:
  Held(pg::Connection connection, const std::string& table, std::chrono::seconds patience)
      : connection_(std::move(connection)) {
    EXPECT_TRUE(connection_.script("BEGIN; LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"));
    thread_ = std::jthread([this, patience](const std::stop_token& stop) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait_for(lock, stop, patience, [] { return false; });
      EXPECT_TRUE(connection_.script("COMMIT"));
    });
  }

 private:
  pg::Connection connection_;
  std::jthread thread_;
};

std::chrono::steady_clock::duration time_of(const std::function<void()>& what) {
  const auto begun = std::chrono::steady_clock::now();
  what();
  return std::chrono::steady_clock::now() - begun;
}

// Each of them takes a thread of the control API's, of which there are few.
TEST_F(EngineTest, WhoOpensAParkedTransactionBehindALockHasAnAnswerInTime) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  const control::StreamTarget target{.stream = definition_.id, .destination = "warehouse"};
  const auto open_one = [&] { return engine_->error_contents(target, 1, {}); };
  EXPECT_EQ(open_one().error().code, ErrorCode::unknown_error_transaction);
  const Held held(connect(definition_.destinations.at(0).name), "thalweg.error_queue", std::chrono::seconds(30));
  const auto took = time_of([&] {
    std::jthread first([&] { EXPECT_EQ(open_one().error().code, ErrorCode::database_busy); });
    std::jthread second([&] { EXPECT_EQ(open_one().error().code, ErrorCode::database_busy); });
    wait_until("both wait", [&] {
      return value(*source_, "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'") == "2";
    });
    EXPECT_LT(time_of([&] { EXPECT_EQ(open_one().error().code, ErrorCode::database_busy); }), std::chrono::seconds(2));
  });
  EXPECT_LT(took, std::chrono::seconds(8));
  EXPECT_EQ(engine_->errors(target, {}).error().code, ErrorCode::database_busy);
  EXPECT_EQ(engine_->drop_error(target, 1).error().code, ErrorCode::database_busy);
}

// The server answers the first statement of a session, and no other.
TEST_F(EngineTest, ADestinationThatHangsHoldsUpFewOfThoseThatAskForItsErrors) {
  const test::FakeServer hangs({.statements = 1});
  const base::Conninfo before = definition_.destinations.at(0).conninfo;
  definition_.status = DesiredStatus::disabled;
  definition_.destinations.at(0).conninfo = hangs.conninfo();
  ASSERT_TRUE(put());
  const control::StreamTarget target{.stream = definition_.id, .destination = "warehouse"};
  std::atomic<int> waiting{0};
  std::atomic<int> refused{0};
  const auto asks = [&](const std::function<std::optional<ErrorCode>()>& ask) {
    return std::jthread([&, ask] {
      ++waiting;
      const auto code = ask();
      --waiting;
      refused += code == ErrorCode::database_busy || code == ErrorCode::connection_lost ? 1 : 0;
    });
  };
  const auto code_of = [](const auto& answer) { return answer ? std::nullopt : std::optional(answer.error().code); };
  const auto took = time_of([&] {
    std::vector<std::jthread> all;
    for (int i = 0; i < 10; ++i) {
      all.push_back(asks([&] { return code_of(engine_->errors(target, {})); }));
      all.push_back(asks([&] { return code_of(engine_->error_contents(target, 1, {})); }));
      all.push_back(asks([&] { return code_of(engine_->drop_error(target, 1)); }));
      all.push_back(asks([&] { return code_of(engine_->copy_table(target, {"public", "t"})); }));
      all.push_back(asks([&] { return code_of(engine_->accept_table(target, {"public", "t"})); }));
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    EXPECT_LT(waiting, 12);
    for (int i = 0; i < 60 && waiting > 0; ++i) std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_EQ(waiting, 0) << "they wait for ever";
    if (waiting > 0) engine_->stop(std::chrono::seconds(10));
  });
  EXPECT_LT(took, std::chrono::seconds(40));
  EXPECT_EQ(refused, 50);
  definition_.destinations.at(0).conninfo = before;
}

TEST_F(EngineTest, ARemovalThatFailedIsTriedAgainOnRequest) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  const base::Conninfo before = definition_.source.conninfo;
  const std::string role = "removes_" + definition_.id;
  run(*source_, "CREATE ROLE " + role + " LOGIN");
  definition_.source.conninfo = test::shared_cluster().conninfo(definition_.source.name, role);
  definition_.status = DesiredStatus::dropped;
  ASSERT_TRUE(put());
  wait_for_state(State::aborted);
  EXPECT_EQ(slots(), "1");
  run(*source_, "ALTER ROLE " + role + " SUPERUSER");
  ASSERT_TRUE(put()) << "the same document";
  EXPECT_EQ(status().state, State::aborted) << "other streams' changes come with it";
  ASSERT_TRUE(engine_->retry({.stream = definition_.id, .destination = ""}));
  wait_for_state(State::dropped);
  EXPECT_EQ(slots(), "0");
  definition_.source.conninfo = before;
}

TEST_F(EngineTest, AStopGivesUpWhatOperatorsWaitFor) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  const control::StreamTarget target{.stream = definition_.id, .destination = "warehouse"};
  const Held held(connect(definition_.destinations.at(0).name), "thalweg.error_queue, thalweg.stream_table",
                  std::chrono::seconds(30));
  const auto waiting = [&] {
    return std::stoi(value(*source_, "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"));
  };
  // The watch over the tables reads them again, and waits as well.
  definition_.name = "another";
  ASSERT_TRUE(put());
  wait_until("the watch waits", [&] { return waiting() == 1; });
  std::vector<std::jthread> operators;
  operators.emplace_back([&] { EXPECT_FALSE(engine_->errors(target, {})); });
  operators.emplace_back([&] { EXPECT_FALSE(engine_->drop_error(target, 1)); });
  operators.emplace_back([&] { EXPECT_FALSE(engine_->copy_table(target, {"public", "t"})); });
  wait_until("all wait", [&] { return waiting() == 4; });
  EXPECT_LT(time_of([&] {
              EXPECT_TRUE(engine_->stop(std::chrono::seconds(20)));
              operators.clear();
            }),
            std::chrono::seconds(2));
  EXPECT_LT(time_of([&] { engine_.reset(); }), std::chrono::seconds(2));
  start();  // for TearDown
}

TEST_F(EngineTest, TheDesiredStateIsKeptAndGuarded) {
  definition_.status = DesiredStatus::disabled;
  revision_ = 9;
  ASSERT_TRUE(put());
  auto older = engine_->put_desired({.revision = 9, .streams = {definition_}});
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::desired_state_conflict);
  EXPECT_EQ(fs::status(state_ / "desired.json").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  engine_.reset();
  start();
  EXPECT_EQ(engine_->engine().desired_revision, 10u);
  engine_.reset();
  std::ofstream(state_ / "desired.json") << "{\"format\": 1, \"revi";
  auto opened = Engine::open(state_, state_ / "key", clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::state_directory_failed);
  EXPECT_NE(opened.error().message.find("desired.json"), std::string::npos);
}

TEST_F(EngineTest, PasswordsLieEncryptedOnTheDisk) {
  definition_.status = DesiredStatus::disabled;
  definition_.source.conninfo.text += " password=a-secret-of-somebody";
  ASSERT_TRUE(put());
  const fs::path file = state_ / "desired.json";
  const std::string sealed = base::read_file(file).value();
  EXPECT_EQ(sealed.find("a-secret-of-somebody"), std::string::npos);
  engine_.reset();

  // Another key, or none: nothing is lost, and the key that there was opens it again.
  fs::rename(state_ / "key", state_ / "kept");
  EXPECT_FALSE(Engine::open(state_, state_ / "key", clock_));
  EXPECT_FALSE(fs::exists(state_ / "key"));
  ASSERT_TRUE(Seal::open(state_ / "key", true));
  auto foreign = Engine::open(state_, state_ / "key", clock_);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("holds another"), std::string::npos) << foreign.error().message;
  EXPECT_EQ(base::read_file(file).value(), sealed);
  fs::rename(state_ / "kept", state_ / "key");
  std::string changed = sealed;
  changed.back() ^= 1;
  ASSERT_TRUE(base::write_file_atomically(file, changed, 0600));
  EXPECT_FALSE(Engine::open(state_, state_ / "key", clock_));
  EXPECT_EQ(base::read_file(file).value(), changed);
  ASSERT_TRUE(base::write_file_atomically(file, sealed, 0600));
  start();
  EXPECT_EQ(engine_->engine().desired_revision, revision_);
}

TEST_F(EngineTest, WhatAnOlderEngineLeftInTheClearIsEncrypted) {
  definition_.status = DesiredStatus::disabled;
  ASSERT_TRUE(put());
  engine_.reset();
  const std::string plain = control::serialise({.revision = 7, .streams = {definition_}});
  ASSERT_TRUE(base::write_file_atomically(state_ / "desired.json", plain, 0600));
  start();
  EXPECT_EQ(engine_->engine().desired_revision, 7u);
  EXPECT_TRUE(Seal::is_sealed(base::read_file(state_ / "desired.json").value()));
  revision_ = 7;  // for TearDown
}

TEST_F(EngineTest, ADestinationAndItsCaptureAreOneWithoutABacklog) {
  run(*source_, "ALTER TABLE t DROP CONSTRAINT t_pkey");
  ASSERT_TRUE(put());
  wait_for_state(State::aborted);
  EXPECT_EQ(destination().state, State::aborted);
  EXPECT_EQ(destination().error->error.code, ErrorCode::replica_identity_missing);
  run(*source_, "ALTER TABLE t ADD PRIMARY KEY (id)");
  EXPECT_EQ(engine_->retry({.stream = definition_.id, .destination = "nobody"}).error().code,
            ErrorCode::unknown_destination);
  ASSERT_TRUE(engine_->retry({.stream = definition_.id, .destination = "warehouse"}));
  wait_for_state(State::replicating);
  EXPECT_EQ(destination().state, State::replicating);

  definition_.destinations.at(0).status = DesiredStatus::disabled;
  ASSERT_TRUE(put());
  wait_for_state(State::disabled);
  EXPECT_EQ(destination().state, State::disabled);
  run(*source_, "INSERT INTO t VALUES (1000, 'while it was paused')");
  definition_.destinations.at(0).status = DesiredStatus::enabled;
  ASSERT_TRUE(put());
  wait_for_equality();
}

TEST_F(EngineTest, ABacklogComesWithoutACopyAndStays) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  const std::string copied = version_of_a_row();
  definition_.destinations.at(0).backlog = true;
  ASSERT_TRUE(put());
  wait_until("a backlog", [&] { return destination().backlog.state == control::BacklogState::in_memory; });
  wait_for_state(State::replicating);
  run(*source_, "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1000, 'through the backlog')");
  wait_for_equality();
  EXPECT_EQ(version_of_a_row(), copied);

  definition_.destinations.at(0).backlog = false;
  for (control::DestinationDefinition& destination : definition_.destinations)
    destination.parameters = definition_.parameters;
  const auto refused = engine_->put_desired({.revision = revision_ + 1, .streams = {definition_}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::desired_state_conflict);
  definition_.destinations.at(0).backlog = true;
}

// A document of version 0.1.0 on the disk: what runs goes on, and takes the name that the next document gives it.
TEST_F(EngineTest, AStreamWithoutAListGoesOnUnderTheListsName) {
  ASSERT_TRUE(put());
  wait_for_state(State::replicating);
  engine_.reset();
  const std::string copied = version_of_a_row();
  run(*source_, "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1000, 'between the two engines')");
  auto old_form = nlohmann::json::parse(control::serialise({.revision = revision_, .streams = {definition_}}));
  nlohmann::json& stream = old_form["streams"][0];
  stream["destination"] = {{"name", definition_.destinations.at(0).name},
                           {"conninfo", definition_.destinations.at(0).conninfo.text}};
  stream.erase("destinations");
  ASSERT_TRUE(base::write_file_atomically(state_ / "desired.json", old_form.dump(), 0600));
  start();
  wait_for_state(State::replicating);
  EXPECT_EQ(destination().id, "default");
  wait_for_equality();
  EXPECT_EQ(version_of_a_row(), copied);
  const auto since = destination().counted_since;
  ASSERT_TRUE(since);

  definition_.destinations.at(0).id = "renamed";
  ASSERT_TRUE(put());
  EXPECT_EQ(destination().id, "renamed");
  EXPECT_EQ(destination().state, State::replicating);
  run(*source_, "INSERT INTO t VALUES (1001, 'under another name')");
  wait_for_equality();
  EXPECT_EQ(destination().counted_since, since) << "it has been started anew";
  EXPECT_EQ(engine_->stats().streams.at(0).destinations.at(0).id, "renamed");
  EXPECT_TRUE(engine_->errors({.stream = definition_.id, .destination = "renamed"}, {}));
}

}  // namespace
}  // namespace thalweg::daemon
