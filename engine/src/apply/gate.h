#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "apply/apply_harness.h"

// For tests of what runs beside what: rows of the destination that somebody else has locked, and an apply whose
// transactions are looked at while some of them wait for such a row.

namespace thalweg::apply {

// A row of table gate that is locked at the destination until it is opened. Owner: one thread.
class Gate {
 public:
  // Makes the table and describes it.
  static void make(ApplyHarness& h) {
    h.run("CREATE TABLE gate (id int PRIMARY KEY, n int); INSERT INTO gate VALUES (1, 0), (2, 0)");
    h.describe("gate");
  }
  Gate(ApplyHarness& h, int id) : h_(h), id_(id) {
    auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
    EXPECT_TRUE(opened) << opened.error().message;
    connection_ = std::make_unique<pg::Connection>(std::move(*opened));
    const auto locked = connection_->script("BEGIN; SELECT FROM gate WHERE id = " + std::to_string(id) + " FOR UPDATE");
    EXPECT_TRUE(locked) << locked.error().message;
  }
  // A change in the source's history that waits for the gate.
  void pass() const { h_.update("gate", {id_, 1}); }
  void open() { EXPECT_TRUE(connection_->script("COMMIT")); }

 private:
  ApplyHarness& h_;
  int id_;
  std::unique_ptr<pg::Connection> connection_;
};

// False after ten seconds, or when the apply has ended.
inline bool wait_until(ApplyHarness& h, const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    if (!h.apply().status().running) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline int appliers_in(ApplyHarness& h, std::string_view state) {
  int count = 0;
  for (const auto& sample : h.apply().sample()) {
    count += sample.sub_component == "APPLY SERVER" && sample.state == state ? 1 : 0;
  }
  return count;
}

// -1: the coordinator has none of that name.
inline int64_t coordinator_gauge(ApplyHarness& h, std::string_view gauge) {
  for (const auto& sample : h.apply().sample()) {
    if (sample.sub_component != "APPLY COORDINATOR") continue;
    for (const auto& [name, value] : sample.gauges) {
      if (name == gauge) return value;
    }
  }
  return -1;
}

inline int64_t waiting_groups(ApplyHarness& h) { return coordinator_gauge(h, "waiting_groups"); }

// The time that all appliers together have spent in `activity`, in nanoseconds.
inline uint64_t applier_time(ApplyHarness& h, telemetry::Activity activity) {
  uint64_t sum = 0;
  for (const auto& sample : h.apply().sample()) {
    if (sample.sub_component == "APPLY SERVER") sum += (*sample.time_ns)[static_cast<size_t>(activity)];
  }
  return sum;
}

}  // namespace thalweg::apply
