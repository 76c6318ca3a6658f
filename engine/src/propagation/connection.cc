#include "propagation/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace thalweg::propagation {

namespace {

using base::ErrorCode;

std::unexpected<base::Error> lost(std::string_view action, int error_number) {
  return base::fail(ErrorCode::link_lost, fmt::format("{}: {}", action, std::generic_category().message(error_number)));
}

bool would_block(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

}  // namespace

base::Result<bool> Connection::handshake(const std::string& peer) {
  if (!ssl_ || SSL_is_init_finished(ssl_.get()) == 1) return true;
  read_wants_write_ = write_wants_read_ = false;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return true;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return false;
    case SSL_ERROR_WANT_WRITE:
      read_wants_write_ = true;
      return false;
    default:
      return std::unexpected(tls_error(ssl_.get(), fmt::format("TLS handshake with {}", peer)));
  }
}

// The outcome of SSL_read or SSL_write other than success.
base::Result<size_t> Connection::after_tls(int result, std::string_view action) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return 0;
    case SSL_ERROR_WANT_WRITE:
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      return base::fail(ErrorCode::link_lost, fmt::format("{}: the peer closed the connection", action));
    default:
      return std::unexpected(tls_error(ssl_.get(), action));
  }
}

base::Result<size_t> Connection::read_some(std::span<std::byte> out) {
  if (!ssl_) {
    const ssize_t got = recv(socket_.descriptor(), out.data(), out.size(), 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return base::fail(ErrorCode::link_lost, "read: the peer closed the connection");
    if (would_block(errno)) return 0;
    return lost("read", errno);
  }
  ERR_clear_error();
  errno = 0;
  size_t total = 0;  // a record gives at most 16 KiB
  while (total < out.size()) {
    size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), out.data() + total, out.size() - total, &got);
    if (result == 1) {
      total += got;
      continue;
    }
    read_wants_write_ = SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_WRITE;
    // Bytes received before an end or an error are handed out first; the next call finds the same end again.
    if (total > 0) {
      ERR_clear_error();
      return total;
    }
    return after_tls(result, "read");
  }
  return total;
}

base::Result<size_t> Connection::write_some(std::span<const std::byte> bytes) {
  if (!ssl_) {
    const ssize_t put = send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) return static_cast<size_t>(put);
    if (would_block(errno)) return 0;
    return lost("write", errno);
  }
  ERR_clear_error();
  errno = 0;
  size_t put = 0;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put);
  if (result == 1) {
    write_wants_read_ = false;
    return put;
  }
  write_wants_read_ = SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
  return after_tls(result, "write");
}

short Connection::events(bool reading, bool writing) const {
  short events = 0;
  if (reading || (writing && write_wants_read_)) events |= POLLIN;
  if ((writing && !write_wants_read_) || (reading && read_wants_write_)) events |= POLLOUT;
  return events;
}

std::optional<std::chrono::microseconds> Connection::kernel_round_trip() const {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(socket_.descriptor(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  return std::chrono::microseconds(info.tcpi_rtt);
}

void Connection::shut_down() {
  if (ssl_ && SSL_is_init_finished(ssl_.get()) == 1) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  shutdown(socket_.descriptor(), SHUT_WR);
}

}  // namespace thalweg::propagation
