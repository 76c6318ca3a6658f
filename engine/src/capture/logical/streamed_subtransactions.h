#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"

namespace thalweg::capture {

// Of each streamed transaction whose end has not come: the subtransactions of which changes went out and no abort did.
// PostgreSQL tells of aborts, but not of all (docs/decisions/subtransactions.md); what decides is who committed.
// Four bytes of content for each such subtransaction: the source itself keeps some hundred. Owner: the capture's agent.
class StreamedSubtransactions {
 public:
  void note(base::Xid xid, base::Xid subxid) {
    if (xid == last_xid_ && subxid == last_subxid_) [[likely]]
      return;
    open_[xid].insert(subxid);
    last_xid_ = xid;
    last_subxid_ = subxid;
  }
  void aborted(base::Xid xid, base::Xid subxid) {
    last_xid_ = {};
    if (const auto found = open_.find(xid); found != open_.end()) found->second.erase(subxid);
  }
  void ended(base::Xid xid) {
    last_xid_ = {};
    open_.erase(xid);
  }
  // The subtransactions of `xid` that are not among `committed`. They count as aborted from now on.
  std::vector<base::Xid> take_rolled_back(base::Xid xid, std::span<const base::Xid> committed) {
    last_xid_ = {};
    const auto found = open_.find(xid);
    if (found == open_.end()) return {};
    for (const base::Xid subxid : committed) found->second.erase(subxid);
    std::vector<base::Xid> rolled_back(found->second.begin(), found->second.end());
    open_.erase(found);
    return rolled_back;
  }

 private:
  std::unordered_map<base::Xid, std::unordered_set<base::Xid>> open_;
  base::Xid last_xid_;  // noted last; none: nothing is known of it
  base::Xid last_subxid_;
};

}  // namespace thalweg::capture
