#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lcr/frame.h"
#include "pg/connection.h"
#include "telemetry/parked_contents.h"

// Operators' decisions about single changes of a parked transaction: thalweg.error_queue.edits, beside the
// frames as they came. An object by the changes' numbers (from 1, in the transaction's order), each
// {"reason": "...", "left_out": true} or {"reason": "...", "values": {"column": "text form" or null}}.

namespace thalweg::apply {

using ParkedEdits = std::map<uint64_t, telemetry::ParkedEdit>;

// The edits as an SQL expression over thalweg.error_queue as `q`: '{}' where an older engine made the table, without
// the column. The innermost name is the table's column if there is one, else the default's.
inline constexpr std::string_view kEditsOfQ =
    "(SELECT known.edits FROM (SELECT '{}'::jsonb AS edits) older, "
    "LATERAL (SELECT edits FROM thalweg.error_queue e WHERE e.id = q.id) known)";

// Fails with apply_failed where the column has something else.
base::Result<ParkedEdits> parse_edits(std::string_view json);
std::string edit_json(const telemetry::ParkedEdit& edit);
// The INSERT or UPDATE with the edit's values. An UPDATE still finds the row that it found before.
base::Result<std::vector<std::byte>> edited_frame(const lcr::FrameView& frame, const telemetry::ParkedEdit& edit,
                                                  const lcr::TableDescription& table);
// Whether the transaction has such a change, and the change such values: unknown_error_transaction, or invalid_request
// with the JSON pointer of the value.
base::Result<void> check_edit(pg::Connection& connection, int64_t error_id, uint64_t number,
                              const telemetry::ParkedEdit& edit);

}  // namespace thalweg::apply
