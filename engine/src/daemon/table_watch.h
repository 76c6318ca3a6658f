#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "instantiation/captured_tables.h"
#include "instantiation/rewrites.h"
#include "pg/connection.h"

// Watches what becomes of a stream's tables at the source, also while the stream is stopped
// (docs/decisions/table-identity.md).

namespace thalweg::daemon {

// A table of the stream that did not exist at the source when its first copy was due.
struct MissingTable {
  base::UnixMicros since;
  bool is_there = false;  // by now: the next start copies it
};

// Thread-safe. A separate thread queries both databases and retries failed queries without reporting them: the stream's
// own connections report trouble with a database.
class TableWatch {
 public:
  // `clock` outlives it.
  explicit TableWatch(const base::Clock& clock);
  ~TableWatch();
  TableWatch(const TableWatch&) = delete;
  TableWatch& operator=(const TableWatch&) = delete;

  // From now on these tables; one that another engine applies, or that is dropped: none.
  void watch(const control::Delivery& delivery);
  // Another thread has recorded something: reads it again, and looks as soon as possible.
  void refresh();
  // Somebody has asked for its copy: it is missing only if the next look does not find it.
  void forget_missing(const control::TableRef& table);
  // Like refresh(), and waits for that look, at most for `patience`. `failed`: the table at which the stream has
  // failed, whose change needs no further wait; may be empty.
  void look_now(std::chrono::milliseconds patience, const std::string& failed);

  // A table's trouble that loses changes and is not resolved. None while it is unknown.
  std::optional<base::Error> unresolved() const;
  // Marks those tables that have one.
  void add_to(std::vector<control::TableStatus>& tables) const;

 private:
  // Whether a copied table has this name by now, which its record gets at the next start.
  bool is_followed(const instantiation::TableName& name) const;
  void run(const std::stop_token& stop);
  bool look(const control::Delivery& delivery, bool read_again, const std::string& failed);
  base::Result<void> compare(const control::Delivery& delivery, bool read_again, const std::string& failed);
  base::Result<void> settle(const control::Delivery& delivery, instantiation::SourceTables& now,
                            const std::set<instantiation::TableName>& rewritten, const std::string& failed);
  // Whether apply has noted partitions whose rows are not at the destination yet.
  bool waits_for_apply() const;
  // Of partitions that apply has noted.
  using NotesOf = std::function<std::vector<instantiation::WrittenLeaf>(const instantiation::TableRecord&)>;
  base::Result<void> forget(const control::Delivery& delivery, const NotesOf& notes_of);
  // A rule that drops each TRUNCATE of a table drops those of its partitions, too.
  base::Result<void> forget_dropped_truncates(const control::Delivery& delivery,
                                              const instantiation::SourceTables& now);
  base::Result<pg::Connection> connect(const base::Conninfo& conninfo, const std::string& stream_id) const;
  base::Result<void> read_records(const control::Delivery& delivery);
  std::vector<instantiation::TableName> without_record(const control::Delivery& delivery) const;
  void log_troubles(const control::Delivery& delivery, const std::vector<instantiation::TableName>& tables) const;
  void note_missing(const control::Delivery& delivery, const instantiation::SourceTables& now);

  const base::Clock& clock_;
  std::atomic<bool> abandon_{false};  // Writer: the destructor. Reader: the thread's connections
  // The thread's.
  std::optional<pg::Connection> source_;
  std::optional<instantiation::TableRecords> records_;
  instantiation::Rewrites rewrites_;
  base::Lsn wal_end_;  // at the last look
  base::Lsn applied_;  // at the destination, when the records were read

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::optional<control::Delivery> delivery_;
  bool read_again_ = true;
  std::string failed_;
  uint64_t asked_ = 0;  // looks that somebody wanted
  uint64_t looked_ = 0;
  bool is_known_ = false;  // the last look had its answers
  instantiation::TableRecords shown_;
  std::map<instantiation::TableName, MissingTable> missing_;

  std::jthread thread_;  // last: it uses everything above
};

}  // namespace thalweg::daemon
