#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"

// PostgreSQL connections: the only folder that knows libpq.

namespace thalweg::pg {

// A parameter of a statement. `type` 0 lets the server infer it.
struct Parameter {
  std::span<const std::byte> bytes;
  base::TypeId type;
  bool is_null = false;
  bool is_binary = false;
};
Parameter text_parameter(std::string_view text);  // keeps a pointer to `text`

// Rows of one finished statement, text format.
class Rows {
 public:
  Rows();
  Rows(Rows&&) noexcept;
  Rows& operator=(Rows&&) noexcept;
  ~Rows();
  size_t size() const;
  size_t columns() const;
  bool is_null(size_t row, size_t column) const;
  std::string_view text(size_t row, size_t column) const;  // empty for NULL
  int64_t integer(size_t row, size_t column) const;        // 0 for NULL
  bool boolean(size_t row, size_t column) const;           // 't'
  uint64_t affected() const;                               // rows that INSERT, UPDATE, DELETE, COPY touched

 private:
  friend class Connection;
  friend class Pipeline;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The names in an error of the server, in no language; empty where it names none.
struct NamedInError {
  std::string constraint = {};
  std::string column = {};
  std::string type = {};  // of a domain's constraint, for example
};

struct ServerSettings;
class SessionBoard;
enum class Replication { off, database };

// Of one answer that is collected as a whole: the catalogues of ten thousand tables are a tenth of it.
constexpr size_t kAnswerBytesMax = size_t{256} << 20;
// Of answers with users' values: PostgreSQL makes no larger one of a row.
constexpr size_t kRowBytesMax = size_t{1} << 30;

struct ConnectOptions {
  std::string application_name = "thalweg";
  Replication replication = Replication::off;
  // Only the server's own functions and operators are found without a schema; otherwise a user who may create objects
  // in a schema of the path could put theirs first. Tests that act for a user set another path.
  const char* search_path = "pg_catalog";
  std::chrono::seconds connect_timeout{10};  // for each server; a conninfo may shorten it
  // Once any thread sets it, a wait for the server ends within two seconds: the connection is abandoned. It outlives
  // the connection. Null: waits as long as it takes.
  const std::atomic<bool>* abandon = nullptr;
  // The connection is also abandoned this long after it was begun to open; zero: never.
  std::chrono::milliseconds lifetime{0};
  // The board that shows its statements to others (session_board.h). It outlives the connection. Null: no board.
  SessionBoard* board = nullptr;
  // A server that sends more as the answer to one statement is left, with database_error. COPY is free of it.
  size_t answer_bytes_max = kAnswerBytesMax;
  // The only one of the conninfo's servers that will do, as the board has it; empty: any.
  std::string server = {};
  // More settings of the session, "-c name=value": they may be secret, and stand in no statement.
  std::string session_settings = {};
};

// Owner: one thread at a time. Moves; closes on destruction. Every connection sets client_encoding to UTF8,
// DateStyle to ISO, IntervalStyle to postgres, extra_float_digits to 3, bytea_output to hex, lc_monetary to C,
// xmloption to content, TCP keepalives, and no time-out.
class Connection {
 public:
  // Opens the first of several servers that can be reached and fits target_session_attrs.
  static base::Result<Connection> open(const base::Conninfo& conninfo, const ConnectOptions& options);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // Runs one statement and waits. Errors carry SQLSTATE; classes: see error_from_sqlstate().
  base::Result<Rows> query(const std::string& sql, std::span<const Parameter> parameters = {});
  base::Result<Rows> query(const std::string& sql, std::initializer_list<std::string_view> parameters);
  // Runs a script of several statements without parameters; the last one's rows.
  base::Result<Rows> script(const std::string& sql);

  // COPY ... FROM STDIN.
  base::Result<void> copy_in_begin(const std::string& sql);
  base::Result<void> copy_in_put(std::span<const std::byte> bytes);
  base::Result<uint64_t> copy_in_end();  // rows copied
  void copy_in_fail(const std::string& reason);
  // COPY ... TO STDOUT. copy_out_next: one CopyData message, valid until the next call; nullopt at the end.
  base::Result<void> copy_out_begin(const std::string& sql);
  base::Result<std::optional<std::span<const std::byte>>> copy_out_next();

  std::string quote_literal(std::string_view text) const;
  int server_version() const;  // 150020
  int backend_pid() const;
  bool broken() const;  // the connection is lost; open another
  // Cancels the running statement from another thread; Thread-safe against the owner. Waits half a second at most for
  // the server to take it, which it may still do later.
  class Canceller {
   public:
    ~Canceller();
    void cancel() const;

   private:
    friend class Connection;
    struct Impl;
    std::shared_ptr<Impl> impl_;
  };
  Canceller canceller() const;

 private:
  friend class AnswerBound;
  friend class Pipeline;
  friend class ReplicationStream;
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  static base::Result<Connection> open_any(const base::Conninfo& conninfo, const ConnectOptions& options);
  using EndsAt = std::optional<std::chrono::steady_clock::time_point>;
  static base::Result<Connection> open_server(const ServerSettings& server, const ConnectOptions& options,
                                              EndsAt ends_at);
  void enter_board(const base::Conninfo& conninfo, std::string server, const ConnectOptions& options);
  std::unique_ptr<Impl> impl_;
};

// libpq's pipeline mode: many statements, one round trip. Owner: the connection's owner.
// Sends without blocking while results come in, so neither side stalls on a full socket.
class Pipeline {
 public:
  explicit Pipeline(Connection& connection);  // enters pipeline mode; the destructor leaves it
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  base::Result<void> prepare(const std::string& name, const std::string& sql, std::span<const base::TypeId> types);
  base::Result<void> execute_prepared(const std::string& name, std::span<const Parameter> parameters);
  base::Result<void> execute(const std::string& sql, std::span<const Parameter> parameters = {});

  struct Outcome {
    std::vector<uint64_t> affected;    // per statement sent since the last sync (a prepare counts as one, 0 rows)
    std::optional<Rows> rows = {};     // of the last statement that gave any
    std::optional<base::Error> error;  // the first failure; statements after it were skipped by the server
    NamedInError named;                // in it
    size_t failed_statement = 0;       // index into the statements since the last sync
  };
  // Marks a sync point, flushes, and reads every result up to it. Fails itself only if the connection broke. No other
  // sync point's outcome may be missing.
  base::Result<Outcome> sync();

  // The same in steps, for sync points in a row. Marks a sync point, and sends as much as the socket takes.
  base::Result<void> send_sync();
  // The outcome of the oldest one, or nullopt while some of its results are missing. Does not wait; notices a lost
  // connection where none is on its way, too.
  base::Result<std::optional<Outcome>> outcome();
  base::Result<Outcome> await_outcome();
  // The descriptor to poll for before the next outcome().
  pollfd polled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Maps a SQLSTATE to the catalogue: 08*, 57P0*: connection_lost; 28*: authentication_failed; 42501:
// insufficient_privilege; 53100: disk_full; 40001, 40P01, 55P03, 57014: database_busy; 3D000: missing database ... see
// the table in error_map.cc; else database_error.
base::Error error_from_sqlstate(std::string_view sqlstate, std::string message);

// Removes libpq's variables (PGSSLMODE, PGSERVICE, PGHOSTADDR, PGOPTIONS, ...) from the process's environment: only a
// conninfo says where and how the engine connects. Before there are threads.
void forget_environment();

std::string quote_identifier(std::string_view name);
std::string quote_table(std::string_view schema, std::string_view table);

}  // namespace thalweg::pg
