#include "simulation/verdict.h"

#include <cstdio>
#include <functional>

#include "simulation/scheduler.h"

namespace thalweg::simulation {

Verdict& Verdict::get() {
  static Verdict verdict;
  return verdict;
}

void Verdict::fail(std::string reason) {
  if (failed()) return;
  reason_ = std::move(reason);
  trace("FAILED: " + reason_);
}

void Verdict::trace(const std::string& line) {
  const Scheduler* const scheduler = Scheduler::current();
  const Time now = scheduler == nullptr ? 0 : scheduler->now();
  fingerprint_ = fingerprint_ * 1099511628211ULL ^ (std::hash<std::string>{}(line) + static_cast<uint64_t>(now));
  if (!traces) return;
  std::printf("%12.6f %-12s %s\n", static_cast<double>(now) / 1e9,
              scheduler == nullptr ? "" : scheduler->process().name.c_str(), line.c_str());
}

}  // namespace thalweg::simulation
