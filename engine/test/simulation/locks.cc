#include "simulation/locks.h"

namespace thalweg::simulation {

namespace {
constexpr Time kDeadlockTimeout = kSecond;
}

bool Locks::is_free(const Lock& lock, int pid, Mode mode) const {
  for (const auto& [holder, held] : lock.holders) {
    if (holder != pid && (mode == Mode::exclusive || held == Mode::exclusive)) return false;
  }
  return true;
}

bool Locks::try_acquire(int pid, const std::string& name, Mode mode) {
  Lock& lock = locks_[name];
  if (!is_free(lock, pid, mode)) return false;
  Mode& held = lock.holders.emplace(pid, mode).first->second;
  if (mode == Mode::exclusive) held = mode;
  held_[pid].insert(name);
  return true;
}

bool Locks::acquire(int pid, const std::string& name, Mode mode) {
  Time deadline = scheduler_.now() + kDeadlockTimeout;
  while (!try_acquire(pid, name, mode)) {
    waiting_[pid] = {name, mode};
    if (scheduler_.wait(this, deadline)) continue;
    if (is_deadlock(pid)) {
      waiting_.erase(pid);
      return false;
    }
    deadline = kNever;
  }
  waiting_.erase(pid);
  return true;
}

std::vector<int> Locks::blockers(int pid) const {
  std::vector<int> found;
  const auto waits = waiting_.find(pid);
  if (waits == waiting_.end()) return found;
  const auto lock = locks_.find(waits->second.first);
  if (lock == locks_.end()) return found;
  for (const auto& [holder, held] : lock->second.holders) {
    if (holder != pid && (waits->second.second == Mode::exclusive || held == Mode::exclusive)) found.push_back(holder);
  }
  return found;
}

bool Locks::is_deadlock(int pid) const {
  std::set<int> seen;
  std::vector<int> open = blockers(pid);
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (next == pid) return true;
    if (!seen.insert(next).second) continue;
    for (const int further : blockers(next)) open.push_back(further);
  }
  return false;
}

void Locks::release(int pid) {
  const auto held = held_.find(pid);
  if (held == held_.end()) return;
  for (const std::string& name : held->second) {
    const auto lock = locks_.find(name);
    lock->second.holders.erase(pid);
    if (lock->second.holders.empty()) locks_.erase(lock);
  }
  held_.erase(held);
  scheduler_.wake(this);
}

void Locks::clear() {
  locks_.clear();
  held_.clear();
  waiting_.clear();
}

}  // namespace thalweg::simulation
