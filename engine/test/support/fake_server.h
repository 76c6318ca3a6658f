#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// A server that speaks PostgreSQL's protocol as far as the login, and then misbehaves. No transport encryption. It
// never says that it has taken a request to cancel.

namespace thalweg::test {

struct FakeServerOptions {
  // It answers that many statements of a session with one row: the session's mark, as the client gave it, and a
  // process. Negative: it misbehaves before the session has begun.
  int statements = 1;
  // The process that each of these statements runs in; the last one for those that follow. The login says 1.
  std::vector<int> processes = {1};
  // How it goes on: silence keeps the connection and says nothing; copy_out begins a COPY of which no row comes; the
  // others are messages without a need.
  enum class Then { silence, copy_out, rows, notices, statuses } then = Then::silence;
  size_t bytes = 0;  // of messages; then the statement ends as it should
};

// Sessions have a thread each, until the destructor.
class FakeServer {
 public:
  explicit FakeServer(FakeServerOptions options);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string conninfo() const;

 private:
  void accept();
  void serve(int socket) const;

  const FakeServerOptions options_;
  int listener_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> sessions_;
  std::thread acceptor_;
};

}  // namespace thalweg::test
