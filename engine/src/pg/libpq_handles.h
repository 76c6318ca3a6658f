#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "pg/connection.h"
#include "pg/peer_watch.h"
#include "pg/session_board.h"

// Internal to pg/: libpq's handles with owners, and the waits that every part of pg/ shares.

namespace thalweg::pg {

struct ResultDeleter {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ResultDeleter>;

struct BytesDeleter {
  void operator()(char* bytes) const { PQfreemem(bytes); }
};
using BytesPtr = std::unique_ptr<char, BytesDeleter>;

// libpq's message without its line breaks, LOCATION and LINE lines.
std::string tidy_message(std::string_view message);
NamedInError named_in_error(const PGresult* result);
// Rows' count in a command tag ("INSERT 0 5" -> 5), 0 where the tag has none.
uint64_t affected_rows(PGresult* result);

// Parameters in the arrays that libpq wants. Reused: allocates only while it grows.
class ParameterArrays {
 public:
  void fill(std::span<const Parameter> parameters);
  size_t bytes() const { return bytes_; }
  int count() const { return static_cast<int>(values.size()); }

  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
  std::vector<Oid> types;

 private:
  std::string terminated_;  // text values: libpq wants them with a final NUL
  size_t bytes_ = 0;
};

struct Rows::Impl {
  ResultPtr result;
};

// A connection's place on a board, or none.
class BoardEntry {
 public:
  void enter(SessionBoard& board, SessionBoard::Session session);
  void leave(bool abandoned);

  // A statement on the board while it runs. One that was given up stays there.
  class Statement {
   public:
    Statement(BoardEntry& entry, const bool& abandoned, std::string_view sql);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

   private:
    BoardEntry& entry_;
    const bool& abandoned_;
  };

 private:
  SessionBoard* board_ = nullptr;
  SessionBoard::Place place_;
};

// Bounds what libpq collects of one answer: it keeps all of it until the answer is whole. Data that is handed out as it
// comes, by COPY or by a replication stream, has no such end. Owner: whoever reads the answer.
class AnswerBound {
 public:
  // Checks the answer's size after each read: once it is too large, fails with database_error and gives the session up.
  base::Result<void> check(Connection::Impl& connection);
  // The next answer begins.
  void restart() { reads_ = 0; }

 private:
  uint32_t reads_ = 0;
  uint64_t received_at_first_ = 0;  // by the session, at the answer's first look
};

// Owner: the Connection's owner. The socket is always in non-blocking mode; every wait is a bounded poll.
struct Connection::Impl {
  PGconn* conn = nullptr;
  base::ErrorSide side = base::ErrorSide::unknown;  // every error below names it
  ParameterArrays parameters;
  BytesPtr copy_buffer;       // what copy_out_next handed out last
  size_t copy_unflushed = 0;  // bytes given to libpq since the last flush
  const std::atomic<bool>* abandon = nullptr;
  std::optional<std::chrono::steady_clock::time_point> ends_at;
  size_t answer_bytes_max = kAnswerBytesMax;
  bool abandoned = false;       // what is on its way is nobody's
  bool is_replication = false;  // nobody's functions run in it
  PeerWatch peer;
  BoardEntry on_board;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    copy_buffer.reset();
    on_board.leave(abandoned);
    if (conn != nullptr) PQfinish(conn);
  }

  // An ErrorResponse: SQLSTATE, primary message, detail, hint and the table that it names.
  base::Error error_from_result(const PGresult* result) const;
  // The connection failed under us: connection_lost with libpq's reason.
  base::Error lost() const;
  // libpq refused to send a command: connection_lost, or invalid_request when the connection is well.
  base::Error send_failed() const;
  // Waits until the session exists; database_unreachable after `timeout`.
  base::Result<void> wait_until_connected(std::chrono::seconds timeout);
  // Polls the socket for at most `timeout`; the events that came, 0 when none did. connection_lost once abandoned.
  base::Result<short> wait(short events, std::chrono::milliseconds timeout);
  base::Result<void> consume_input();
  // The server sends more than it may; with where the trouble is.
  base::Error too_much(size_t bytes_max) const;
  // Sends all that libpq holds, reading meanwhile whatever the server says, so that neither side stalls.
  base::Result<void> flush();
  // The next result, nullptr after a command's last one.
  base::Result<ResultPtr> next_result(AnswerBound& bound);
  // Reads the results of a simple command to its end: its last result, or its first error.
  base::Result<ResultPtr> finish_command();
  // The session is given up, or has reached its end.
  bool is_over() const;
  // Refuses a command while a pipeline or a COPY holds the connection.
  base::Result<void> ready_for_command() const;
  // Ends a COPY that a statement started where none was expected.
  void leave_copy(ExecStatusType status);
};

}  // namespace thalweg::pg
