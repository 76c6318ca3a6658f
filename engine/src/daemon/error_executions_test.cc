#include "daemon/error_executions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/test_cluster.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;

control::Delivery without_a_stream() {
  control::Delivery delivery;
  delivery.stream.id = "nostream";
  delivery.destination.name = "destination";
  delivery.destination.conninfo = test::shared_cluster().conninfo();
  return delivery;
}

// Many ask at once for transactions that are not there, and each hears of its own: whoever waits for an end may be
// overtaken by one who begins the next execution.
TEST(ErrorExecutions, EachHearsHowItsOwnEnded) {
  const control::Delivery delivery = without_a_stream();
  const base::SystemClock clock;
  std::atomic<bool> abandon{false};
  ErrorExecutions executions(clock, abandon);
  EXPECT_FALSE(executions.status(""));
  std::atomic<int> answered{0};
  std::atomic<int> mistaken{0};
  {
    std::vector<std::jthread> askers;
    for (int number = 0; number < 8; ++number) {
      askers.emplace_back([&, number] {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
        for (int64_t id = 1000 * number; answered < 100 && std::chrono::steady_clock::now() < deadline; ++id) {
          const auto executed = executions.execute("", delivery, {.id = id}, [] {});
          if (executed || executed.error().code != ErrorCode::unknown_error_transaction) continue;
          ++answered;
          if (!executed.error().message.ends_with(" " + std::to_string(id))) ++mistaken;
        }
      });
    }
  }
  EXPECT_GE(answered, 50) << "fewer than this say nothing; a slow machine gets no further";
  EXPECT_EQ(mistaken, 0);
  EXPECT_FALSE(executions.status("")) << "none of them has begun";
}

// An execution's outcome is there to be read after the next one was refused.
TEST(ErrorExecutions, TheLastIsTheLastThatBegan) {
  const control::Delivery delivery = without_a_stream();
  const base::SystemClock clock;
  std::atomic<bool> abandon{false};
  ErrorExecutions executions(clock, abandon);
  ASSERT_TRUE(executions.execute("", delivery, {}, [] {})) << "all of nothing";
  EXPECT_FALSE(executions.execute("", delivery, {.id = 7}, [] {}));
  ASSERT_TRUE(executions.status(""));
  EXPECT_EQ(executions.status("")->state, control::ExecutionState::done);
  EXPECT_FALSE(executions.status("")->choice.id);
}

// Between a request's look at the stream and the execution the destination may have taken the next document's id.
TEST(ErrorExecutions, AreOfTheIdThatTheDestinationHasByThen) {
  const control::Delivery delivery = without_a_stream();
  const base::SystemClock clock;
  std::atomic<bool> abandon{false};
  ErrorExecutions executions(clock, abandon);
  executions.rename("default", "warehouse");
  EXPECT_TRUE(executions.execute("default", delivery, {}, [] {}));
  ASSERT_TRUE(executions.status("warehouse"));
  EXPECT_EQ(executions.status("warehouse")->state, control::ExecutionState::done);
  EXPECT_EQ(executions.current_id("default"), "warehouse");
  EXPECT_EQ(executions.current_id("warehouse"), "warehouse");
}

}  // namespace
}  // namespace thalweg::daemon
