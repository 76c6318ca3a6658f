#include <poll.h>

#include <deque>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pg/connection.h"
#include "pg/libpq_handles.h"

// Never lets both sides wait for each other: whenever the socket takes no more, results that have come are read first.
// The server holds results back until its own buffer is full or a sync arrives, so reading on POLLIN is enough.

namespace thalweg::pg {

namespace {

using base::ErrorCode;

// Sent to the socket in pieces of this size, so that the server works while the rest of a batch is being queued.
constexpr size_t kFlushBytes = 32 * 1024;
constexpr std::chrono::milliseconds kWaitSlice{1000};
// Protocol overhead of a statement beside its parameters: Bind, Describe, Execute and their names, roughly.
constexpr size_t kStatementOverheadBytes = 64;

}  // namespace

struct Pipeline::Impl {
  Connection::Impl* connection;
  std::optional<base::Error> entry_error;
  Outcome taken;                 // of the statements behind the last sync point that has come
  std::deque<Outcome> outcomes;  // of the sync points that have come
  size_t outstanding = 0;        // statements and sync points without a result
  std::deque<size_t> sent{0};    // statements before each sync point that has not come; the last is not sent yet
  size_t unflushed = 0;          // bytes handed to libpq since the last flush
  bool unsent = false;           // the socket did not take all
  AnswerBound bound;

  PGconn* conn() const { return connection->conn; }

  // A statement was handed to libpq (`accepted` is what PQsend... returned).
  base::Result<void> queued(int accepted, size_t bytes) {
    if (accepted == 0) return std::unexpected(connection->send_failed());
    ++outstanding;
    ++sent.back();
    unflushed += bytes + kStatementOverheadBytes;
    if (unflushed < kFlushBytes) return {};
    unflushed = 0;
    return flush();
  }

  // Sends as much as the socket takes.
  base::Result<void> push() {
    const int rest = PQflush(conn());
    if (rest < 0) return std::unexpected(lost());
    unsent = rest > 0;
    return {};
  }

  base::Result<void> flush() {
    while (true) {
      THALWEG_TRY(push());
      if (!unsent) return {};
      THALWEG_ASSIGN(const short ready, connection->wait(POLLIN | POLLOUT, kWaitSlice));
      if ((ready & (POLLIN | POLLERR | POLLHUP)) != 0) {
        THALWEG_TRY(connection->consume_input());
        THALWEG_TRY(take_results());
        THALWEG_TRY(bound.check(*connection));
      }
    }
  }

  // Takes the results that have arrived, without waiting.
  base::Result<void> take_results() {
    int empty = 0;
    while (outstanding > 0 && PQisBusy(conn()) == 0) {
      ResultPtr result{PQgetResult(conn())};
      if (!result) {
        // One null ends each statement. More of them mean that libpq has lost count.
        if (++empty > 2) return std::unexpected(lost());
        continue;
      }
      empty = 0;
      THALWEG_TRY(take(std::move(result)));
    }
    return {};
  }

  base::Result<void> take(ResultPtr result) {
    bound.restart();
    switch (PQresultStatus(result.get())) {
      case PGRES_PIPELINE_SYNC:
        --outstanding;
        sent.pop_front();
        outcomes.push_back(std::exchange(taken, {}));
        return {};
      case PGRES_COMMAND_OK:
      case PGRES_EMPTY_QUERY:
        finished(affected_rows(result.get()));
        return {};
      case PGRES_TUPLES_OK:
        finished(affected_rows(result.get()));
        if (!taken.rows) taken.rows.emplace();
        taken.rows->impl_->result = std::move(result);
        return {};
      case PGRES_FATAL_ERROR:
      case PGRES_BAD_RESPONSE:
        if (!taken.error) {
          taken.error = connection->error_from_result(result.get());
          taken.named = named_in_error(result.get());
          taken.failed_statement = taken.affected.size();
        }
        if (PQstatus(conn()) == CONNECTION_BAD) return std::unexpected(lost());
        // Deferred checks fail behind all statements: the sync commits, and its own result is still to come.
        if (taken.affected.size() < sent.front()) finished(0);
        return {};
      case PGRES_PIPELINE_ABORTED:
        finished(0);
        return {};
      default:
        return base::fail(ErrorCode::invalid_request, "a statement in a pipeline may not copy");
    }
  }

  void finished(uint64_t rows) {
    --outstanding;
    taken.affected.push_back(rows);
  }

