#pragma once

#include <array>
#include <string>
#include <vector>

#include "apply/applier/destination_session.h"
#include "apply/applier/update_merger.h"
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
  // stream_in_use when a newer epoch has begun. First of all.
  base::Result<void> create_row(pg::Connection& connection);
  // Sends the update that records `range` besides what was recorded before. Fails at the server when another engine
  // has taken the stream over: then nothing of the transaction stays.
  base::Result<void> send(DestinationSession& session, LsnRange range);
  // The same update as a row for the data layer, which finds none when another engine has taken the stream over. Valid
  // until the next call.
  PendingFrame row(LsnRange range);
  void committed() { recorded_ = pending_; }

 private:
  void add(LsnRange range, base::Lsn low_watermark);

  SharedState& shared_;
  const std::string applier_;
  const std::string epoch_;
  metadata::TableMetadata table_;  // apply_progress, as if it were one that is replicated
  std::vector<std::byte> frame_;   // of row()
  LsnRanges recorded_;
  LsnRanges pending_;
};

// What a failed progress update means.
base::Error taken_over(const std::string& stream_id);

}  // namespace thalweg::apply
