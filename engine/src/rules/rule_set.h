#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/condition.h"

namespace thalweg::rules {

enum Kinds : uint8_t { kInsert = 1, kUpdate = 2, kDelete = 4, kTruncate = 8, kEveryKind = 15 };

// Where a rule of a table comes from: it is its own, its schema's, or for all tables.
enum class Scope : uint8_t { table, schema, global };

// A rule's policy: what it counts as for a change for which its condition is undecidable or fails.
enum class OnError : uint8_t {
  stop,  // it counts as nothing: unless other rules decide, the stream stops in front of the change
  as_true,
  as_false,  // not true, as NULL is
};

// Global without a schema, for a schema without a table.
struct Rule {
  std::string name;
  std::string schema;
  std::string table;
  uint8_t kinds = kEveryKind;
  std::string condition;  // empty: always true
  // Its rows are to be at the destination, and no others: an update that brings a row in or takes it out is passed on
  // as an INSERT or DELETE (Passage), and a TRUNCATE passes whatever the condition says. In positive sets only, for
  // every kind, and then in all rules of the set.
  bool subset = false;
  Scope scope = Scope::table;  // for messages
  OnError on_error = OnError::stop;
};

// Rule sets of a capture, a propagation or an apply. An empty set is not the same as none.
struct RuleSets {
  std::optional<std::vector<Rule>> negative;
  std::optional<std::vector<Rule>> positive;

  bool has_any() const { return negative || positive; }
};

enum class Decision : uint8_t { pass, drop, undecidable, failed };

struct Judgement {
  Decision decision = Decision::pass;
  const Rule* rule = nullptr;       // that decided, or could not; nullptr: the sets did
  Failure failure = Failure::none;  // of the rule that failed
  // The rule whose policy decided: without it the sets would not have. nullptr: they decided by themselves. `failure`
  // is its condition's; none: that was undecidable.
  const Rule* by_policy = nullptr;
};

// A rule that reads old rows, and the kinds of changes that it is asked about: without those that a rule without a
// condition decides.
struct OldRowRead {
  const Rule* rule;
  uint8_t kinds;
};

struct RuleRefusal {
  std::string rule;
  Scope scope = Scope::table;
  RuleError error;
};

Kinds kind_of(lcr::FrameKind kind);
bool concerns(const Rule& rule, const RuleTable& table);
// Whether a condition reads tag or commit_time, which are known once a transaction has committed.
bool reads_transaction(const RuleSets& sets);

// The rules that concern one version of a table, compiled. Rules on other tables are not in it and cost nothing.
// Owner: one thread. The rule sets must outlive it.
class TableRules {
 public:
  // Refuses `old` or `new` in rules that make a subset.
  static std::expected<TableRules, RuleRefusal> compile(const RuleSets& sets, const RuleTable& table);

  // Negative rules first. One that is TRUE drops the change; else one positive rule that is TRUE lets it pass. Where no
  // rule decides because of one that cannot be decided, or fails, each such rule counts as its policy says; one without
  // a policy is told if that does not decide either. `plain`: as Condition::evaluate takes it. Allocates nothing.
  Judgement judge(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch, Row plain = Row::newest);

  // Whether updates are judged by the row before them, too.
  bool make_subset() const { return makes_subset_; }
  // Rules without a policy that read values of old rows which only REPLICA IDENTITY FULL sends.
  std::vector<OldRowRead> rules_of_old_rows() const;
  // Those without a policy that read a long value after an update, which it may not bring; and those that make a
  // subset where it may lack one for the INSERT that it becomes.
  std::vector<const Rule*> rules_of_long_values() const;

 private:
  struct Compiled {
    const Rule* rule;
    std::optional<Condition> condition;
  };
  // A rule that is neither TRUE nor FALSE nor NULL.
  struct Unclear {
    const Rule* rule = nullptr;       // nullptr: none
    Failure failure = Failure::none;  // none: it is undecidable
  };
  struct Finding {
    const Rule* is_true = nullptr;
    std::array<Unclear, 3> unclear;  // the first of each policy; only where no rule is TRUE

    const Unclear& of(OnError policy) const { return unclear[static_cast<size_t>(policy)]; }
    bool is_unclear() const { return unclear[0].rule || unclear[1].rule || unclear[2].rule; }
  };
  static std::expected<std::vector<Compiled>, RuleRefusal> compile_set(const std::vector<Rule>& rules,
                                                                       const RuleTable& table);
  // Kinds of changes for which a rule without a condition is TRUE.
  static uint8_t kinds_decided_by(const std::vector<Compiled>& rules);
  // Calls visit(Compiled, kinds) for each rule with a condition; `kinds` as in OldRowRead.
  void for_each_condition(const auto& visit) const;
  // The first rule that is TRUE; where there is none, those that are unclear.
  Finding find_true(std::vector<Compiled>& rules, const lcr::FrameView& frame, const ChangeContext& context,
                    Scratch& scratch, Row plain) const;
  static Judgement stopped_by(const Unclear& unclear);
  // Where the sets do not decide by themselves.
  Judgement judge_by_policy(const Finding& negative, const Finding& positive) const;

  std::vector<Compiled> negative_;
  std::vector<Compiled> positive_;
  Decision otherwise_ = Decision::pass;  // where no rule is TRUE
  bool makes_subset_ = false;
  bool may_lack_values_ = false;  // an update, of a row that comes into the subset
};

}  // namespace thalweg::rules
