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

// A row has a number for column `applier`. A session that looks a row up passes all versions of it that some snapshot
// at the destination still sees, so a report that takes an hour would make every commit slower than the one before:
// from time to time the row takes a new number, by which only the versions since are found. Owner: one applier.
class ProgressWriter {
 public:
  static constexpr int kRowsMax = 128;     // of a run: row n takes n, n + kRowsMax, n + 2 * kRowsMax ...
  static constexpr int kVersionsMax = 32;  // under one number

  ProgressWriter(SharedState& shared, int row);  // from 1 to kRowsMax

  // Makes the row of this epoch, unless it is there already: from before the applier was retired. Fails with
  // stream_in_use when a newer epoch has begun. First of all.
  base::Result<void> create_row(pg::Connection& connection);
  // Sends the update that records `range` besides what was recorded before. Fails at the server when another engine
  // has taken the stream over: then nothing of the transaction stays.
  base::Result<void> send(DestinationSession& session, LsnRange range);
  // The update of send() as a row for the data layer, which finds none when another engine has taken the stream over.
  // Valid until the next call.
  PendingFrame row(LsnRange range);
  void committed();

 private:
  void add(LsnRange range, base::Lsn low_watermark);
  int next_number() const;

  SharedState& shared_;
  int number_;
  int versions_ = 0;  // that have committed under this number
  const std::string epoch_;
  metadata::TableMetadata table_;  // apply_progress, as if it were one that is replicated
  std::vector<std::byte> frame_;   // of row()
  LsnRanges recorded_;
  LsnRanges pending_;
};

// The error of a progress update that found no row of its epoch: another engine has taken the stream over.
base::Error taken_over(const std::string& stream_id);

}  // namespace thalweg::apply
