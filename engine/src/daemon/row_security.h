#pragma once

#include <atomic>

#include "base/error.h"
#include "control/desired_state.h"

namespace thalweg::daemon {

// The error of a stream, or of an execution of parked transactions, that met a table's row-level security: which user
// it applies to and what ends that, which PostgreSQL does not say, before PostgreSQL's own words. Looks at the
// databases again. Any other error comes back as it is, and so does one of which they do not answer, or once `abandon`
// is set.
base::Error with_row_security(base::Error error, const control::Delivery& delivery, const std::atomic<bool>* abandon);

}  // namespace thalweg::daemon
