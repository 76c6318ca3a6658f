#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/condition.h"

namespace thalweg::rules {

enum Kinds : uint8_t { kInsert = 1, kUpdate = 2, kDelete = 4, kTruncate = 8, kEveryKind = 15 };

// Global without a schema, for a schema without a table.
struct Rule {
  std::string name;
  std::string schema;
  std::string table;
  uint8_t kinds = kEveryKind;
  std::string condition;  // empty: always true
};

// Rule sets of a capture, a propagation or an apply. An empty set is not the same as none.
struct RuleSets {
  std::optional<std::vector<Rule>> negative;
  std::optional<std::vector<Rule>> positive;
};

enum class Decision : uint8_t { pass, drop, undecidable, failed };

struct Judgement {
  Decision decision = Decision::pass;
  const Rule* rule = nullptr;  // that decided, or could not; nullptr: the sets did
  Failure failure = Failure::none;
};

struct RuleRefusal {
  std::string rule;
  RuleError error;
};

// The rules that concern one version of a table, compiled. Rules on other tables are not in it and cost nothing.
// Owner: one thread. The rule sets must outlive it.
class TableRules {
 public:
  static std::expected<TableRules, RuleRefusal> compile(const RuleSets& sets, const RuleTable& table);

  // Negative rules first. One that is TRUE drops the change; else one positive rule that is TRUE lets it pass. A rule
  // that cannot be decided, or fails, is told only where no other rule decides. Allocates nothing.
  Judgement judge(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch);

 private:
  struct Compiled {
    const Rule* rule;
    std::optional<Condition> condition;
  };
  static std::expected<std::vector<Compiled>, RuleRefusal> compile_set(const std::vector<Rule>& rules,
                                                                       const RuleTable& table);
  // Of the first rule that is TRUE (`decision`), or of the first that is neither TRUE nor FALSE nor NULL; else none.
  static std::optional<Judgement> find_true(std::vector<Compiled>& rules, Decision decision,
                                            const lcr::FrameView& frame, const ChangeContext& context,
                                            Scratch& scratch);

  std::vector<Compiled> negative_;
  std::vector<Compiled> positive_;
  Decision otherwise_ = Decision::pass;  // where no rule is TRUE
};

}  // namespace thalweg::rules
