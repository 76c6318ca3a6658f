#include <poll.h>

#include <algorithm>

#include "pg/connection.h"
#include "pg/libpq_handles.h"

// COPY in both directions. Not possible while a Pipeline is open: the protocol knows no COPY in pipeline mode.

namespace thalweg::pg {

namespace {

using base::ErrorCode;
constexpr size_t kFlushBytes = 64 * 1024;
constexpr std::chrono::milliseconds kWaitSlice{1000};

}  // namespace

base::Result<void> Connection::copy_in_begin(const std::string& sql) {
  THALWEG_TRY(impl_->ready_for_command());
  const BoardEntry::Statement shown(impl_->on_board, impl_->abandoned, sql);
  if (PQsendQuery(impl_->conn, sql.c_str()) == 0) return std::unexpected(impl_->send_failed());
  THALWEG_TRY(impl_->flush());
  THALWEG_ASSIGN(const ResultPtr result, impl_->finish_command());
  if (PQresultStatus(result.get()) != PGRES_COPY_IN) {
    return base::fail(ErrorCode::invalid_request, "the statement is no COPY FROM STDIN");
  }
  impl_->copy_unflushed = 0;
  return {};
}

base::Result<void> Connection::copy_in_put(std::span<const std::byte> bytes) {
  // PQputCopyData takes an int; a larger span goes in pieces: message boundaries mean nothing to COPY.
  constexpr size_t kPieceBytes = size_t{64} << 20;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    const int sent =
        PQputCopyData(impl_->conn, reinterpret_cast<const char*>(piece.data()), static_cast<int>(piece.size()));
    if (sent < 0) return std::unexpected(impl_->lost());
    if (sent == 0) {
      THALWEG_TRY(impl_->flush());
      continue;
    }
    bytes = bytes.subspan(piece.size());
    impl_->copy_unflushed += piece.size();
    if (impl_->copy_unflushed >= kFlushBytes) {
      THALWEG_TRY(impl_->flush());
      impl_->copy_unflushed = 0;
    }
  }
  return {};
}

base::Result<uint64_t> Connection::copy_in_end() {
  int sent = 0;
  while ((sent = PQputCopyEnd(impl_->conn, nullptr)) == 0) THALWEG_TRY(impl_->flush());
  if (sent < 0) return std::unexpected(impl_->lost());
  THALWEG_TRY(impl_->flush());
  THALWEG_ASSIGN(const ResultPtr result, impl_->finish_command());
  return affected_rows(result.get());
}

void Connection::copy_in_fail(const std::string& reason) {
  int sent = 0;
  while ((sent = PQputCopyEnd(impl_->conn, reason.c_str())) == 0) {
    if (!impl_->flush()) return;  // broken() tells the owner
  }
  // The server answers with the error that we asked for.
  if (sent > 0 && impl_->flush()) (void)impl_->finish_command();
}

base::Result<void> Connection::copy_out_begin(const std::string& sql) {
  THALWEG_TRY(impl_->ready_for_command());
  const BoardEntry::Statement shown(impl_->on_board, impl_->abandoned, sql);
  if (PQsendQuery(impl_->conn, sql.c_str()) == 0) return std::unexpected(impl_->send_failed());
  THALWEG_TRY(impl_->flush());
  THALWEG_ASSIGN(const ResultPtr result, impl_->finish_command());
  if (PQresultStatus(result.get()) != PGRES_COPY_OUT) {
    return base::fail(ErrorCode::invalid_request, "the statement is no COPY TO STDOUT");
  }
  return {};
}

base::Result<std::optional<std::span<const std::byte>>> Connection::copy_out_next() {
  using Next = std::optional<std::span<const std::byte>>;
  impl_->copy_buffer.reset();
  while (true) {
    char* buffer = nullptr;
    const int length = PQgetCopyData(impl_->conn, &buffer, 1);
    if (length > 0) {
      impl_->copy_buffer.reset(buffer);
      return Next{std::as_bytes(std::span{buffer, static_cast<size_t>(length)})};
    }
    if (length == -2) return std::unexpected(impl_->lost());
    if (length == -1) {
      THALWEG_TRY(impl_->finish_command());
      return Next{};
    }
    THALWEG_ASSIGN(const short ready, impl_->wait(POLLIN, kWaitSlice));
    if (ready != 0) THALWEG_TRY(impl_->consume_input());
  }
}

}  // namespace thalweg::pg
