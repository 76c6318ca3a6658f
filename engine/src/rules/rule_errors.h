#pragma once

#include "base/error.h"
#include "rules/rule_set.h"

// The errors that stop a stream because of its rules: each names the table and, where there is one, the rule.

namespace thalweg::rules {

// rule_refused, with line and column of the condition.
base::Error error_of(const RuleRefusal& refusal, const RuleTable& table);
// rule_undecidable or rule_failed; `judgement` decided nothing. `is_known`: tag and commit time were, when it was
// judged.
base::Error error_of(const Judgement& judgement, const RuleTable& table, lcr::FrameKind change, bool is_known = true);
// rule_undecidable, of a rule that needs a long value which an update may not bring.
base::Error perhaps_undecidable(const Rule& rule, const RuleTable& table);
// Where an update moves its row, in a subset.
enum class Move : uint8_t { into, out_of };
// rule_undecidable, whatever the policies say: `lacking` is what the change did not bring.
base::Error undecidable(const RuleTable& table, lcr::FrameKind change, Move move, std::string_view lacking);

}  // namespace thalweg::rules
