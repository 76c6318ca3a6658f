#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "instantiation/catalogue.h"
#include "instantiation/instantiation.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "support/test_cluster.h"

// For tests of instantiation: between two databases of a real cluster.

namespace thalweg::instantiation {

struct NamedSnapshot {
  pg::ReplicationStream session;
  pg::CreatedSlot slot;
};

class InstantiationTest : public testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    ++number;
    source_name_ = "source_" + std::to_string(number);
    destination_name_ = "destination_" + std::to_string(number);
    pg::Connection admin = open("postgres");
    run(admin, "CREATE DATABASE " + source_name_);
    run(admin, "CREATE DATABASE " + destination_name_);
    source_.emplace(open(source_name_));
    destination_.emplace(open(destination_name_));
  }

  static pg::Connection open(const std::string& database) {
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

  // The digest of a definition, as AcceptedCode has it: "default app.f(1)".
  std::string digest(const std::string& definition) {
    return value(*destination_, "SELECT encode(sha256(convert_to($d$" + definition + "$d$, 'UTF8')), 'hex')");
  }

  NamedSnapshot snapshot() {
    auto session = pg::ReplicationStream::open(test::shared_cluster().conninfo(source_name_), "thalweg test");
    if (!session) throw std::runtime_error(session.error().message);
    auto slot = session->create_slot("test_" + source_name_, true);
    if (!slot) throw std::runtime_error(slot.error().message);
    return {std::move(*session), *slot};
  }

  InstantiationOptions options(std::vector<TableName> tables) {
    InstantiationOptions out;
    out.stream_id = "teststream";
    out.source_conninfo = test::shared_cluster().conninfo(source_name_);
    out.destination_conninfo = test::shared_cluster().conninfo(destination_name_);
    out.tables = std::move(tables);
    return out;
  }

  // The whole of a first instantiation.
  base::Result<void> instantiate(const InstantiationOptions& with) {
    Instantiation instantiation(with, progress_, stop_);
    THALWEG_TRY(instantiation.assess(true));
    NamedSnapshot taken = snapshot();
    THALWEG_TRY(instantiation.prepare());
    THALWEG_TRY(instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point));
    THALWEG_ASSIGN(base::Lsn postponed, instantiation.add_constraints(taken.slot.consistent_point));
    EXPECT_FALSE(postponed);
    THALWEG_ASSIGN(copied_, instantiation.copied_tables());
    return {};
  }

  base::ErrorCode refusal(const InstantiationOptions& with) {
    auto assessed = Instantiation(with, progress_, stop_).assess(true);
    if (assessed) {
      ADD_FAILURE() << "accepted";
      return base::ErrorCode::invalid_request;
    }
    EXPECT_FALSE(assessed.error().message.empty());
    // Nothing half-created stays behind.
    EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'"), "0");
    EXPECT_EQ(value(*destination_, "SELECT count(*) FROM pg_class WHERE relname LIKE 'made%'"), "0");
    return assessed.error().code;
  }

  std::string content(pg::Connection& connection, const std::string& table) {
    return value(
        connection,
        "SELECT count(*) || ' rows, ' || coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text)), '') FROM " +
            table + " t");
  }
  void expect_same_content(const std::string& table) {
    EXPECT_EQ(content(*source_, table), content(*destination_, table)) << table;
  }

  void expect_same_shape(const TableName& name) {
    Catalogue source(*source_);
    Catalogue destination(*destination_);
    ASSERT_TRUE(source.open());
    ASSERT_TRUE(destination.open());
    auto here = source.table(name);
    auto there = destination.table(name);
    ASSERT_TRUE(here && *here && there && *there) << name.quoted();
    ASSERT_EQ((*here)->columns.size(), (*there)->columns.size());
    for (size_t i = 0; i < (*here)->columns.size(); ++i) {
      const ColumnShape& a = (*here)->columns[i];
      const ColumnShape& b = (*there)->columns[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.type, b.type) << a.name;
      EXPECT_EQ(a.collation, b.collation) << a.name;
      EXPECT_EQ(a.not_null, b.not_null) << a.name;
      EXPECT_EQ(a.default_expression, b.default_expression) << a.name;
      EXPECT_EQ(a.identity, b.identity) << a.name;
      EXPECT_EQ(a.generated, b.generated) << a.name;
    }
    std::vector<std::string> constraints_here, constraints_there, indexes_here, indexes_there;
    for (const auto& c : (*here)->constraints) constraints_here.push_back(c.name + " " + c.definition);
    for (const auto& c : (*there)->constraints) constraints_there.push_back(c.name + " " + c.definition);
    for (const auto& i : (*here)->indexes) indexes_here.push_back(i.definition);
    for (const auto& i : (*there)->indexes) indexes_there.push_back(i.definition);
    EXPECT_EQ(constraints_here, constraints_there) << name.quoted();
    EXPECT_EQ(indexes_here, indexes_there) << name.quoted();
    EXPECT_EQ((*here)->partition_key, (*there)->partition_key);
    EXPECT_EQ((*here)->partitions.size(), (*there)->partitions.size());
    run(*source_, "RESET search_path");  // the catalogue empties it
    run(*destination_, "RESET search_path");
  }

  std::string source_name_, destination_name_;
  std::optional<pg::Connection> source_, destination_;
  base::SystemClock clock_;
  Progress progress_{clock_};
  std::atomic<bool> stop_{false};
  std::vector<CopiedTable> copied_;
};

}  // namespace thalweg::instantiation
