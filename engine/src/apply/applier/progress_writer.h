#pragma once

#include <array>
#include <string>
#include <vector>

#include "apply/applier/destination_session.h"
#include "apply/ranges.h"
#include "apply/shared_state.h"
#include "base/error.h"

// An applier's row in thalweg.apply_progress: written in every transaction that it commits.

namespace thalweg::apply {

// Owner: one applier.
class ProgressWriter {
 public:
  ProgressWriter(SharedState& shared, int applier);

  // Makes the row of this epoch, unless it is there already: from before the applier was retired. Fails with
  // stream_in_use when a newer epoch has begun.
  base::Result<void> create_row(pg::Connection& connection);
  // Sends the update that records `range` besides what was recorded before. Fails at the server when another engine
  // has taken the stream over: then nothing of the transaction stays.
  base::Result<void> send(DestinationSession& session, LsnRange range);
  void committed() { recorded_ = pending_; }

 private:
  SharedState& shared_;
  const std::string applier_;
  const std::string epoch_;
  LsnRanges recorded_;
  LsnRanges pending_;
};

// What a failed progress update means.
base::Error taken_over(const std::string& stream_id);

}  // namespace thalweg::apply
