#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/ids.h"
#include "pg/timeline_history.h"
#include "spill/durable_log.h"
#include "spill/spill_space.h"

namespace thalweg::daemon {

// Whether a destination that has reached `reached` lacks nothing of what is left, which begins at `from`. Fails with
// position_gap; with slot_lost where the slot was made at `slot_made_at`, above. `name`: its, for the message.
base::Result<void> check_joins(base::Lsn reached, base::Lsn from, base::Lsn slot_made_at, const std::string& name);

// The logs that earlier sessions of one destination left on disk (docs/formats/spill.md): which of them continue from
// the position that the destination has reached, and which belong to another history of the source.
//
// A log's id holds the timeline that the source was on, in its upper half (zero in the logs of earlier engines), and
// the number of its session. Owner: whoever guards it; the destination's session_lock_.
class EarlierLogs {
 public:
  // The space outlives it. `folder`: of all the destination's logs. The ids are for messages.
  EarlierLogs(spill::SpillSpace& space, std::filesystem::path folder, std::string stream, std::string destination);

  // For a session whose source has that history. `asks_destination`: the destination knows which timeline logs without
  // one come from, and set_strays_aside will say it; otherwise it is the source's present one. Fails with
  // backlog_damaged or file_error; then there are none, is_unread() holds, and read_again() may help.
  base::Result<void> begin_session(const pg::TimelineHistory& history, bool asks_destination);
  base::Result<void> read_again() { return read(false); }
  bool is_unread() const { return is_unread_; }

  // The log that this session will write, on that timeline of the source; the others are those before it.
  struct Own {
    std::string folder;
    uint64_t id;
  };
  Own own(int timeline) const;

  // Sets those aside whose changes a server had committed and its replacement never received. They are not applied, and
  // are kept until it is clear that the destination needs none of them.
  void set_strays_aside(int timeline_if_untold);
  void drop_strays();

  // check_joins() for the logs, and after them a session that begins at `session_from`. Also fails with
  // source_diverged, where the missing changes are among the strays.
  base::Result<void> check_reach(base::Lsn reached, base::Lsn session_from, base::Lsn slot_made_at,
                                 const std::string& name) const;

  // Removes all of them: everything from the destination's position on comes again.
  void give_up();

  bool empty() const { return logs_.empty(); }
  spill::DurableLog& front() { return *logs_.front(); }
  void drop_front();  // the caller has removed it from the disk
  uint64_t frames_left() const;
  uint64_t changes_left() const;
  // All that commits below is in a log, or was when close() was called. Zero: unknown.
  base::Lsn logged() const { return logged_; }
  // The session ends, or the destination is dropped: the files stay. `own_logged`: what its own log holds.
  void close(base::Lsn own_logged = {});

 private:
  bool is_history(const spill::DurableLog& log, int timeline_if_untold) const;
  std::string folder_of(uint64_t number) const;
  base::Result<void> read(bool begins);
  base::Result<void> open_all(bool begins);

  spill::SpillSpace& space_;
  const std::filesystem::path folder_;
  const std::string stream_;
  const std::string destination_;
  pg::TimelineHistory history_{0};
  bool asks_destination_ = false;
  bool is_unread_ = false;
  uint64_t own_number_ = 0;
  base::Lsn logged_;
  std::deque<std::unique_ptr<spill::DurableLog>> logs_;
  std::deque<std::unique_ptr<spill::DurableLog>> strays_;
};

}  // namespace thalweg::daemon
