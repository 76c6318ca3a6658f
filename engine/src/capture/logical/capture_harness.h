#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/logical/publication.h"
#include "capture/logical/slot.h"
#include "lcr/bytes.h"
#include "pg/connection.h"
#include "queue/lcr_queue.h"
#include "support/test_cluster.h"

// Fixture for tests of a running capture: a database of its own, a slot, a publication, a queue and its consumer.

namespace thalweg::capture {

inline pg::Connection connect_to(const std::string& conninfo) {
  auto opened = pg::Connection::open(conninfo, {.search_path = "public"});
  if (!opened) throw std::runtime_error(opened.error().message);
  return *std::move(opened);
}

// Monotonic time that a test can move on.
class ShiftedClock final : public base::Clock {
 public:
  void shift(std::chrono::seconds by) { shift_.fetch_add(by.count(), std::memory_order_relaxed); }
  base::UnixMicros unix_now() const override { return system_.unix_now(); }
  std::chrono::steady_clock::time_point steady_now() const override {
    return system_.steady_now() + std::chrono::seconds(shift_.load(std::memory_order_relaxed));
  }

 private:
  base::SystemClock system_;
  std::atomic<int64_t> shift_{0};  // writer: the test; readers: any
};

class CaptureHarness : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kPatience{30};
  static constexpr const char* kSlotName = "thalweg_harness1";
  static constexpr const char* kStreamId = "harness1";

  virtual test::TestCluster& cluster() { return test::shared_cluster(); }

  void SetUp() override {
    static int databases = 0;
    database_ = "capture_" + std::to_string(++databases);
    sql(admin(), "CREATE DATABASE " + database_);
    conninfo_ = cluster().conninfo(database_);
    source_.emplace(connect_to(conninfo_));
  }
  void TearDown() override {
    capture_.reset();
    if (!source_) return;
    const auto dropped = drop_slot(*source_, kSlotName, capture_application_name(kStreamId), kPatience);
    EXPECT_TRUE(dropped) << dropped.error().message;
  }

  pg::Connection& admin() {
    if (!admin_) admin_.emplace(connect_to(cluster().conninfo()));
    return *admin_;
  }
  static void sql(pg::Connection& connection, const std::string& text) {
    const auto done = connection.script(text);
    ASSERT_TRUE(done) << done.error().message << " in " << text;
  }
  void run(const std::string& text) { sql(*source_, text); }
  static std::string value(pg::Connection& connection, const std::string& text) {
    const auto rows = connection.query(text);
    EXPECT_TRUE(rows) << rows.error().message << " in " << text;
    return rows ? std::string{rows->text(0, 0)} : "";
  }
  std::string value(const std::string& text) { return value(*source_, text); }

  void make_slot(const std::vector<PublishedTable>& tables) {
    const auto published = ensure_publication(*source_, kSlotName, tables);
    ASSERT_TRUE(published) << published.error().message;
    const auto made =
        create_slot(conninfo_, kSlotName, {.application_name = capture_application_name(kStreamId)}, plugin_);
    ASSERT_TRUE(made) << made.error().message;
    start_lsn_ = made->slot.consistent_point;
  }

  void start(const queue::LcrQueueOptions& options = {}) {
    capture_.reset();
    queue_ = std::make_unique<queue::LcrQueue>(options);
    versions_.clear();
    capture_ = make_logical_capture({.stream_id = kStreamId,
                                     .source_conninfo = conninfo_,
                                     .slot = kSlotName,
                                     .publications = {kSlotName},
                                     .start = start_lsn_,
                                     .system_identifier = {},
                                     .timeline = timeline_,
                                     .queue = queue_.get(),
                                     .confirmed_lsn = &confirmed_,
                                     .clock = &clock_});
    capture_->start();
  }

