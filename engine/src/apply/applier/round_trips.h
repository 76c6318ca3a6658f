#pragma once

#include <deque>
#include <functional>

#include "apply/applier/applier_parts.h"
#include "base/error.h"

namespace thalweg::apply {

// Small groups on their way to the server, one behind the other, each in one round trip and in a lane of its own: no
// answer is waited for before the next one is sent (docs/decisions/groups.md). Owner: whoever has the applier's baton.
class RoundTrips {
 public:
  struct NotCommitted {
    Lane* lane;
    base::Result<StatementFailure> why;  // an error: of the connection, or bytes that cannot be right
  };
  // `committed` is told of each lane whose group has committed.
  RoundTrips(ApplierParts& parts, std::function<void(Lane&)> committed)
      : parts_(parts), committed_(std::move(committed)) {}

  // The lane for another group, or nullptr: both are on their way.
  Lane* free_lane();
  // Whether the group may go now, behind what is on its way. That may fail without this one's doing so, too.
  bool may_send(const Group& group) const;
  // Whether sending waits for nothing that somebody else's thread, capture's perhaps, would have to wait for.
  bool takes_no_time(const Lane& lane, const Group& group) const;
  void send(Lane& lane, Group& group);
  // Takes the answers that have come.
  void take_answers();
  // Waits for the next answer; gives up once apply is abandoned.
  void await_answer() { take(parts_.session->await_answer()); }

  bool any_sent() const { return !sent_.empty(); }
  // Nothing is sent before the failed groups have been seen to.
  bool any_failed() const { return !failed_.empty(); }
  NotCommitted next_failed();

  // The thread that sleeps does so until the server answers: then others may send.
  void set_listens(bool listens) { listens_ = listens; }
  // Something came from the server.
  void set_heard(bool heard) { heard_ = heard; }

 private:
  base::Result<void> send_group(Lane& lane);
  void take(base::Result<Refusal> answer);

  ApplierParts& parts_;
  std::function<void(Lane&)> committed_;
  bool listens_ = false;
  bool heard_ = false;
  std::deque<Lane*> sent_;  // whose answers have not come, in their order
  std::deque<NotCommitted> failed_;
};

}  // namespace thalweg::apply
