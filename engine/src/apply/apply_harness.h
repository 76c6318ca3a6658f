#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "apply/apply.h"
#include "base/clock.h"
#include "lcr/bytes.h"
#include "lcr/frame.h"
#include "pg/connection.h"
#include "queue/lcr_queue.h"
#include "support/test_cluster.h"

// For tests of apply: a source that is written down in the test, a real queue, a real destination.

namespace thalweg::apply {

struct Unchanged {};
// A column's value: NULL, UNCHANGED, a number for an integer column, or bytes (text) as they are.
using Cell = std::variant<std::nullptr_t, Unchanged, int64_t, std::string>;
using Row = std::vector<Cell>;

inline Cell cell(int64_t value) { return value; }

// A database of its own, and a history of frames that can be fed to one apply after another.
class ApplyHarness {
 public:
  ApplyHarness() {
    static int databases = 0;
    database_ = "apply_" + std::to_string(::getpid()) + "_" + std::to_string(++databases);
    auto admin = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
    EXPECT_TRUE(admin) << admin.error().message;
    EXPECT_TRUE(admin->query("CREATE DATABASE " + database_));
    auto opened = pg::Connection::open(conninfo(), {.search_path = "public"});
    EXPECT_TRUE(opened) << opened.error().message;
    connection_.emplace(std::move(*opened));
    spill_directory_ = std::filesystem::temp_directory_path() / database_;
    std::filesystem::create_directories(spill_directory_);
    EXPECT_TRUE(ensure_schema(*connection_));
    EXPECT_TRUE(register_stream(*connection_, {.stream_id = "teststream",
                                               .source_system_identifier = "1",
                                               .source_timeline = 1,
                                               .source_database = "db",
                                               .slot = "slot",
                                               .start_lsn = {0x1000},
                                               .low_watermark = {}}));
  }
  ~ApplyHarness() {
    apply_.reset();
    std::filesystem::remove_all(spill_directory_);
  }

  std::string conninfo() const { return test::shared_cluster().conninfo(database_); }
  pg::Connection& connection() { return *connection_; }

  void run(const std::string& sql) {
    const auto done = connection_->script(sql);
    ASSERT_TRUE(done) << done.error().message << " in " << sql;
  }
  // Rows as "a|b,c|d".
  std::string select(const std::string& sql) {
    const auto rows = connection_->query(sql);
    if (!rows) return "error: " + rows.error().message;
    std::string text;
    for (size_t row = 0; row < rows->size(); ++row) {
      if (row > 0) text += ",";
      for (size_t column = 0; column < rows->columns(); ++column) {
        if (column > 0) text += "|";
        text += rows->is_null(row, column) ? "NULL" : std::string(rows->text(row, column));
      }
    }
    return text;
  }

