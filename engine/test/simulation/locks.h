#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/scheduler.h"

namespace thalweg::simulation {

// A database's locks: on rows, keys and tables, each by its name, held until the end of the transaction. A session that
// waits in a circle gets an error, as from PostgreSQL's deadlock detector.
class Locks {
 public:
  explicit Locks(Scheduler& scheduler) : scheduler_(scheduler) {}

  enum class Mode : uint8_t { shared, exclusive };
  // Waits as long as it takes. False: a deadlock.
  bool acquire(int pid, const std::string& name, Mode mode);
  // Without waiting.
  bool try_acquire(int pid, const std::string& name, Mode mode);
  void release(int pid);
  // The processes that `pid` waits for.
  std::vector<int> blockers(int pid) const;
  void clear();
  bool holds_anything(int pid) const { return held_.contains(pid); }

 private:
  struct Lock {
    std::map<int, Mode> holders;
  };
  bool is_free(const Lock& lock, int pid, Mode mode) const;
  bool is_deadlock(int pid) const;

  Scheduler& scheduler_;
  std::map<std::string, Lock> locks_;
  std::map<int, std::set<std::string>> held_;
  std::map<int, std::pair<std::string, Mode>> waiting_;
};

}  // namespace thalweg::simulation
