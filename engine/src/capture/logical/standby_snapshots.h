#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/networks.h"
#include "pg/connection.h"

namespace thalweg::capture {

// The primary of a standby that is read: what has to be written is written there.
struct PrimaryOfStandby {
  base::Conninfo conninfo;       // empty: what is read is no standby
  std::string application_name;  // of sessions there
  // Once it is set, what waits for the standby or the primary ends. It outlives the waiting. Null: nothing ends it.
  const std::atomic<bool>* stop = nullptr;
  pg::SessionBoard* board = nullptr;  // it outlives the sessions; null: nobody sees them
};

// A session with the primary. Fails with source_changed where it is of another cluster than `system_identifier`.
base::Result<pg::Connection> open_primary(const PrimaryOfStandby& primary, const std::string& system_identifier);

// While a slot is being made at a standby: has the primary log which transactions run, over and over. The slot begins
// with such a record, which an idle primary writes at a checkpoint only. Cancels the making of the slot where the
// primary cannot be reached, or when a stop is asked for.
// Owner: one thread, which makes the slot.
class StandbySnapshots {
 public:
  StandbySnapshots(PrimaryOfStandby primary, std::string system_identifier, pg::Connection::Canceller slot_maker);
  ~StandbySnapshots();
  StandbySnapshots(const StandbySnapshots&) = delete;
  StandbySnapshots& operator=(const StandbySnapshots&) = delete;

  // Ends it; why it has cancelled.
  std::optional<base::Error> end();

 private:
  void run(const std::stop_token& stop);
  base::Result<void> log_snapshots(const std::stop_token& stop);

  const PrimaryOfStandby primary_;
  const std::string system_identifier_;
  const pg::Connection::Canceller slot_maker_;
  std::optional<base::Error> error_;  // the thread's, until it has ended
  std::jthread thread_;               // last: it uses everything above
};

}  // namespace thalweg::capture
