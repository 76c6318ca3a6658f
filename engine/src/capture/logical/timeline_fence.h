#pragma once

#include <string>

#include "base/error.h"
#include "pg/replication_stream.h"

namespace thalweg::capture {

// A standby that is read can be promoted, or follow another primary: its sender goes on along the new timeline without
// a word. Data received before the server says that it is still on the old timeline is of that timeline, for a server
// never goes back; a standby sends nothing that it has not replayed. Owner: the capture's agent.
class TimelineFence {
 public:
  // Of the server whose session `session` reads the slot; over a connection of its own. Fails with connection_lost
  // where the address leads to another server.
  static base::Result<TimelineFence> open(const base::Conninfo& conninfo, const std::string& application_name,
                                          const std::string& slot, int session_pid, int timeline);

  // Whether all that has been received until now is of the timeline: else connection_lost. One round trip.
  base::Result<void> check();

 private:
  TimelineFence(pg::ReplicationStream session, int timeline) : session_(std::move(session)), timeline_(timeline) {}

  pg::ReplicationStream session_;
  int timeline_;
};

}  // namespace thalweg::capture
