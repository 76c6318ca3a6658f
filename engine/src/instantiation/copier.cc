#include "instantiation/copier.h"

#include <fmt/format.h>

#include <mutex>
#include <thread>

#include "instantiation/bookkeeping.h"
#include "instantiation/ddl.h"

namespace thalweg::instantiation {
namespace {

constexpr const char* kStaging = "thalweg_range";  // temporary table of a resumed range

std::string application_name(const std::string& stream_id) { return "thalweg copy " + stream_id; }

base::Result<pg::Connection> open_session(const base::Conninfo& conninfo, const std::string& stream_id) {
  pg::ConnectOptions options;
  options.application_name = application_name(stream_id);
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, options));
  THALWEG_TRY(
      connection.script("SET search_path = ''; SET statement_timeout = 0; SET lock_timeout = 0; "
                        "SET idle_in_transaction_session_timeout = 0"));
  return connection;
}

// Adds to the table's counters while a range is under way, and takes it back when the range fails.
class RangeCount {
 public:
  explicit RangeCount(TableCounters& counters) : counters_(counters) {}
  RangeCount(const RangeCount&) = delete;
  RangeCount& operator=(const RangeCount&) = delete;
  ~RangeCount() {
    if (!kept_) set(0, 0);
  }
  void set(int64_t rows, int64_t bytes) {
    counters_.rows += rows - rows_;
    counters_.bytes += bytes - bytes_;
    rows_ = rows;
    bytes_ = bytes;
  }
  void keep() { kept_ = true; }
  int64_t bytes() const { return bytes_; }

 private:
  TableCounters& counters_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
  bool kept_ = false;
};

}  // namespace

struct Copier::Worker {
  pg::Connection source;
  pg::Connection destination;

  base::Result<void> copy(const CopyTask& task, const std::string& stream_id, base::Lsn snapshot,
                          const std::atomic<bool>& stop);
  base::Result<int64_t> stream(const CopyTask& task, RangeCount& count, const std::atomic<bool>& stop);
  base::Result<void> merge(const CopyTable& table);
};

base::Result<int64_t> Copier::Worker::stream(const CopyTask& task, RangeCount& count, const std::atomic<bool>& stop) {
  const CopyTable& table = *task.table;
  const std::string columns = column_list(copied_columns(table.shape));
  const char* format = table.text ? "text" : "binary";
  const std::string target = table.resumed ? fmt::format("pg_temp.{}", kStaging) : table.shape.name.quoted();
  if (table.resumed) {
    THALWEG_TRY(destination.script(fmt::format("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA",
                                               kStaging, columns, table.shape.name.quoted())));
  }
  THALWEG_TRY(source.copy_out_begin(fmt::format("COPY (SELECT {} FROM {}{}) TO STDOUT (FORMAT {})", columns,
                                                read_from(table.shape),
                                                range_condition(source, table.shape, task.range), format)));
  THALWEG_TRY(destination.copy_in_begin(fmt::format("COPY {} ({}) FROM STDIN (FORMAT {})", target, columns, format)));
  int64_t rows = 0;
  int64_t bytes = 0;
  while (true) {
    auto chunk = source.copy_out_next();
    if (!chunk) {
      destination.copy_in_fail("the source failed");
      return std::unexpected(chunk.error());
    }
    if (!*chunk) break;
    THALWEG_TRY(destination.copy_in_put(**chunk));
    ++rows;
    bytes += static_cast<int64_t>((*chunk)->size());
    if (rows % 256 == 0) {
      count.set(rows, bytes);
      if (stop) {
        destination.copy_in_fail("the engine stops");
        return base::fail(base::ErrorCode::engine_stopping,
                          "The initial copy was interrupted; it goes on at the next start");
      }
    }
  }
  count.set(rows, bytes);
  THALWEG_ASSIGN(uint64_t copied, destination.copy_in_end());
  return static_cast<int64_t>(copied);
}

