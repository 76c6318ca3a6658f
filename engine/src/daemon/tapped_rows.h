#pragma once

#include "base/error.h"
#include "capture/change_tap.h"
#include "control/rules_trial.h"
#include "pg/connection.h"

namespace thalweg::daemon {

// A stream's change with its values as the source's server writes them, and no verdict yet. Values of columns that the
// stream masks or drops are neither in it nor sent to the server. A value that the server cannot read any more, because
// a type has changed since, is shown as its bytes in hex. Fails as the connection does.
base::Result<control::JudgedChange> shown(pg::Connection& source, const capture::TappedChange& change);

}  // namespace thalweg::daemon
