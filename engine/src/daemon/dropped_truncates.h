#pragma once

#include <set>

#include "base/error.h"
#include "control/desired_state.h"
#include "instantiation/captured_tables.h"
#include "pg/connection.h"

// Tables whose rows stay at the destination whatever is truncated at the source.

namespace thalweg::daemon {

// Those of `names`, of the records, of which a rule, the stream's or the destination's, drops each TRUNCATE. Asks the
// source's catalogue about tables with rules only; one whose rules do not fit it is none of them.
base::Result<std::set<instantiation::TableName>> with_dropped_truncates(pg::Connection& source,
                                                                        const control::Delivery& delivery,
                                                                        const std::set<instantiation::TableName>& names,
                                                                        const instantiation::TableRecords& records,
                                                                        const instantiation::SourceTables& now);

}  // namespace thalweg::daemon
