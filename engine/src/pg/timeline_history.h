#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

// The timelines that a server has been on. A promoted standby goes on along a new one, and keeps a file that says where
// it left each of the earlier ones (PostgreSQL: "Timelines" in the chapter on continuous archiving;
// src/backend/access/transam/timeline.c).

namespace thalweg::pg {

// Immutable.
class TimelineHistory {
 public:
  struct Ancestor {
    int timeline;
    base::Lsn end;  // what begins below it is the server's history, too
    bool operator==(const Ancestor&) const = default;
  };
  // Ancestors: from the oldest on.
  explicit TimelineHistory(int timeline, std::vector<Ancestor> ancestors = {})
      : timeline_(timeline), ancestors_(std::move(ancestors)) {}
  // `content`: the history file of `timeline`. Anything else is a protocol_violation.
  static base::Result<TimelineHistory> parse(int timeline, std::string_view content);

  int timeline() const { return timeline_; }  // that the server is on
  // Up to where `timeline` is the server's history: without end for its own, none where it has never been on it.
  std::optional<base::Lsn> end_of(int timeline) const;
  // Whether all of `timeline` below `position` is the server's history.
  bool holds(int timeline, base::Lsn position) const;
  // That of the server as it was on `timeline`, one of these.
  TimelineHistory up_to(int timeline) const;
  // The one along which the server wrote what is at `position`.
  int at(base::Lsn position) const;

  bool operator==(const TimelineHistory&) const = default;

 private:
  int timeline_;
  std::vector<Ancestor> ancestors_;
};

}  // namespace thalweg::pg
