#pragma once

#include <string>

#include "base/error.h"
#include "base/networks.h"
#include "pg/connection.h"

namespace thalweg::shipment {

// Makes a physical slot at the source where there is none of this name, or where it has lost its WAL. Only for somebody
// who finds the WAL between in an archive.
base::Result<void> renew_slot(const base::Conninfo& source, const std::string& slot, const pg::ConnectOptions& session);

}  // namespace thalweg::shipment
