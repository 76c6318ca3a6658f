#include "apply/applier/applier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace thalweg::apply {
namespace {

constexpr size_t kCacheBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kLonger{300};  // than an applier with nothing to do looks away
constexpr std::chrono::seconds kPatience{20};

// The coordinator looks whether the apply ends before it assigns, and would wait for the group for ever.
TEST(ApplierTest, AGroupAssignedAfterTheEndComesBack) {
  SharedState shared;
  shared.parameters.set({});
  shared.destination_conninfo = "host=/nowhere connect_timeout=2";
  metadata::MetadataCache cache(kCacheBytes);
  Applier applier(shared, cache, 1);
  shared.stop();
  std::this_thread::sleep_for(kLonger);

  Group group;
  applier.assign(&group, false);
  Group* back = nullptr;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (back == nullptr && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    back = applier.take_finished();
  }
  EXPECT_EQ(back, &group);
  EXPECT_TRUE(group.run.error);
  shared.commits_ended.store(true, std::memory_order_release);
}

}  // namespace
}  // namespace thalweg::apply
