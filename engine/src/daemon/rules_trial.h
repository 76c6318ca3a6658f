#pragma once

#include <functional>

#include "base/error.h"
#include "capture/change_tap.h"
#include "control/rules_trial.h"
#include "daemon/rules_time.h"
#include "pg/connection.h"

namespace thalweg::daemon {

// Judges as a capture would, with the table as the source has it now: of a change's old row the rules see what the
// table's replica identity sends. Fails with invalid_request where a row has a column that the table has not, and as
// `tap` does, which is asked once, where the request wants changes of a stream and nothing refuses the rules.
using TakeChanges = std::function<base::Result<capture::TappedChanges>(const control::RecentChanges&)>;
base::Result<control::RulesTrial> try_rules(pg::Connection& source, const control::RulesTrialRequest& request,
                                            const RulesTime& time, const TakeChanges& tap);

}  // namespace thalweg::daemon
