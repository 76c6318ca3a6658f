#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

// Transactions on their way to a destination, as GET /v1/streams/{id}/transactions shows them: what
// V$STREAMS_TRANSACTION shows of an apply.

namespace thalweg::telemetry {

inline constexpr size_t kTransactionsShownMax = 100;  // of each agent

// A policy for its error has it wait.
struct TransactionRetry {
  int number = 0;  // of the retry, from 1
  int times = 0;   // as many there are at most
  base::UnixMicros at;
  base::UnixMicros failed_at;
  base::Error error;
};

struct TransactionSample {
  base::Xid xid;
  std::string_view
      state;             // OPEN, WAIT RETRY, WAIT DEPENDENCY, READY, EXECUTE TRANSACTION, WAIT COMMIT: a string literal
  base::Lsn first_lsn;   // of its first change that came; zero: none
  base::Lsn commit_lsn;  // zero while it is open
  std::chrono::steady_clock::time_point begun;  // its first frame came
  uint64_t lcrs = 0;
  uint64_t bytes = 0;          // of frames
  uint64_t spilled_bytes = 0;  // of these, on disk
  bool streamed = false;       // comes before its commit
  std::vector<std::string> tables = {};
  int applier = 0;               // from 1; 0: none has it
  base::Xid waits_for = {};      // the transaction that has to commit first; zero: none
  std::string destination = {};  // id of the one destination of several
  std::optional<TransactionRetry> retry = {};
};

struct TransactionSamples {
  std::vector<TransactionSample> shown;  // the oldest and the largest
  uint64_t open = 0;                     // commit or abort has not come
  uint64_t waiting = 0;                  // complete, in groups that no applier has
  uint64_t executing = 0;
  uint64_t queued_lcrs = 0;  // of complete transactions that are in no group yet
  uint64_t retrying = 0;     // wait for their retry
  std::optional<TransactionRetry> next_retry = {};
};

// Keeps the oldest and the largest, half of each, when there are more than `max`.
void keep_notable(std::vector<TransactionSample>& transactions, size_t max = kTransactionsShownMax);

}  // namespace thalweg::telemetry
