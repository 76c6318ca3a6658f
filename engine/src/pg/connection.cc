#include "pg/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pg/libpq_handles.h"

namespace thalweg::pg {

namespace {

using base::ErrorCode;

constexpr int kServerVersionMin = 140'000;
constexpr std::chrono::milliseconds kConnectSlice{1000};  // between two looks at whether it is still wanted

// Values come and go in one form whatever the database's or the role's settings say, and nothing but the engine
// decides how long a statement may take. A session whose engine has vanished without a word ends, with what it holds
// (the stream's lock, say), within 20 seconds: by default the server would miss it after two hours.
constexpr const char* kSessionSettings =
    "SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET extra_float_digits = 3; SET bytea_output = 'hex'; "
    "SET lc_monetary = 'C'; SET xmloption = 'content'; SET statement_timeout = 0; SET "
    "idle_in_transaction_session_timeout = 0; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 5; "
    "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 20000";

void log_notice(void*, const PGresult* result) {
  spdlog::debug("notice: {}", tidy_message(PQresultErrorMessage(result)));
}

// "FATAL:  28P01: password ...": the form that PQERRORS_VERBOSE gives to a refusal before the session exists.
std::string sqlstate_in(std::string_view message) {
  const auto is_code = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  for (size_t at = message.find(":  "); at != std::string_view::npos; at = message.find(":  ", at + 1)) {
    const std::string_view code = message.substr(at + 3, 5);
    if (code.size() == 5 && std::ranges::all_of(code, is_code) && message.substr(at + 8, 2) == ": ") {
      return std::string{code};
    }
  }
  return {};
}

base::Error connect_error(PGconn* conn) {
  std::string message = tidy_message(PQerrorMessage(conn));
  const std::string sqlstate = sqlstate_in(message);
  if (!sqlstate.empty()) {
    message.erase(message.find(sqlstate + ": "), sqlstate.size() + 2);
    base::Error error = error_from_sqlstate(sqlstate, std::move(message));
    if (error.code == ErrorCode::connection_lost) error.code = ErrorCode::database_unreachable;
    return error;
  }
  const bool password = PQconnectionNeedsPassword(conn) != 0;
  return base::fail(password ? ErrorCode::authentication_failed : ErrorCode::database_unreachable, std::move(message))
      .error();
}

base::Result<void> check_conninfo(const std::string& conninfo) {
  char* reason = nullptr;
  PQconninfoOption* options = PQconninfoParse(conninfo.c_str(), &reason);
  if (options != nullptr) {
    PQconninfoFree(options);
    return {};
  }
  if (reason != nullptr) PQfreemem(reason);  // it may quote the password
  return base::fail(ErrorCode::invalid_request, "The connection string is not valid.");
}

base::Result<void> wait_until_connected(PGconn* conn, const ConnectOptions& options) {
  const auto timeout = options.connect_timeout;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const bool abandoned = options.abandon != nullptr && options.abandon->load(std::memory_order_relaxed);
    if (left.count() <= 0 || abandoned) {
      return base::fail(ErrorCode::database_unreachable,
                        fmt::format("The server at {} port {} did not answer within {} s.",
                                    PQhost(conn) == nullptr ? "?" : PQhost(conn), PQport(conn), timeout.count()));
    }
    pollfd entry{.fd = PQsocket(conn),
                 .events = static_cast<short>(status == PGRES_POLLING_READING ? POLLIN : POLLOUT),
                 .revents = 0};
    if (entry.fd < 0) return std::unexpected(connect_error(conn));
    if (::poll(&entry, 1, static_cast<int>(std::min(left, kConnectSlice).count())) <= 0) continue;
    status = PQconnectPoll(conn);
    if (status == PGRES_POLLING_FAILED) return std::unexpected(connect_error(conn));
  }
  return {};
}

}  // namespace

// --- Rows

Rows::Rows() : impl_(std::make_unique<Impl>()) {}
Rows::Rows(Rows&&) noexcept = default;
Rows& Rows::operator=(Rows&&) noexcept = default;
Rows::~Rows() = default;

size_t Rows::size() const { return impl_->result ? static_cast<size_t>(PQntuples(impl_->result.get())) : 0; }
size_t Rows::columns() const { return impl_->result ? static_cast<size_t>(PQnfields(impl_->result.get())) : 0; }

bool Rows::is_null(size_t row, size_t column) const {
  return row >= size() || column >= columns() ||
         PQgetisnull(impl_->result.get(), static_cast<int>(row), static_cast<int>(column)) != 0;
}

std::string_view Rows::text(size_t row, size_t column) const {
  if (row >= size() || column >= columns()) return {};
  const int r = static_cast<int>(row);
  const int c = static_cast<int>(column);
  return {PQgetvalue(impl_->result.get(), r, c), static_cast<size_t>(PQgetlength(impl_->result.get(), r, c))};
}

