#include "apply/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "pg/connection.h"
#include "support/test_cluster.h"

namespace thalweg::apply {
namespace {

pg::Connection open(const std::string& database) {
  auto connection = pg::Connection::open(test::shared_cluster().conninfo(database), {});
  if (!connection) throw std::runtime_error(connection.error().message);
  return std::move(*connection);
}

std::string value(pg::Connection& connection, const std::string& sql) {
  const auto rows = connection.script(sql);
  if (!rows) throw std::runtime_error(sql + ": " + rows.error().message);
  return rows->size() == 0 ? "" : std::string(rows->text(0, 0));
}

// Two streams begin at one new destination. One has looked for the schema and waits for the lock; the other makes it.
TEST(Schema, IsMadeOnceByStreamsThatBeginTogether) {
  pg::Connection admin = open("postgres");
  value(admin, "CREATE DATABASE schema_of_two");
  pg::Connection first = open("schema_of_two");
  pg::Connection second = open("schema_of_two");
  const auto unknown = find_stream(second, "secondstream");
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_FALSE(*unknown);

  value(first, "BEGIN; SELECT pg_advisory_xact_lock(7520113906284133)");
  const std::string blocked = "SELECT cardinality(pg_blocking_pids(" + std::to_string(second.backend_pid()) + "))";
  base::Result<void> made_by_second;
  std::thread waits([&] { made_by_second = ensure_schema(second); });
  while (value(admin, blocked) == "0") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto made_by_first = ensure_schema(first);  // within its transaction, and commits it
  waits.join();
  EXPECT_TRUE(made_by_first) << made_by_first.error().message;
  EXPECT_TRUE(made_by_second) << made_by_second.error().message;
}

}  // namespace
}  // namespace thalweg::apply
