#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "pg/connection.h"

// Where a parked transaction failed: thalweg.error_queue.failure, {"change": 3, "table": "...", "constraint": "...",
// "column": "...", "type": "...", "of": HASH}; what is not known is left out. HASH is that of the message: an engine
// that does not know the column writes another message and leaves this as it is, which then says nothing.

namespace thalweg::apply {

struct ParkedFailure {
  uint64_t change = 0;  // its number in the transaction, from 1; 0: it failed at none
  pg::NamedInError named = {};
};

// The document without "of".
std::string failure_json(const ParkedFailure& failure, const base::Error& why);
// The document with "of", as an SQL expression of the message and of failure_json()'s text, SQL expressions, too.
std::string failure_of(std::string_view message, std::string_view json);

// The failure as an SQL expression over thalweg.error_queue as `q`: '{}' where nothing is known, also where an older
// engine made the table, without the column: the innermost name is the table's column if there is one, else the
// default's.
inline constexpr std::string_view kFailureOfQ =
    "(SELECT CASE WHEN known.failure ->> 'of' = hashtextextended(q.message, 0)::text THEN known.failure ELSE '{}' END "
    "FROM (SELECT '{}'::jsonb AS failure) older, "
    "LATERAL (SELECT failure FROM thalweg.error_queue e WHERE e.id = q.id) known)";

}  // namespace thalweg::apply
