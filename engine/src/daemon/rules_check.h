#pragma once

#include <vector>

#include "base/error.h"
#include "control/rules_check.h"
#include "daemon/rules_time.h"
#include "pg/connection.h"

namespace thalweg::daemon {

// Every rule by itself against its table as the source has it now: the refusals, and what would be undecidable because
// the replica identity does not send it, surely or where a value is long.
base::Result<std::vector<control::RuleProblem>> find_rule_troubles(pg::Connection& source,
                                                                   const control::RulesCheckRequest& request,
                                                                   const RulesTime& time);

}  // namespace thalweg::daemon