int64_t Rows::integer(size_t row, size_t column) const {
  const std::string_view digits = text(row, column);
  int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool Rows::boolean(size_t row, size_t column) const { return text(row, column) == "t"; }
uint64_t Rows::affected() const { return impl_->result ? affected_rows(impl_->result.get()) : 0; }

// --- Connection

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

base::Result<Connection> Connection::open(const std::string& conninfo, const ConnectOptions& options) {
  THALWEG_TRY(check_conninfo(conninfo));
  const bool replication = options.replication == Replication::database;
  // A peer that falls silent is noticed within half a minute: until then a stream would show a state that is not so.
  // The conninfo may say otherwise: later entries win.
  const std::array<const char*, 11> keywords{"keepalives_idle",
                                             "keepalives_interval",
                                             "keepalives_count",
                                             "tcp_user_timeout",
                                             "dbname",
                                             "application_name",
                                             "client_encoding",
                                             replication ? "replication" : nullptr,
                                             nullptr};
  const std::array<const char*, 11> values{"10",
                                           "5",
                                           "4",
                                           "30000",
                                           conninfo.c_str(),
                                           options.application_name.c_str(),
                                           "UTF8",
                                           replication ? "database" : nullptr,
                                           nullptr};
  auto impl = std::make_unique<Impl>();
  impl->abandon = options.abandon;
  impl->conn = PQconnectStartParams(keywords.data(), values.data(), 1);
  if (impl->conn == nullptr) return base::fail(ErrorCode::database_unreachable, "out of memory");
  PQsetNoticeReceiver(impl->conn, log_notice, nullptr);
  PQsetErrorVerbosity(impl->conn, PQERRORS_VERBOSE);  // the only way to a SQLSTATE before the session exists
  if (PQstatus(impl->conn) == CONNECTION_BAD) return std::unexpected(connect_error(impl->conn));
  THALWEG_TRY(wait_until_connected(impl->conn, options));
  PQsetErrorVerbosity(impl->conn, PQERRORS_DEFAULT);
  if (PQserverVersion(impl->conn) < kServerVersionMin) {
    return base::fail(ErrorCode::unsupported_version,
                      fmt::format("The server runs PostgreSQL {}.", PQserverVersion(impl->conn) / 10'000));
  }
  if (PQsetnonblocking(impl->conn, 1) != 0) return std::unexpected(connection_lost(impl->conn));
  Connection connection{std::move(impl)};
  THALWEG_TRY(connection.script(kSessionSettings));
  return connection;
}

base::Result<Rows> Connection::query(const std::string& sql, std::span<const Parameter> parameters) {
  THALWEG_TRY(impl_->ready_for_command());
  ParameterArrays& arrays = impl_->parameters;
  arrays.fill(parameters);
  if (PQsendQueryParams(impl_->conn, sql.c_str(), arrays.count(), arrays.types.data(), arrays.values.data(),
                        arrays.lengths.data(), arrays.formats.data(), 0) == 0) {
    return std::unexpected(send_failed(impl_->conn));
  }
  THALWEG_TRY(impl_->flush());
  Rows rows;
  THALWEG_ASSIGN(rows.impl_->result, impl_->finish_command());
  const ExecStatusType status = PQresultStatus(rows.impl_->result.get());
  if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
    impl_->leave_copy(status);
    return base::fail(ErrorCode::invalid_request, "COPY goes through copy_in_begin and copy_out_begin");
  }
  return rows;
}

base::Result<Rows> Connection::query(const std::string& sql, std::initializer_list<std::string_view> parameters) {
  std::vector<Parameter> converted;
  converted.reserve(parameters.size());
  for (const auto text : parameters) converted.push_back(text_parameter(text));
  return query(sql, converted);
}

base::Result<Rows> Connection::script(const std::string& sql) {
  THALWEG_TRY(impl_->ready_for_command());
  if (PQsendQuery(impl_->conn, sql.c_str()) == 0) return std::unexpected(send_failed(impl_->conn));
  THALWEG_TRY(impl_->flush());
  Rows rows;
  THALWEG_ASSIGN(rows.impl_->result, impl_->finish_command());
  const ExecStatusType status = PQresultStatus(rows.impl_->result.get());
  if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
    impl_->leave_copy(status);
    return base::fail(ErrorCode::invalid_request, "COPY goes through copy_in_begin and copy_out_begin");
  }
  return rows;
}

std::string Connection::quote_literal(std::string_view text) const {
  std::unique_ptr<char, BytesDeleter> quoted{PQescapeLiteral(impl_->conn, text.data(), text.size())};
  // Only text that is not valid UTF-8 is refused; an empty literal is then as harmless as any.
  return quoted ? std::string{quoted.get()} : "''";
}

int Connection::server_version() const { return PQserverVersion(impl_->conn); }
int Connection::backend_pid() const { return PQbackendPID(impl_->conn); }
bool Connection::broken() const {
  return impl_ == nullptr || impl_->abandoned || PQstatus(impl_->conn) == CONNECTION_BAD;
}

// --- Canceller

struct Connection::Canceller::Impl {
  explicit Impl(PGcancel* handle) : cancel(handle) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (cancel != nullptr) PQfreeCancel(cancel);
  }
  PGcancel* cancel;
};

Connection::Canceller::~Canceller() = default;

void Connection::Canceller::cancel() const {
  if (!impl_ || impl_->cancel == nullptr) return;
  std::array<char, 256> reason{};
  if (PQcancel(impl_->cancel, reason.data(), reason.size()) == 0) {
    spdlog::warn("a statement could not be cancelled: {}", tidy_message(reason.data()));
  }
}

Connection::Canceller Connection::canceller() const {
  Canceller canceller;
  canceller.impl_ = std::make_shared<Canceller::Impl>(PQgetCancel(impl_->conn));
  return canceller;
}

}  // namespace thalweg::pg
