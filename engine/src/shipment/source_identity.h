#pragma once

#include "base/error.h"
#include "pg/replication_stream.h"
#include "shipment/wal_identity.h"

namespace thalweg::shipment {

// The identity of the WAL that the server sends, and where its timeline comes from. A server that has lost the file
// which says that is known by its present timeline only. source_read_only: it is a standby, and nobody knows yet where
// it will end it.
base::Result<WalIdentity> identify(pg::ReplicationStream& source);

}  // namespace thalweg::shipment
