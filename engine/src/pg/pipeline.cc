#include <poll.h>

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
// What the protocol adds to a statement's parameters: Bind, Describe, Execute and their names, roughly.
constexpr size_t kStatementOverheadBytes = 64;

}  // namespace

struct Pipeline::Impl {
  Connection::Impl* connection;
  std::optional<base::Error> entry_error;
  std::vector<uint64_t> affected;  // of the finished statements since the last sync
  std::optional<base::Error> error;
  size_t failed_statement = 0;
  size_t sent = 0;       // statements since the last sync
  size_t unflushed = 0;  // bytes handed to libpq since the last flush
  bool sync_pending = false;

  PGconn* conn() const { return connection->conn; }
  size_t outstanding() const { return sent - affected.size() + (sync_pending ? 1 : 0); }

  // A statement was handed to libpq (`accepted` is what PQsend... returned).
  base::Result<void> queued(int accepted, size_t bytes) {
    if (accepted == 0) return std::unexpected(send_failed(conn()));
    ++sent;
    unflushed += bytes + kStatementOverheadBytes;
    if (unflushed < kFlushBytes) return {};
    unflushed = 0;
    return flush();
  }

  base::Result<void> flush() {
    while (true) {
      const int rest = PQflush(conn());
      if (rest == 0) return {};
      if (rest < 0) return std::unexpected(lost());
      THALWEG_ASSIGN(const short ready, connection->wait(POLLIN | POLLOUT, kWaitSlice));
      if ((ready & (POLLIN | POLLERR | POLLHUP)) != 0) {
        THALWEG_TRY(connection->consume_input());
        THALWEG_TRY(take_results());
      }
    }
  }

  // Takes the results that have arrived, without waiting.
  base::Result<void> take_results() {
    int empty = 0;
    while (outstanding() > 0 && PQisBusy(conn()) == 0) {
      const ResultPtr result{PQgetResult(conn())};
      if (!result) {
        // One null ends each statement. More of them mean that libpq has lost count.
        if (++empty > 2) return std::unexpected(lost());
        continue;
      }
      empty = 0;
      THALWEG_TRY(take(result.get()));
    }
    return {};
  }

  base::Result<void> take(PGresult* result) {
    switch (PQresultStatus(result)) {
      case PGRES_PIPELINE_SYNC:
        sync_pending = false;
        return {};
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
      case PGRES_EMPTY_QUERY:
        affected.push_back(affected_rows(result));
        return {};
      case PGRES_FATAL_ERROR:
      case PGRES_BAD_RESPONSE:
        if (!error) {
          error = error_from_result(result);
          failed_statement = affected.size();
        }
        if (PQstatus(conn()) == CONNECTION_BAD) return std::unexpected(lost());
        affected.push_back(0);
        return {};
      case PGRES_PIPELINE_ABORTED:
        affected.push_back(0);
        return {};
      default:
        return base::fail(ErrorCode::invalid_request, "a statement in a pipeline may not copy");
    }
  }

  // What the server said last is the better reason than libpq's.
  base::Error lost() {
    if (error && error->code == ErrorCode::connection_lost) return *error;
    return connection_lost(conn());
  }

  base::Result<void> read_to_sync() {
    while (sync_pending) {
      THALWEG_TRY(take_results());
      if (!sync_pending) break;
      THALWEG_ASSIGN(const short ready, connection->wait(POLLIN, kWaitSlice));
      if (ready == 0) continue;
      if (auto consumed = connection->consume_input(); !consumed) {
        (void)take_results();  // a FATAL that came before the end of the connection says why
        return std::unexpected(lost());
      }
    }
    return {};
  }

  base::Result<void> finish() {
    if (PQpipelineSync(conn()) == 0) return std::unexpected(send_failed(conn()));
    sync_pending = true;
    unflushed = 0;
    THALWEG_TRY(flush());
    return read_to_sync();
  }
};

Pipeline::Pipeline(Connection& connection) : impl_(std::make_unique<Impl>()) {
  impl_->connection = connection.impl_.get();
  if (PQenterPipelineMode(impl_->conn()) == 0) impl_->entry_error = send_failed(impl_->conn());
}

Pipeline::~Pipeline() {
  if (impl_->entry_error) return;
  if (PQstatus(impl_->conn()) == CONNECTION_BAD) return;
  // Statements without a sync were rolled back or not as their transaction decides; their results must be read.
  if (impl_->outstanding() > 0 && !impl_->finish()) return;
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
  if (impl_->entry_error) return std::unexpected(*impl_->entry_error);
  auto finished = impl_->finish();
  Outcome outcome{.affected = std::exchange(impl_->affected, {}),
                  .error = std::exchange(impl_->error, std::nullopt),
                  .failed_statement = std::exchange(impl_->failed_statement, 0)};
  impl_->sent = 0;
  if (!finished) return std::unexpected(std::move(finished).error());
  return outcome;
}

}  // namespace thalweg::pg
