#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "base/clock.h"
#include "lcr/frame.h"
#include "rules/rule_set.h"

namespace thalweg::capture {

// Logs changes that a rule's policy has decided, because its condition was undecidable or failed: of each rule the
// first one at once, then at most one a minute, with the number of those since. Without values of rows. Owner: the
// agent that judges.
class PolicyLog {
 public:
  static constexpr std::chrono::minutes kInterval{1};

  explicit PolicyLog(const base::Clock& clock) : clock_(clock) {}  // which outlives it

  // `judgement.by_policy` is not null, and outlives this. Allocates only at a rule's first change, and to log.
  void note(const rules::Judgement& judgement, const rules::RuleTable& table, const lcr::FrameView& change);

 private:
  struct Entry {
    std::chrono::steady_clock::time_point logged;
    uint64_t changes = 0;  // since then
  };
  const base::Clock& clock_;
  std::map<const rules::Rule*, Entry> entries_;
};

}  // namespace thalweg::capture
