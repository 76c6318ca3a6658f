#include "pg/connection.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pg/cancel_request.h"
#include "pg/connection_settings.h"
#include "pg/libpq_handles.h"
#include "pg/own_session.h"
#include "pg/received_bytes.h"

namespace thalweg::pg {

namespace {

using base::ErrorCode;

constexpr int kServerVersionMin = 140'000;
constexpr size_t kGreetingBytesMax = size_t{1} << 20;     // before the session exists: a few hundred are usual
constexpr std::chrono::milliseconds kConnectSlice{1000};  // between two looks at whether it is still wanted
constexpr std::chrono::milliseconds kCancelPatience{500};

// Values come and go in one form whatever the database's or the role's settings say, and nothing but the engine
// decides how long a statement may take, what a session may do and how its transactions see one another. A session
// whose engine has vanished without a word ends, with what it holds (the stream's lock, say), within 20 seconds: by
// default the server would miss it after two hours. The settings come with the startup packet, where they win over the
// role's, and where a pooler refuses them. With SET they would stay behind in a pooled session, for other clients.
// No compiled expressions: a look at the catalogs of 300 tables takes 90 ms, and 7 s with them.
// A read-only default is not overruled: administrators, and services whose disk is full, mean it.
constexpr const char* kSessionSettings =
    "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex -c lc_monetary=C "
    "-c xmloption=content -c standard_conforming_strings=on -c array_nulls=on -c transform_null_equals=off "
    "-c default_transaction_isolation=read\\ committed -c statement_timeout=0 -c lock_timeout=0 "
    "-c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0 -c jit=off -c tcp_keepalives_idle=5 "
    "-c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";
// The engine reads all that comes, at once; but a replication stream only as fast as its changes are taken, and the
// server's kernel would end it for its closed window. There the server's wal_sender_timeout does the same service.
constexpr const char* kReadAtOnce = "-c tcp_user_timeout=20000";
constexpr const char* kNewerSettings = "SET transaction_timeout = 0";
constexpr int kNewerVersion = 170'000;

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
  // PgBouncer's refusal, and that of Amazon's RDS Proxy.
  if (message.contains("unsupported startup parameter") || message.contains("command-line options")) {
    return base::fail(ErrorCode::connection_pooler, std::move(message)).error();
  }
  const std::string sqlstate = sqlstate_in(message);
  if (!sqlstate.empty()) {
    message.erase(message.find(sqlstate + ": "), sqlstate.size() + 2);
    // A setting that PostgreSQL 14 brought.
    if (sqlstate == "42704") return base::fail(ErrorCode::unsupported_version, std::move(message)).error();
    base::Error error = error_from_sqlstate(sqlstate, std::move(message));
    if (error.code == ErrorCode::connection_lost) error.code = ErrorCode::database_unreachable;
    return error;
  }
  const bool password = PQconnectionNeedsPassword(conn) != 0;
  return base::fail(password ? ErrorCode::authentication_failed : ErrorCode::database_unreachable, std::move(message))
      .error();
}

// Tells one of a conninfo's servers from the others.
std::string name_of(const ServerSettings& server) {
  std::string name;
  for (const auto& [keyword, value] : server.settings) {
    if (keyword == "host" || keyword == "hostaddr" || keyword == "port") name += keyword + "=" + value + " ";
  }
  return name;
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

base::Result<Connection> Connection::open(const base::Conninfo& conninfo, const ConnectOptions& options) {
  auto opened = open_any(conninfo, options);
  if (opened) {
    opened->impl_->side = conninfo.side;
  } else {
    opened.error().side = conninfo.side;
  }
  return opened;
}

base::Result<Connection> Connection::open_any(const base::Conninfo& conninfo, const ConnectOptions& options) {
  THALWEG_ASSIGN(const ConnectionSettings admitted, admitted_settings(conninfo, options.connect_timeout));
  EndsAt ends_at;
  if (options.lifetime.count() > 0) ends_at = std::chrono::steady_clock::now() + options.lifetime;
  std::string why, sqlstate;
  for (const ServerSettings& server : admitted.servers) {
    const std::string name = name_of(server);
    if (!options.server.empty() && name != options.server) continue;
    auto opened = open_server(server, options, ends_at);
    if (opened && options.board != nullptr) opened->enter_board(conninfo, name, options);
    // A server that answers has the last word: a wrong password is wrong at the next one, too.
    if (opened || opened.error().code != ErrorCode::database_unreachable) return opened;
    if (options.abandon != nullptr && options.abandon->load(std::memory_order_relaxed)) return opened;
    why += (why.empty() ? "" : "; ") + opened.error().message;
    if (sqlstate.empty()) sqlstate = opened.error().sqlstate;
  }
  if (why.empty()) why = "the conninfo does not name the server any more";
  base::Error error = base::fail(ErrorCode::database_unreachable, std::move(why)).error();
  error.sqlstate = std::move(sqlstate);
  return std::unexpected(std::move(error));
}

base::Result<void> Connection::Impl::wait_until_connected(std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || is_over()) {
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
    if (received_bytes(PQsocket(conn)) > kGreetingBytesMax) return std::unexpected(too_much(kGreetingBytesMax));
  }
  return {};
}

void Connection::enter_board(const base::Conninfo& conninfo, std::string server, const ConnectOptions& options) {
  impl_->on_board.enter(*options.board, {.conninfo = conninfo,
                                         .server = std::move(server),
                                         .application_name = options.application_name,
                                         .pid = backend_pid(),
                                         .sql = {},
                                         .since = {}});
}

base::Result<Connection> Connection::open_server(const ServerSettings& server, const ConnectOptions& options,
                                                 EndsAt ends_at) {
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  const auto set = [&](const char* keyword, const char* value) {
    keywords.push_back(keyword);
    values.push_back(value);
  };
  for (const auto& [keyword, value] : server.settings) set(keyword.c_str(), value.c_str());
  set("application_name", options.application_name.c_str());  // later entries win
  set("client_encoding", "UTF8");
  const std::string mark = new_session_mark();
  const std::string session_settings = fmt::format(
      "{} {} -c search_path={} {} {}", kSessionSettings, options.replication == Replication::off ? kReadAtOnce : "",
      options.search_path, session_mark_setting(mark), options.session_settings);
  set("options", session_settings.c_str());
  if (options.replication == Replication::database) set("replication", "database");
  set(nullptr, nullptr);
  auto impl = std::make_unique<Impl>();
  impl->abandon = options.abandon;
  impl->is_replication = options.replication != Replication::off;
  impl->ends_at = ends_at;
  impl->answer_bytes_max = options.answer_bytes_max;
  impl->conn = PQconnectStartParams(keywords.data(), values.data(), 0);
  if (impl->conn == nullptr) return base::fail(ErrorCode::database_unreachable, "out of memory");
  PQsetNoticeReceiver(impl->conn, log_notice, nullptr);
  PQsetErrorVerbosity(impl->conn, PQERRORS_VERBOSE);  // the only way to a SQLSTATE before the session exists
  if (PQstatus(impl->conn) == CONNECTION_BAD) return std::unexpected(connect_error(impl->conn));
  THALWEG_TRY(impl->wait_until_connected(server.connect_timeout));
  PQsetErrorVerbosity(impl->conn, PQERRORS_DEFAULT);
  if (PQserverVersion(impl->conn) < kServerVersionMin) {
    return base::fail(ErrorCode::unsupported_version,
                      fmt::format("The server runs PostgreSQL {}.", PQserverVersion(impl->conn) / 10'000));
  }
  if (PQsetnonblocking(impl->conn, 1) != 0) return std::unexpected(impl->lost());
  Connection connection{std::move(impl)};
  THALWEG_TRY(expect_own_session(connection, mark));
  if (connection.server_version() >= kNewerVersion) THALWEG_TRY(connection.script(kNewerSettings));
  return connection;
}

base::Result<Rows> Connection::query(const std::string& sql, std::span<const Parameter> parameters) {
  THALWEG_TRY(impl_->ready_for_command());
  const BoardEntry::Statement shown(impl_->on_board, impl_->abandoned, sql);
  ParameterArrays& arrays = impl_->parameters;
  arrays.fill(parameters);
  if (PQsendQueryParams(impl_->conn, sql.c_str(), arrays.count(), arrays.types.data(), arrays.values.data(),
                        arrays.lengths.data(), arrays.formats.data(), 0) == 0) {
    return std::unexpected(impl_->send_failed());
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
  const BoardEntry::Statement shown(impl_->on_board, impl_->abandoned, sql);
  if (PQsendQuery(impl_->conn, sql.c_str()) == 0) return std::unexpected(impl_->send_failed());
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
  CancelRequest request;
};

Connection::Canceller::~Canceller() = default;

void Connection::Canceller::cancel() const {
  if (impl_) impl_->request.send(kCancelPatience);
}

Connection::Canceller Connection::canceller() const {
  Canceller canceller;
  canceller.impl_ = std::make_shared<Canceller::Impl>(CancelRequest(impl_->conn));
  return canceller;
}

}  // namespace thalweg::pg
