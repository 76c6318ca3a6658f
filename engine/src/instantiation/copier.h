#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <vector>

#include "base/error.h"
#include "instantiation/copy_worker.h"
#include "instantiation/progress.h"
#include "instantiation/work_queue.h"

// Several workers that copy tables from the source's snapshot into the destination and build their indexes there.

namespace thalweg::instantiation {

// Owner: the thread that made it.
class Copier {
 public:
  // Once `stop` is set, whatever waits for the source is given up, planning too.
  Copier(CopyOptions options, Progress& progress, const std::atomic<bool>& stop);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // Opens every worker's session at the destination, unless they are open.
  base::Result<void> open();
  // Imports the snapshot into every worker's session, too, so that the exporting session may go afterwards. It holds
  // until a run() has handed out all rows.
  base::Result<void> open(const Snapshot& snapshot);
  // A session within the snapshot, for planning, before run().
  pg::Connection& source();
  // Does all work, but that of tables which the snapshot is too old for: their ranges stay as they are, and nothing is
  // built of them. The first failure stops every worker, and ends what they do on either side: within seconds, even
  // where a server or the network stands still. Once `stop` is set it fails: with engine_stopping, or as a session does
  // that was given up for it.
  base::Result<void> run(std::vector<TableWork> works);

 private:
  base::Result<void> each_worker(const std::function<base::Result<void>(CopyWorker&)>& open);

  const CopyOptions options_;
  Progress& progress_;
  const std::atomic<bool>& stop_;
  // Their sessions at the destination have not let themselves be cancelled. Writer: the owner. Readers: the workers
  std::atomic<bool> given_up_{false};
  std::deque<CopyWorker> workers_;
};

}  // namespace thalweg::instantiation
