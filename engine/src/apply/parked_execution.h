#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "apply/applier/destination_session.h"
#include "apply/applier/group_executor.h"
#include "apply/error_policy.h"
#include "apply/frame_blocks.h"
#include "apply/parked_edits.h"
#include "apply/parked_failure.h"
#include "apply/parked_tables.h"
#include "apply/transaction.h"
#include "base/error.h"
#include "telemetry/agent.h"

// Applies parked transactions over one session, each in a destination transaction that also takes it out of the queue.

namespace thalweg::apply {

struct ParkedEntry {
  int64_t id = 0;
  bool waits = false;  // says that it waits behind an earlier one
  std::string tables;  // the array of their names, as it was read: a rename changes it
  ParkedEdits edits;
  bool is_read = false;
  Transaction transaction;  // its frames as they are to be applied, while `is_read`

  bool all_left_out() const;
};

// Owner: one thread. One for a session: what the session has prepared is known by this one's tables.
class ParkedExecution {
 public:
  // `role`: changes are applied as this one, which the session may act as, with its row security policies; empty: as
  // the session's own. `handlers` outlive it; those of errors settle rows that fail, as while apply runs.
  ParkedExecution(DestinationSession& session, std::string_view role,
                  std::span<const metadata::StatementHandler> handlers);
  ~ParkedExecution() { drop_read(); }
  ParkedExecution(const ParkedExecution&) = delete;
  ParkedExecution& operator=(const ParkedExecution&) = delete;

  // Before the first one, and now and then: tables may have been renamed. The error queue is held (error_queue.h).
  base::Result<void> begin(std::string_view stream_id);
  // Fetches the frames of small ones of these together, and has tables looked up anew that have changed meanwhile.
  // Other frames are fetched when they are executed. The entries last until the next call, or end().
  base::Result<void> read_ahead(std::span<ParkedEntry* const> entries);
  void end() { drop_read(); }
  // One that fails stays in the queue, which tells why it did where that is its data's fault: is_about_data(). Fails
  // with database_busy where a table of it is to be copied again. Changes that a copy of their table has are left out,
  // and those of tables that were taken out of the stream.
  base::Result<void> execute(ParkedEntry& entry);
  // Executes the transaction and rolls it back: neither the rows nor the queue are changed. Fails as execute() would.
  base::Result<void> dry_run(ParkedEntry& entry);
  // The change at which the last one failed: its number in the transaction as it came, from 1. 0: it did not, or not at
  // a change.
  uint64_t failed_change() const { return failure_.change; }
  // Changes of the last one that error handlers have settled.
  uint64_t settled() const { return settled_; }

 private:
  void drop_read();
  base::Result<void> read(ParkedEntry& entry);
  // `changes`: how many of the entry's changes came before, and then with it.
  base::Result<void> take_frame(const lcr::FrameView& frame, ParkedEntry& entry, uint64_t& changes, Block*& fill);
  base::Result<void> find_tables(const Transaction& transaction);
  base::Result<void> prepare(ParkedEntry& entry);
  base::Result<void> run(const ParkedEntry& entry);
  bool goes_at_once(const Transaction& transaction);
  base::Result<bool> run_at_once(const ParkedEntry& entry);
  enum class Ending { commit, rollback };
  base::Result<Refusal> execute_rows(const ParkedEntry& entry);
  base::Result<void> run_in_steps(const ParkedEntry& entry, Ending ending);
  base::Result<void> take_role();
  base::Result<Refusal> take_role_back();
  base::Result<Refusal> leave_role();
  base::Result<void> roll_back();
  base::Result<void> send_removal(const ParkedEntry& entry);
  base::Result<void> note(int64_t id, const base::Error& why);

  DestinationSession& session_;
  const std::string role_;  // empty: the session's own
  std::string stream_id_;
  const LiveErrorPolicies no_policies_;  // an operator's decision is not questioned; only error handlers settle rows
  telemetry::Counter sets_, data_layer_calls_, merged_updates_;
  ParkedTables tables_;
  GroupExecutor executor_;
  base::Doorbell bell_;
  BlockPool pool_;
  std::span<ParkedEntry* const> ahead_;  // whose frames may be our pool's
  ParkedFailure failure_;
  uint64_t settled_ = 0;
};

}  // namespace thalweg::apply
