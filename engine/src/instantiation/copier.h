#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "instantiation/progress.h"
#include "instantiation/ranges.h"
#include "instantiation/shape.h"

// Copies ranges from the source's snapshot into the destination, with several workers.

namespace thalweg::instantiation {

struct Snapshot {
  std::string name;            // exported; importable while its session stays as it is
  base::Lsn consistent_point;  // holds exactly what committed before it
};

// One table as the workers need it.
struct CopyTable {
  TableShape shape;
  bool text = false;     // the other database would not take some column's binary form (pg::value_forms)
  bool resumed = false;  // ranges were copied from an earlier snapshot: a row may be there already
  TableCounters* counters = nullptr;
};

struct CopyTask {
  const CopyTable* table = nullptr;
  int number = 0;
  KeyRange range;
};

struct CopyOptions {
  std::string stream_id;
  base::Conninfo source_conninfo;
  base::Conninfo destination_conninfo;
  int workers = 1;
};

// Owner: the thread that made it. open() imports the snapshot into every worker's session, so that the exporting
// session may go afterwards.
class Copier {
 public:
  Copier(CopyOptions options, Progress& progress, const std::atomic<bool>& stop);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  base::Result<void> open(const Snapshot& snapshot);
  // A session within the snapshot, for planning, before run().
  pg::Connection& source();
  // Copies all tasks. The first failure stops every worker. Fails with engine_stopping once `stop` is set.
  base::Result<void> run(const std::vector<CopyTask>& tasks);

 private:
  struct Worker;
  CopyOptions options_;
  Progress& progress_;
  const std::atomic<bool>& stop_;
  base::Lsn snapshot_lsn_;
  std::vector<Worker> workers_;
};

}  // namespace thalweg::instantiation
