#include "pg/session_board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using namespace std::chrono_literals;

Connection connect(ConnectOptions options = {}) {
  auto opened = Connection::open(test::shared_cluster().conninfo(), options);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  return *std::move(opened);
}

class SessionBoardTest : public testing::Test {
 protected:
  SessionBoardTest() {
    EXPECT_TRUE(
        somebody_.script("DROP TABLE IF EXISTS public.counter; CREATE TABLE public.counter (n int); "
                         "INSERT INTO public.counter VALUES (1)"));
  }
  // A session of ours whose statement waits for somebody's lock.
  void wait_for_lock() {
    EXPECT_TRUE(somebody_.script("BEGIN; LOCK TABLE public.counter"));
    waiting_ = std::async(std::launch::async, [this] {
      Connection connection =
          connect({.application_name = "thalweg board test", .abandon = &abandon_, .board = &board_});
      const auto done = connection.query("UPDATE public.counter\n  SET n = n + 1");
      return done ? std::optional<base::Error>{} : done.error();
    });
    while (board_.busy(0ms).empty() || blockers().empty()) std::this_thread::sleep_for(5ms);
  }
  std::vector<Blocker> blockers() const {
    const auto found = SessionBoard::blockers(board_.busy(0ms).front(), {});
    return found ? *found : std::vector<Blocker>{};
  }
  int64_t count() {
    const auto rows = somebody_.script("SELECT n FROM public.counter");
    return rows ? rows->integer(0, 0) : -1;
  }

  std::atomic<bool> abandon_{false};
  SessionBoard board_;
  Connection somebody_ = connect({.application_name = "somebody"});
  std::future<std::optional<base::Error>> waiting_;
};

TEST_F(SessionBoardTest, ShowsWhoHoldsUpWhat) {
  wait_for_lock();
  const auto busy = board_.busy(0ms);
  ASSERT_EQ(busy.size(), 1U);
  EXPECT_EQ(busy[0].sql, "UPDATE public.counter SET n = n + 1");
  EXPECT_TRUE(board_.busy(1h).empty());
  const auto by = blockers();
  ASSERT_EQ(by.size(), 1U);
  EXPECT_EQ(by[0].pid, somebody_.backend_pid());
  EXPECT_EQ(by[0].application_name, "somebody");
  EXPECT_EQ(by[0].state, "idle in transaction");
  EXPECT_TRUE(by[0].since);
  ASSERT_TRUE(somebody_.script("COMMIT"));
  EXPECT_FALSE(waiting_.get());
  EXPECT_TRUE(board_.busy(0ms).empty());
}

TEST_F(SessionBoardTest, WhatWasGivenUpIsOverAtTheServer) {
  wait_for_lock();
  const int pid = board_.busy(0ms).front().pid;
  abandon_ = true;
  const auto failed = waiting_.get();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code, base::ErrorCode::connection_lost);
  EXPECT_TRUE(board_.busy(0ms).empty());
  ASSERT_TRUE(board_.end_given_up(base::Conninfo("host=elsewhere"))) << "nothing was given up there";
  const auto lives = [&] {
    return connect().query("SELECT FROM pg_stat_activity WHERE pid = $1::int", {std::to_string(pid)})->size();
  };
  EXPECT_EQ(lives(), 1U) << "a server goes on with it";
  const auto ended = board_.end_given_up(test::shared_cluster().conninfo());
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(lives(), 0U);
  ASSERT_TRUE(somebody_.script("COMMIT"));
  EXPECT_EQ(count(), 1);
  EXPECT_TRUE(board_.end_given_up(test::shared_cluster().conninfo())) << "it is not looked for again";
}

TEST_F(SessionBoardTest, ASessionEndsWithItsLifetime) {
  Connection connection = connect({.lifetime = 1500ms});
  EXPECT_TRUE(connection.script("SELECT 1"));
  EXPECT_EQ(connection.script("SELECT pg_sleep(60)").error().code, base::ErrorCode::connection_lost);
  EXPECT_TRUE(connection.broken());
}

}  // namespace
}  // namespace thalweg::pg
