#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "pg/connection.h"
#include "telemetry/parked_contents.h"

// The changes of a parked transaction, and the rows that the destination has in their place.

namespace thalweg::apply {

// Less than the control plane waits for it.
inline constexpr std::chrono::seconds kContentsPatience{10};

// In one transaction that reads only. Reads of the frames those of the tables and those of `part`. Fails with
// unknown_error_transaction when there is none of that id, or not the only change, and as a query fails. A table that
// the destination does not have any more, or has in another shape, is no failure: its changes say so. So do rows that
// cannot be looked at in time: one that is behind somebody's lock, and all that are left after `patience` (a statement
// that runs by then may take two seconds more).
base::Result<telemetry::ParkedContents> read_parked(pg::Connection& connection, std::string_view stream_id, int64_t id,
                                                    std::chrono::milliseconds patience = kContentsPatience,
                                                    const telemetry::ChangesPart& part = {});

}  // namespace thalweg::apply
