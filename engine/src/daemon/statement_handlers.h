#pragma once

#include <vector>

#include "control/desired_state.h"
#include "metadata/statement_handler.h"

namespace thalweg::daemon {

// The parameter statement_handlers of a destination, with its tables as the destination names them.
std::vector<metadata::StatementHandler> statement_handlers(const control::Delivery& delivery);

}  // namespace thalweg::daemon
