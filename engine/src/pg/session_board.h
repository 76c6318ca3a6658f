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

// The sessions of one piece of work, a stream's start say, seen from beside it: which statement each of them has the
// server execute, and those that were given up in the middle of one. The server goes on with such a statement, and may
// commit it long after: end_given_up() comes before anybody reads what it may have changed.
//
// Thread-safe. Outlives the connections that are opened with it.
class SessionBoard {
 public:
  // Of one connection, from when it is open. The fields before `sql` never change.
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
  // Who holds the locks that it waits for; none where it waits for none. `options`: of the session that asks.
  static base::Result<std::vector<Blocker>> blockers(const Session& session, ConnectOptions options);

  // Ends what was given up at this database, and waits until the server has done with it. Fails where that cannot be
  // made sure of; what is left then is ended by the next call. So is what was left at one of its servers that does not
  // answer while another one does.
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
