#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>

// Internal to pg/.

namespace thalweg::pg {

// A request to cancel whatever a session runs. For it, libpq connects once more and waits until the server has taken
// it: without a limit, and without a way to end the wait. So a thread does it, which is left to itself where the server
// or the network stands still. Thread-safe.
class CancelRequest {
 public:
  explicit CancelRequest(PGconn* conn);

  // Waits for at most `patience`. False: the request is still on its way, and may reach a later statement. Another call
  // meanwhile waits for the same request.
  bool send(std::chrono::milliseconds patience) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's, too
};

}  // namespace thalweg::pg