  // --- the source's history
  // Describes a table as the source would: like the destination's, or with another replica identity.
  void describe(const std::string& table, char replica_identity = 'd') {
    const auto rows = connection_->query(
        "SELECT a.attname, a.atttypid, coalesce(a.attnum = ANY (i.indkey::int2[]), false) FROM pg_attribute a LEFT "
        "JOIN pg_index i "
        "ON i.indrelid = a.attrelid AND i.indisprimary WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND "
        "NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
        {table});
    ASSERT_TRUE(rows) << rows.error().message;
    lcr::TableDescription description;
    description.relation = {tables_.contains(table) ? tables_[table].relation.value
                                                    : 20'000 + static_cast<uint32_t>(tables_.size())};
    description.version = tables_.contains(table) ? tables_[table].version + 1 : 1;
    description.schema_name = "public";
    description.table_name = table;
    description.replica_identity = replica_identity;
    for (size_t row = 0; row < rows->size(); ++row) {
      description.columns.push_back({.name = std::string(rows->text(row, 0)),
                                     .type = {static_cast<uint32_t>(rows->integer(row, 1))},
                                     .type_modifier = -1,
                                     .is_key = replica_identity == 'f' || rows->boolean(row, 2)});
    }
    tables_[table] = description;
    append(lcr::make_table_frame(description));
  }

  // Descriptions from now on are as of another run of capture: their versions begin at 1.
  void forget_descriptions() {
    for (auto& [name, table] : tables_) table.version = 0;
  }

  void begin(bool streamed = false) {
    xid_ = {next_xid_++};
    streamed_ = streamed;
    if (!streamed)
      append(lcr::make_begin_frame(xid_, {.commit_lsn = {next_lsn_ + 0x100}, .end_lsn = {}, .commit_time = now()}));
  }
  // Goes on with another streamed transaction.
  void switch_to(base::Xid xid) { xid_ = xid; }
  base::Xid xid() const { return xid_; }
  void insert(const std::string& table, const Row& row, base::Xid subxid = {}) {
    change(lcr::FrameKind::insert, 0, table, {}, row, subxid);
  }
  void update(const std::string& table, const Row& row) { change(lcr::FrameKind::update, 0, table, {}, row, {}); }
  void update_key(const std::string& table, const Row& old_key, const Row& row) {
    change(lcr::FrameKind::update, lcr::kOldKey, table, old_key, row, {});
  }
  void update_full(const std::string& table, const Row& old_row, const Row& row) {
    change(lcr::FrameKind::update, lcr::kOldRow, table, old_row, row, {});
  }
  void remove(const std::string& table, const Row& key) {
    change(lcr::FrameKind::remove, lcr::kOldKey, table, key, {}, {});
  }
  void remove_full(const std::string& table, const Row& row) {
    change(lcr::FrameKind::remove, lcr::kOldRow, table, row, {}, {});
  }
  void truncate(const std::string& table) {
    const std::vector<base::RelationId> relations{tables_[table].relation};
    append(lcr::make_truncate_frame(xid_, {}, {next_lsn_}, 0, relations));
  }
  void abort(base::Xid subxid = {}) { append(lcr::make_abort_frame(xid_, subxid, {next_lsn_})); }
  base::Lsn commit() {
    next_lsn_ += 0x100;
    const base::Lsn lsn{next_lsn_};
    append(
        lcr::make_commit_frame(xid_, streamed_, {.commit_lsn = lsn, .end_lsn = {next_lsn_ + 8}, .commit_time = now()}));
    next_lsn_ += 8;
    return lsn;
  }
  void commit_streamed(base::Xid xid) {
    xid_ = xid;
    streamed_ = true;
    commit();
  }
  void progress() {
    next_lsn_ += 0x100;
    append(lcr::make_progress_frame({next_lsn_}, now()));
  }
  base::Lsn end() const { return {next_lsn_}; }
  // A transaction of one insert.
  base::Lsn insert_one(const std::string& table, const Row& row) {
    begin();
    insert(table, row);
    return commit();
  }

  // --- apply
  Apply& apply() { return *apply_; }
  ApplyParameters parameters;
  std::vector<CatchUpSpan> catch_up;
  Retries* retries = nullptr;
  queue::LcrQueueOptions queue_options;

  base::Result<base::Lsn> start() {
    if (apply_) apply_.reset();
    queue_ = std::make_unique<queue::LcrQueue>(queue_options);
    frames_.emplace(*queue_, 0);
    apply_ = std::make_unique<Apply>(ApplyOptions{.stream_id = "teststream",
                                                  .destination_conninfo = conninfo(),
                                                  .frames = &*frames_,
                                                  .parameters = parameters,
                                                  .spill_directory = spill_directory_,
                                                  .catch_up = catch_up,
                                                  .clock = &clock_,
                                                  .retries = retries});
    fed_ = 0;
    return apply_->start();
  }
  // Enqueues the history from where it was left, up to `frames` of it.
  void feed(size_t frames = SIZE_MAX) {
    for (; fed_ < history_.size() && frames > 0; ++fed_, --frames) {
      const auto& frame = history_[fed_];
      while (true) {
        const auto room = queue_->reserve(frame.size(), std::chrono::milliseconds(100));
        if (!room.empty()) {
          std::ranges::copy(frame, room.begin());
          queue_->enqueue();
          break;
        }
        if (!apply_->status().running) return;
      }
    }
    queue_->flush();
  }
  // Frames that the apply has not taken.
  uint64_t queued() const { return queue_->gauges().depth; }
  size_t history_size() const { return history_.size(); }
  // Feeds everything, drains and joins. The error that ended it, if any.
  std::optional<base::Error> finish() {
    feed();
    apply_->request_stop(true);
    apply_->join();
    return apply_->status().error;
  }
  std::optional<base::Error> start_and_finish() {
    const auto started = start();
    if (!started) return started.error();
    return finish();
  }
  // Waits until the low watermark has reached `lsn`, or ten seconds.
  bool wait_until_applied(base::Lsn lsn) {
    for (int i = 0; i < 2000; ++i) {
      if (apply_->status().applied >= lsn) return true;
      if (!apply_->status().running) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  void stop_abruptly() { apply_.reset(); }
  // Executes a parked transaction as an operator has it done.
  base::Result<void> execute_error(int64_t id) {
    auto opened = pg::Connection::open(conninfo(), {.search_path = "public"});
    if (!opened) return std::unexpected(opened.error());
    auto executed = execute_parked(std::move(*opened), "teststream", {.id = id}, {}, parameters.statement_handlers);
    apply_->note_errors_changed();
    return executed;
  }
  std::string_view reader_state() {
    for (const auto& sample : apply_->sample()) {
      if (sample.sub_component == "APPLY READER") return sample.state;
    }
    return "";
  }
  uint64_t counter(std::string_view sub_component, std::string_view name) {
    return sum_of(sub_component, name, &telemetry::ComponentSample::counters);
  }
  int64_t gauge(std::string_view sub_component, std::string_view name) {
    return sum_of(sub_component, name, &telemetry::ComponentSample::gauges);
  }

  // Feeds so many frames more, and waits until the reader has read that many rows and rests.
  testing::AssertionResult feed_and_rest(size_t frames, uint64_t rows) {
    feed(frames);
    const auto rests = [&] { return counter("APPLY READER", "lcrs") == rows && reader_state() == "IDLE"; };
    for (int tries = 0; tries < 100'000 && !rests(); ++tries)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (rests()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "row " << rows << ", the reader is " << reader_state();
  }

 private:
  template <typename Values>
  typename Values::value_type::second_type sum_of(std::string_view sub_component, std::string_view name,
                                                  Values telemetry::ComponentSample::* values) {
    typename Values::value_type::second_type sum = 0;
    for (const auto& sample : apply_->sample()) {
      if (sample.sub_component != sub_component) continue;
      for (const auto& [value_name, value] : sample.*values) sum += value_name == name ? value : 0;
    }
    return sum;
  }

  base::UnixMicros now() const { return clock_.unix_now(); }
  void append(std::vector<std::byte> frame) { history_.push_back(std::move(frame)); }

  std::vector<std::byte> tuple(const lcr::TableDescription& table, const Row& row) const {
    if (row.empty()) return {};
    EXPECT_EQ(row.size(), table.columns.size());
    std::vector<std::byte> out;
    const auto put = [&](uint64_t value, int bytes) {
      for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        out.push_back(static_cast<std::byte>(value >> shift & 0xFF));
    };
    put(row.size(), 2);
    for (size_t i = 0; i < row.size(); ++i) {
      if (std::holds_alternative<std::nullptr_t>(row[i])) {
        put('n', 1);
      } else if (std::holds_alternative<Unchanged>(row[i])) {
        put('u', 1);
      } else if (const auto* number = std::get_if<int64_t>(&row[i])) {
        const uint32_t type = table.columns[i].type.value;
        const int size = type == 21 ? 2 : type == 20 ? 8 : 4;
        put('b', 1);
        put(static_cast<uint64_t>(size), 4);
        put(static_cast<uint64_t>(*number), size);
      } else {
        const auto& text = std::get<std::string>(row[i]);
        put('b', 1);
        put(text.size(), 4);
        for (const char c : text) out.push_back(static_cast<std::byte>(c));
      }
    }
    return out;
  }

  void change(lcr::FrameKind kind, uint16_t flags, const std::string& table, const Row& old_row, const Row& new_row,
              base::Xid subxid) {
    const auto& description = tables_[table];
    const auto old_tuple = tuple(description, old_row);
    const auto new_tuple = tuple(description, new_row);
    const lcr::RowFrame row{.kind = kind,
                            .flags = static_cast<uint16_t>(flags | (streamed_ ? lcr::kStreamed : 0)),
                            .xid = xid_,
                            .subxid = subxid,
                            .relation = description.relation,
                            .table_version = description.version,
                            .lsn = {next_lsn_ += 1},
                            .old_tuple = old_tuple,
                            .new_tuple = new_tuple};
    std::vector<std::byte> frame(lcr::row_frame_bytes(row));
    lcr::write_row_frame(row, frame);
    append(std::move(frame));
  }

  base::SystemClock clock_;
  std::string database_;
  std::filesystem::path spill_directory_;
  std::optional<pg::Connection> connection_;
  std::map<std::string, lcr::TableDescription> tables_;
  std::vector<std::vector<std::byte>> history_;
  size_t fed_ = 0;
  uint64_t next_lsn_ = 0x2000;
  uint32_t next_xid_ = 700;
  base::Xid xid_;
  bool streamed_ = false;
  std::unique_ptr<queue::LcrQueue> queue_;
  std::optional<queue::QueueFrames> frames_;
  std::unique_ptr<Apply> apply_;
};

}  // namespace thalweg::apply
