#include "pg/libpq_handles.h"

#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "pg/cancel_request.h"
#include "pg/received_bytes.h"

namespace thalweg::pg {

namespace {

// One slice of an unbounded wait: how late a connection that broke without an event is noticed.
constexpr std::chrono::milliseconds kWaitSlice{1000};
constexpr std::chrono::seconds kCancelPatience{2};
// Each look is a system call, and most answers are whole by then.
constexpr uint32_t kReadsBetweenLooks = 16;

std::string_view field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

}  // namespace

std::string tidy_message(std::string_view message) {
  std::string tidy;
  while (!message.empty()) {
    const size_t end = message.find('\n');
    std::string_view line = message.substr(0, end);
    message.remove_prefix(end == std::string_view::npos ? message.size() : end + 1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty() || line.starts_with("LOCATION:") || line.starts_with("LINE ") || line == "^") continue;
    if (!tidy.empty()) tidy += "; ";
    tidy += line;
  }
  return tidy;
}

NamedInError named_in_error(const PGresult* result) {
  return {.constraint = std::string(field(result, PG_DIAG_CONSTRAINT_NAME)),
          .column = std::string(field(result, PG_DIAG_COLUMN_NAME)),
          .type = std::string(field(result, PG_DIAG_DATATYPE_NAME))};
}

uint64_t affected_rows(PGresult* result) {
  const char* text = PQcmdTuples(result);
  uint64_t rows = 0;
  std::from_chars(text, text + std::strlen(text), rows);  // an empty tag leaves 0
  return rows;
}

void ParameterArrays::fill(std::span<const Parameter> parameters) {
  values.clear();
  lengths.clear();
  formats.clear();
  types.clear();
  bytes_ = 0;
  size_t text_bytes = 0;
  for (const auto& parameter : parameters) {
    if (!parameter.is_null && !parameter.is_binary) text_bytes += parameter.bytes.size() + 1;
  }
  terminated_.clear();
  terminated_.reserve(text_bytes);  // no growth below: the pointers stay valid
  for (const auto& parameter : parameters) {
    const char* value = nullptr;
    if (parameter.is_null) {
      value = nullptr;
    } else if (parameter.is_binary) {
      // An empty span may have no address; libpq reads a null pointer as NULL.
      value = parameter.bytes.empty() ? "" : reinterpret_cast<const char*>(parameter.bytes.data());
    } else {
      value = terminated_.data() + terminated_.size();
      terminated_.append(reinterpret_cast<const char*>(parameter.bytes.data()), parameter.bytes.size());
      terminated_.push_back('\0');
    }
    values.push_back(value);
    lengths.push_back(static_cast<int>(parameter.bytes.size()));
    formats.push_back(parameter.is_binary ? 1 : 0);
    types.push_back(parameter.type.value);
    bytes_ += parameter.bytes.size() + 8;
  }
}

// --- BoardEntry

void BoardEntry::enter(SessionBoard& board, SessionBoard::Session session) {
  place_ = board.enter(std::move(session));
  board_ = &board;
}

void BoardEntry::leave(bool abandoned) {
  if (board_ != nullptr) board_->leave(place_, abandoned);
  board_ = nullptr;
}

BoardEntry::Statement::Statement(BoardEntry& entry, const bool& abandoned, std::string_view sql)
    : entry_(entry), abandoned_(abandoned) {
  if (entry_.board_ != nullptr) entry_.board_->begin(entry_.place_, sql);
}

BoardEntry::Statement::~Statement() {
  if (entry_.board_ != nullptr && !abandoned_) entry_.board_->end(entry_.place_);
}

// --- AnswerBound

base::Result<void> AnswerBound::check(Connection::Impl& connection) {
  // The first look is at the first read: later, the kernel's buffer may have taken in another 32 MiB.
  if (reads_++ % kReadsBetweenLooks != 0) return {};
  const uint64_t received = received_bytes(PQsocket(connection.conn));
  if (reads_ == 1) received_at_first_ = received;
  if (received - received_at_first_ <= connection.answer_bytes_max) return {};
  connection.abandoned = true;
  return std::unexpected(connection.too_much(connection.answer_bytes_max));
}

// --- Connection::Impl

base::Error Connection::Impl::error_from_result(const PGresult* result) const {
  std::string message{field(result, PG_DIAG_MESSAGE_PRIMARY)};
  if (message.empty()) message = tidy_message(PQresultErrorMessage(result));
  if (const auto detail = field(result, PG_DIAG_MESSAGE_DETAIL); !detail.empty()) {
    message += fmt::format(". {}", detail);
  }
  if (const auto hint = field(result, PG_DIAG_MESSAGE_HINT); !hint.empty()) {
    message += fmt::format(" Hint: {}", hint);
  }
  const auto sqlstate = field(result, PG_DIAG_SQLSTATE);
  // libpq itself makes results without a SQLSTATE when the server has gone.
  base::Error error = sqlstate.empty() ? base::fail(base::ErrorCode::connection_lost, std::move(message)).error()
                                       : error_from_sqlstate(sqlstate, std::move(message));
  // With a context it came out of a function, which may say anything under any SQLSTATE, or out of a line of COPY.
  if (!is_replication && !field(result, PG_DIAG_CONTEXT).empty()) error.may_show_rows = true;
  if (const auto table = field(result, PG_DIAG_TABLE_NAME); !table.empty()) {
    error.table = quote_table(field(result, PG_DIAG_SCHEMA_NAME), table);
  }
  error.side = side;
  return error;
}

base::Error Connection::Impl::lost() const {
  std::string reason = tidy_message(PQerrorMessage(conn));
  if (reason.empty()) reason = "the server closed the connection";
  return base::fail(base::ErrorCode::connection_lost, std::move(reason), side).error();
}

base::Error Connection::Impl::send_failed() const {
  if (PQstatus(conn) == CONNECTION_BAD) return lost();
  return base::fail(base::ErrorCode::invalid_request, tidy_message(PQerrorMessage(conn)), side).error();
}

bool Connection::Impl::is_over() const {
  return (abandon != nullptr && abandon->load(std::memory_order_relaxed)) ||
         (ends_at && std::chrono::steady_clock::now() >= *ends_at);
}

base::Result<short> Connection::Impl::wait(short events, std::chrono::milliseconds timeout) {
  const int socket = PQsocket(conn);
  if (socket < 0) return std::unexpected(lost());
  if (abandoned || is_over()) {
    abandoned = true;
    return base::fail(base::ErrorCode::connection_lost, "the session was given up while the server was working", side);
  }
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) {
    return base::fail(base::ErrorCode::connection_lost, fmt::format("poll failed: {}", std::strerror(errno)), side);
  }
  if (ready > 0) return entry.revents;
  if (timeout.count() == 0 || !peer.is_silent(socket)) return short{0};
  return base::fail(base::ErrorCode::connection_lost,
                    fmt::format("nothing that was sent in {} s has been acknowledged", PeerWatch::kPatience.count()),
                    side);
}