  // The server's last message is a better reason than libpq's.
  base::Error lost() {
    if (taken.error && taken.error->code == ErrorCode::connection_lost) return *taken.error;
    return connection->lost();
  }

  base::Result<void> read() {
    if (auto consumed = connection->consume_input(); !consumed) {
      (void)take_results();  // a FATAL that came before the end of the connection says why
      return std::unexpected(lost());
    }
    THALWEG_TRY(take_results());
    return bound.check(*connection);
  }

  base::Result<void> send_sync() {
    if (PQpipelineSync(conn()) == 0) return std::unexpected(connection->send_failed());
    ++outstanding;
    sent.push_back(0);
    unflushed = 0;
    return push();
  }

  base::Result<std::optional<Outcome>> outcome() {
    if (unsent) THALWEG_TRY(push());
    if (outcomes.empty()) THALWEG_TRY(read());
    if (outcomes.empty()) return std::nullopt;
    Outcome oldest = std::move(outcomes.front());
    outcomes.pop_front();
    return oldest;
  }

  short events() const { return static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN); }

  base::Result<Outcome> await_outcome() {
    while (true) {
      THALWEG_ASSIGN(auto oldest, outcome());
      if (oldest) return std::move(*oldest);
      THALWEG_TRY(connection->wait(events(), kWaitSlice));
    }
  }
};

Pipeline::Pipeline(Connection& connection) : impl_(std::make_unique<Impl>()) {
  impl_->connection = connection.impl_.get();
  if (PQenterPipelineMode(impl_->conn()) == 0) impl_->entry_error = impl_->connection->send_failed();
}

Pipeline::~Pipeline() {
  if (impl_->entry_error) return;
  if (PQstatus(impl_->conn()) == CONNECTION_BAD) return;
  // Statements without a sync were rolled back or not as their transaction decides; their results must be read.
  if (impl_->outstanding > 0 && !impl_->send_sync()) return;
  while (impl_->outstanding > 0) {
    if (!impl_->await_outcome()) return;
  }
  // The null that ends the last statement may still be there.
  while (PQisBusy(impl_->conn()) == 0) {
    const ResultPtr rest{PQgetResult(impl_->conn())};
    if (!rest) break;
  }
  if (PQexitPipelineMode(impl_->conn()) == 0) {
    spdlog::warn("pipeline mode could not be left: {}", tidy_message(PQerrorMessage(impl_->conn())));
  }
}

base::Result<void> Pipeline::prepare(const std::string& name, const std::string& sql,
                                     std::span<const base::TypeId> types) {
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  std::vector<Oid> oids;
  oids.reserve(types.size());
  for (const auto type : types) oids.push_back(type.value);
  return impl_->queued(
      PQsendPrepare(impl_->conn(), name.c_str(), sql.c_str(), static_cast<int>(oids.size()), oids.data()), sql.size());
}

base::Result<void> Pipeline::execute_prepared(const std::string& name, std::span<const Parameter> parameters) {
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  ParameterArrays& arrays = impl_->connection->parameters;
  arrays.fill(parameters);
  return impl_->queued(PQsendQueryPrepared(impl_->conn(), name.c_str(), arrays.count(), arrays.values.data(),
                                           arrays.lengths.data(), arrays.formats.data(), 0),
                       arrays.bytes());
}

base::Result<void> Pipeline::execute(const std::string& sql, std::span<const Parameter> parameters) {
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  ParameterArrays& arrays = impl_->connection->parameters;
  arrays.fill(parameters);
  return impl_->queued(PQsendQueryParams(impl_->conn(), sql.c_str(), arrays.count(), arrays.types.data(),
                                         arrays.values.data(), arrays.lengths.data(), arrays.formats.data(), 0),
                       arrays.bytes() + sql.size());
}

base::Result<Pipeline::Outcome> Pipeline::sync() {
  THALWEG_TRY(send_sync());
  return await_outcome();
}

base::Result<void> Pipeline::send_sync() {
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  return impl_->send_sync();
}

base::Result<std::optional<Pipeline::Outcome>> Pipeline::outcome() {
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  return impl_->outcome();
}

base::Result<Pipeline::Outcome> Pipeline::await_outcome() {
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  return impl_->await_outcome();
}

pollfd Pipeline::polled() const { return {.fd = PQsocket(impl_->conn()), .events = impl_->events(), .revents = 0}; }

}  // namespace thalweg::pg