  // The next frame in words, "" when none came in time. COMMIT and PROGRESS are confirmed when `confirming_`.
  std::string next() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const std::byte* bytes = queue_->browse(0, std::chrono::milliseconds(50));
      if (bytes == nullptr) {
        if (capture_->status().error) break;
        continue;
      }
      const auto length = *reinterpret_cast<const uint32_t*>(bytes);
      const auto frame = lcr::FrameView::decode({bytes, length});
      EXPECT_TRUE(frame) << frame.error().message;
      const std::string words = frame ? describe(*frame) : "corrupt";
      queue_->dequeue(0);
      if (!words.empty()) return words;
    }
    const auto error = capture_->status().error;
    ADD_FAILURE() << "no frame: " << (error ? error->message : "time-out");
    return "";
  }
  // Frames up to and with the `commits`-th COMMIT.
  std::vector<std::string> transactions(int commits) {
    std::vector<std::string> all;
    while (commits > 0) {
      all.push_back(next());
      if (all.back().empty()) break;
      if (all.back().starts_with("COMMIT")) --commits;
    }
    return all;
  }

  std::string describe(const lcr::FrameView& frame) {
    using lcr::FrameKind;
    const std::string streamed = frame.has(lcr::kStreamed) ? " streamed" : "";
    const std::string sub = frame.subxid() ? " sub" : "";
    switch (frame.kind()) {
      case FrameKind::table: {
        auto table = frame.table();
        EXPECT_TRUE(table);
        std::string words = "TABLE " + table->schema_name + "." + table->table_name + " v" +
                            std::to_string(table->version) + " " + table->replica_identity;
        for (const auto& column : table->columns) words += (column.is_key ? " *" : " ") + column.name;
        versions_[{table->relation.value, table->version}] = *std::move(table);
        return words;
      }
      case FrameKind::begin:
        begun_ = frame.transaction_mark().commit_lsn;
        return "BEGIN";
      case FrameKind::commit: {
        const auto mark = frame.transaction_mark();
        if (streamed.empty()) {
          EXPECT_EQ(mark.commit_lsn, begun_);
        }
        EXPECT_GT(mark.end_lsn, mark.commit_lsn);
        committed_ = mark.end_lsn;
        confirm(mark.end_lsn);
        return "COMMIT" + streamed;
      }
      case FrameKind::progress:
        EXPECT_GE(frame.lsn(), committed_);
        progress_ = frame.lsn();
        confirm(frame.lsn());
        return "";
      case FrameKind::abort:
        return "ABORT" + sub;
      case FrameKind::truncate:
        return "TRUNCATE " + std::to_string(frame.truncated_relations().size()) + streamed +
               (frame.has(lcr::kCascade) ? " cascade" : "") + (frame.has(lcr::kRestartIdentity) ? " restart" : "");
      case FrameKind::insert:
        return "INSERT" + streamed + sub + name_of(frame) + row(frame, frame.new_tuple());
      case FrameKind::update:
        return "UPDATE" + streamed + sub + name_of(frame) + old(frame) + row(frame, frame.new_tuple());
      case FrameKind::remove:
        return "DELETE" + streamed + sub + name_of(frame) + old(frame);
      case FrameKind::origin:
        return "ORIGIN " + std::string(frame.origin());
      case FrameKind::partition: {
        const auto partition = frame.partition();
        EXPECT_TRUE(partition);
        return "PARTITION" + streamed + sub + " " + partition->schema_name + "." + partition->partition_name;
      }
    }
    return "?";
  }

  void confirm(base::Lsn lsn) {
    if (confirming_) confirmed_.store(lsn.value, std::memory_order_release);
  }
  const lcr::TableDescription* table_of(const lcr::FrameView& frame) {
    const auto found = versions_.find({frame.relation().value, frame.header().table_version});
    EXPECT_NE(found, versions_.end()) << "a row before its TABLE frame";
    return found == versions_.end() ? nullptr : &found->second;
  }
  std::string name_of(const lcr::FrameView& frame) {
    const auto* table = table_of(frame);
    return table == nullptr ? "" : " " + table->table_name + " v" + std::to_string(table->version);
  }
  std::string old(const lcr::FrameView& frame) {
    if (!frame.old_tuple().exists()) return "";
    return (frame.has(lcr::kOldKey) ? " key" : " old") + row(frame, frame.old_tuple());
  }
  std::string row(const lcr::FrameView& frame, const lcr::TupleView& tuple) {
    const auto* table = table_of(frame);
    std::vector<lcr::Value> values;
    tuple.read(values);
    std::string words = " (";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) words += ",";
      const auto& value = values[i];
      const std::string text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
      if (value.mark == lcr::ValueMark::null) {
        words += "null";
      } else if (value.mark == lcr::ValueMark::unchanged) {
        words += "unchanged";
      } else if (value.mark == lcr::ValueMark::binary && table != nullptr && table->columns[i].type.value == 23) {
        words += std::to_string(lcr::load_network<int32_t>(value.bytes.data()));
      } else {
        words += text.size() > 40 ? std::to_string(text.size()) + " bytes" : text;
      }
    }
    return words + ")";
  }

  base::Lsn slot_position() {
    const auto rows =
        admin().query("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1", {kSlotName});
    return rows && rows->size() == 1 ? base::parse_lsn(rows->text(0, 0)).value_or(base::Lsn{}) : base::Lsn{};
  }

  int timeline_ = 0;                              // that capture expects
  SourcePlugin plugin_ = SourcePlugin::pgoutput;  // of make_slot()
  std::string database_;
  std::string conninfo_;
  std::optional<pg::Connection> admin_;
  std::optional<pg::Connection> source_;
  ShiftedClock clock_;
  std::atomic<uint64_t> confirmed_{0};
  bool confirming_ = true;
  std::unique_ptr<queue::LcrQueue> queue_;
  std::unique_ptr<Capture> capture_;
  base::Lsn start_lsn_;
  base::Lsn begun_;
  base::Lsn committed_;
  base::Lsn progress_;
  std::map<std::pair<uint32_t, uint32_t>, lcr::TableDescription> versions_;
};

}  // namespace thalweg::capture