base::Result<void> Connection::Impl::consume_input() {
  if (PQconsumeInput(conn) == 0) return std::unexpected(lost());
  // libpq keeps notifications until they are taken. Nobody here listens for any.
  while (PGnotify* const unwanted = PQnotifies(conn)) PQfreemem(unwanted);
  return {};
}

base::Error Connection::Impl::too_much(size_t bytes_max) const {
  return base::fail(base::ErrorCode::database_error,
                    fmt::format("The server has sent more than {} MiB, which is more than its answer may have.",
                                bytes_max >> 20),
                    side)
      .error();
}

base::Result<void> Connection::Impl::flush() {
  AnswerBound bound;
  while (true) {
    const int rest = PQflush(conn);
    if (rest == 0) return {};
    if (rest < 0) return std::unexpected(lost());
    THALWEG_ASSIGN(const short ready, wait(POLLIN | POLLOUT, kWaitSlice));
    if ((ready & (POLLIN | POLLERR | POLLHUP)) != 0) THALWEG_TRY(consume_input());
    THALWEG_TRY(bound.check(*this));  // libpq may have read more to be able to send
  }
}

base::Result<ResultPtr> Connection::Impl::next_result(AnswerBound& bound) {
  while (PQisBusy(conn) != 0) {
    THALWEG_ASSIGN(const short ready, wait(POLLIN, kWaitSlice));
    if (ready == 0) continue;
    THALWEG_TRY(consume_input());
    THALWEG_TRY(bound.check(*this));
  }
  return ResultPtr{PQgetResult(conn)};
}

base::Result<ResultPtr> Connection::Impl::finish_command() {
  ResultPtr last;
  std::optional<base::Error> error;
  AnswerBound bound;
  while (true) {
    THALWEG_ASSIGN(ResultPtr result, next_result(bound));
    if (!result) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
      if (!error) error = error_from_result(result.get());
      if (PQstatus(conn) == CONNECTION_BAD) break;
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      last = std::move(result);
      break;  // the caller goes on with the COPY
    } else {
      last = std::move(result);
    }
  }
  if (error) return std::unexpected(*std::move(error));
  if (!last) return std::unexpected(lost());
  return last;
}

base::Result<void> Connection::Impl::ready_for_command() const {
  if (abandoned || PQstatus(conn) == CONNECTION_BAD) return std::unexpected(lost());
  if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF) {
    return base::fail(base::ErrorCode::invalid_request, "a pipeline is open on this connection");
  }
  if (PQtransactionStatus(conn) == PQTRANS_ACTIVE) {
    return base::fail(base::ErrorCode::invalid_request, "another command runs on this connection");
  }
  return {};
}

void Connection::Impl::leave_copy(ExecStatusType status) {
  if (status == PGRES_COPY_IN) {
    PQputCopyEnd(conn, "this statement may not copy");
    if (!flush()) return;  // broken() tells the owner
  } else {
    // Without it the rows below are just more. Where it may still come, it would cancel what the session runs next.
    if (!CancelRequest(conn).send(kCancelPatience)) {
      abandoned = true;
      return;
    }
    int length = 0;
    do {
      char* row = nullptr;
      length = PQgetCopyData(conn, &row, 1);
      if (row != nullptr) PQfreemem(row);
      if (length == 0 && (!wait(POLLIN, kWaitSlice) || !consume_input())) return;
    } while (length >= 0);
  }
  (void)finish_command();  // the server's word that the COPY failed, as asked
}

}  // namespace thalweg::pg
