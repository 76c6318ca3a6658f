#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "pg/connection.h"

namespace thalweg::pg {

// A session that holds a lock which another one waits for.
struct Blocker {
  int pid = 0;  // 0: a prepared transaction, which has no process
  // Empty, and none, where our user may not see them.
  std::string user;
  std::string application_name;
  std::string state;                      // "idle in transaction"
  std::optional<base::UnixMicros> since;  // when its transaction began
};

// The sessions of one piece of work, such as a stream's start, observed from outside: the statement that each of them
// executes at the server, and those that were abandoned in the middle of one. The server continues such a statement and
// may commit it long after, so call end_given_up() before you read what it may have changed.
//
// Thread-safe. Outlives the connections that are opened with it.
class SessionBoard {
 public:
  // One connection, from the time when it is open. The fields before `sql` never change.
  struct Session {
    uint64_t id = 0;
    base::Conninfo conninfo;
    std::string server;  // which of the conninfo's servers
    std::string application_name;
    int pid = 0;
    std::string sql;  // the beginning of the statement that runs; empty: none does
    std::chrono::steady_clock::time_point since;
  };

  // Sessions whose statement has run for longer than this.
  std::vector<Session> busy(std::chrono::milliseconds longer_than) const;
  // The holders of the locks that it waits for; none if it waits for none. `options`: of the asking session.
  static base::Result<std::vector<Blocker>> blockers(const Session& session, ConnectOptions options);

  // Terminates the abandoned sessions at this database, and waits until the server has done so. Fails if it cannot make
  // sure of that; the next call then terminates the rest. It also leaves to the next call what was abandoned at one of
  // several servers that does not answer while another one does.
  base::Result<void> end_given_up(const base::Conninfo& conninfo);

 private:
  friend class BoardEntry;
  using Place = std::list<Session>::iterator;
  Place enter(Session session);
  void begin(Place place, std::string_view sql);
  void end(Place place);
  // Closed; `given_up`: in the middle of its statement.
  void leave(Place place, bool given_up);

  static base::Result<void> terminate(const Session& session);
  static bool leads_elsewhere(const Session& session);

  mutable std::mutex mutex_;  // guards what follows up to the next blank line
  std::list<Session> open_;
  std::list<Session> given_up_;
  uint64_t last_id_ = 0;

  std::mutex ending_;  // a second caller waits until the first one knows
};

}  // namespace thalweg::pg
