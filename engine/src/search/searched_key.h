#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/ids.h"
#include "capture/wal/masked_columns.h"
#include "pg/connection.h"
#include "telemetry/log_search.h"

namespace thalweg::search {

// The binary form, as the WAL's rows have it, of a value of that type. None: the type refuses the text. Fails as the
// connection does.
base::Result<std::optional<std::string>> binary_of(pg::Connection& source, const std::string& text, base::TypeId type,
                                                   int32_t type_modifier);

// The key's columns and values, as the source has the table now. Fails with invalid_request, which names the member of
// the request: the table has no such column, its type refuses the value, or the stream masks it. A table that the
// source does not have by that name may have been renamed: nothing is refused.
base::Result<void> check_key(pg::Connection& source, const telemetry::SearchRequest& request,
                             const capture::MaskedColumns& masked);

}  // namespace thalweg::search