// A row of this range can be at the destination already, under the key that it had in an earlier snapshot's range.
base::Result<void> Copier::Worker::merge(const CopyTable& table) {
  const std::string columns = column_list(copied_columns(table.shape));
  if (const ConstraintShape* key = table.shape.primary_key()) {
    std::string same;
    for (const std::string& column : key->columns) {
      std::string name = pg::quote_identifier(column);
      same += fmt::format("{}t.{} = r.{}", same.empty() ? "" : " AND ", name, name);
    }
    THALWEG_TRY(destination.script(
        fmt::format("DELETE FROM {} t USING pg_temp.{} r WHERE {}", table.shape.name.quoted(), kStaging, same)));
  }
  THALWEG_TRY(destination.script(fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM pg_temp.{}",
                                             table.shape.name.quoted(), columns, columns, kStaging)));
  return {};
}

base::Result<void> Copier::Worker::copy(const CopyTask& task, const std::string& stream_id, base::Lsn snapshot,
                                        const std::atomic<bool>& stop) {
  RangeCount count(*task.table->counters);
  THALWEG_TRY(destination.script("BEGIN; SET LOCAL session_replication_role = replica"));
  THALWEG_ASSIGN(int64_t rows, stream(task, count, stop));
  if (task.table->resumed) THALWEG_TRY(merge(*task.table));
  count.set(rows, count.bytes());
  Bookkeeping bookkeeping(destination, stream_id);
  THALWEG_TRY(bookkeeping.range_copied(task.table->shape.name, task.number, snapshot, rows, count.bytes()));
  THALWEG_TRY(destination.script("COMMIT"));
  count.keep();
  return {};
}

Copier::Copier(CopyOptions options, Progress& progress, const std::atomic<bool>& stop)
    : options_(std::move(options)), progress_(progress), stop_(stop) {}

Copier::~Copier() = default;

base::Result<void> Copier::open(const Snapshot& snapshot) {
  snapshot_lsn_ = snapshot.consistent_point;
  for (int i = 0; i < options_.workers; ++i) {
    THALWEG_ASSIGN(pg::Connection source, open_session(options_.source_conninfo, options_.stream_id));
    THALWEG_TRY(
        source.script(fmt::format("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}",
                                  source.quote_literal(snapshot.name))));
    THALWEG_ASSIGN(pg::Connection destination, open_session(options_.destination_conninfo, options_.stream_id));
    workers_.push_back(Worker{std::move(source), std::move(destination)});
  }
  return {};
}

pg::Connection& Copier::source() { return workers_.front().source; }

base::Result<void> Copier::run(const std::vector<CopyTask>& tasks) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::optional<base::Error> first;

  auto fail_with = [&](base::Error error) {
    std::lock_guard lock(mutex);
    if (!first) first = std::move(error);
    failed = true;
  };
  auto work = [&](Worker& worker) {
    while (!failed && !stop_) {
      size_t mine = next.fetch_add(1);
      if (mine >= tasks.size()) return;
      const CopyTask& task = tasks[mine];
      TableCounters& counters = *task.table->counters;
      progress_.begin_table(counters);
      // A failure anywhere ends the whole attempt: the others stop at their next look.
      if (auto copied = worker.copy(task, options_.stream_id, snapshot_lsn_, failed); !copied)
        return fail_with(copied.error());
      if (counters.ranges_copied.fetch_add(1) + 1 == counters.ranges_total) progress_.end_table(counters);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (Worker& worker : workers_) threads.emplace_back(work, std::ref(worker));
    // The engine's wish to stop reaches workers in the middle of a range through the same flag as a failure.
    while (next < tasks.size() + workers_.size() && !failed) {
      if (stop_)
        fail_with(base::fail(base::ErrorCode::engine_stopping,
                             "The initial copy was interrupted; it goes on at the next start")
                      .error());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  if (first) return std::unexpected(*first);
  return {};
}

}  // namespace thalweg::instantiation
