#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "apply/applier/statements.h"
#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/table_metadata.h"
#include "pg/connection.h"

// One connection to the destination, with its prepared statements and the statements in flight.

namespace thalweg::apply {

// Why a statement since the last sync failed.
struct StatementFailure {
  base::Error error;
  bool missing_row = false;        // an UPDATE or DELETE found none
  bool differs = false;            // it did, but not as it was at the source; ConflictResolver sets it
  bool unwritten = false;          // it did, as it was at the source, and yet was not written; ConflictResolver again
  std::string unsettled{};         // why its handlers could not settle it
  std::vector<std::byte> frame{};  // a copy, where one statement is one row: a spilled one's is gone with its chunk
  const metadata::TableMetadata* table = nullptr;
  bool below_sql = false;        // a call of the data layer: the error context names table and row
  int handler = 0;               // a statement handler's: its number
  bool own_row_missing = false;  // one about a row of our own found none
  pg::NamedInError named{};
  size_t statement = 0;  // which of those since the last sync, prepares included
};

using Refusal = std::optional<StatementFailure>;

// Owner: one thread at a time. A failed result means a broken connection; a server's refusal is a StatementFailure.
class DestinationSession {
 public:
  // Opens a connection and makes it an applier's: replica role, asynchronous commit, indexes preferred.
  static base::Result<DestinationSession> open(const base::Conninfo& conninfo, const pg::ConnectOptions& options);
  // Makes a connection that is there already an applier's.
  static base::Result<DestinationSession> adopt(pg::Connection connection);

  pg::Connection& connection() { return connection_; }
  bool broken() const { return connection_.broken(); }

  // The expected result of a statement.
  struct Prepared;
  struct Expectation {
    uint64_t rows = 0;  // exactly as many
    bool any = false;   // or whatever it is
    const std::byte* frame = nullptr;
    const metadata::TableMetadata* table = nullptr;
    bool below_sql = false;        // a call of the data layer
    int handler = 0;               // the number of a statement handler
    bool own_row = false;          // about a row of our own: divides by zero where that is not there
    bool is_checked = false;       // run() sets it: Statement::is_checked
    Prepared* prepared = nullptr;  // run() sets it, of a handler's statement
  };

  // A statement that is prepared on first use; the pointer is stable until a sync after the table's metadata changed.
  struct Prepared {
    Statement statement;
    std::string name;
    bool sent = false;
  };
  // `compared`: null where nothing is.
  Prepared& prepared(const metadata::TableMetadata& table, StatementKind kind, const ColumnMask& came,
                     const ColumnMask* compared, bool checked);
  // A handler of the table.
  Prepared& prepared(const metadata::TableMetadata& table, const metadata::HandlerStatement& handler);
  Prepared& prepared(const std::string& sql, std::span<const base::TypeId> types);

  base::Result<void> run(Prepared& prepared, std::span<const pg::Parameter> parameters, const Expectation& expectation);
  // Statement text as it is, any number of rows.
  base::Result<void> run(const std::string& sql);
  // Waits for everything sent; the first failure, if any. Statements between two syncs without BEGIN are one
  // transaction, which the sync commits. No answer to an earlier sync may be missing.
  base::Result<Refusal> sync();
  // sync() in steps: the sync goes out, its answer comes later; only await_answer() waits, for the answer. Statements
  // sent behind a sync without an answer belong to another transaction and must not use statements that the first one
  // prepares (prepares()).
  base::Result<void> send_sync();
  base::Result<std::optional<Refusal>> answer();
  base::Result<Refusal> await_answer();
  bool prepares() const;  // what is on its way
  // The descriptor to poll for before the next answer(); while no answer is missing, it reveals a lost connection.
  pollfd polled() const;
  bool unsent() const { return (polled().events & POLLOUT) != 0; }  // the socket did not take all
  // Leaves pipeline mode, for COPY. Nothing may be on its way.
  void leave_pipeline() { pipeline_.reset(); }
  size_t unsynced() const { return open_.expectations.size(); }

 private:
  explicit DestinationSession(pg::Connection connection);
  pg::Pipeline& pipeline();

  struct StatementKey {
    uint64_t generation;  // TableMetadata::generation
    StatementKind kind;
    bool checked;
    bool compares;
    int handler = 0;
    bool operator==(const StatementKey&) const = default;
  };
  struct StatementKeyHash {
    size_t operator()(const StatementKey& key) const {
      return key.generation * 31 + static_cast<size_t>(key.kind) * 4 + (key.compares ? 2 : 0) + (key.checked ? 1 : 0) +
             static_cast<size_t>(key.handler) * 1009;
    }
  };
  struct Variant {
    ColumnMask came;
    ColumnMask compared;
    std::unique_ptr<Prepared> prepared;
  };
  // Statements up to a sync.
  struct Batch {
    std::vector<Expectation> expectations;  // prepares included
    std::vector<Prepared*> prepared;
  };
  std::vector<Variant>& variants_of(const metadata::TableMetadata& table, StatementKey key);
  std::string next_name();
  void forget_outdated();
  void forget_outdated_handler(const Batch& batch, const pg::Pipeline::Outcome& outcome);
  base::Result<Refusal> take(base::Result<pg::Pipeline::Outcome> outcome);

  pg::Connection connection_;
  std::unique_ptr<pg::Pipeline> pipeline_;
  // Few masks a table: searched one by one.
  std::unordered_map<StatementKey, std::vector<Variant>, StatementKeyHash> statements_;
  // The generation that a table's statements are of; those of an older one go after the next sync.
  std::unordered_map<base::RelationId, uint64_t> generations_;
  std::vector<uint64_t> outdated_;
  std::vector<std::string> forgotten_;  // names that the server still has
  std::unordered_map<std::string, std::unique_ptr<Prepared>> plain_;
  Batch open_;                 // since the last sync
  std::deque<Batch> awaited_;  // of the syncs without an answer
  uint64_t names_ = 0;
};

}  // namespace thalweg::apply
