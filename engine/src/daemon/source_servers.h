#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "capture/logical/publication.h"
#include "capture/logical/standby_snapshots.h"
#include "control/desired_state.h"
#include "daemon/database_work.h"
#include "pg/connection.h"

// The servers of a source that is read at a standby (docs/decisions/standby-source.md). Of any other source there is
// one, and it is left to the address which that is.

namespace thalweg::daemon {

// The definition with a source whose conninfo leads to the server to read. That is the one that has the stream's slot:
// a standby, or one that was promoted since; a new stream's is the standby. Fails with source_standby_missing where it
// does not answer, and with unsupported_version.
base::Result<control::StreamDefinition> with_server_to_read(control::StreamDefinition definition);

// Where a source that is read at a standby is written; its conninfo is empty for any other.
capture::PrimaryOfStandby primary_of(const control::StreamDefinition& definition, const DatabaseWork& work = {});

// Has the stream's publications publish these tables (ensure_publications). `reader`: a session of the server that is
// read. Where that is a standby, returns once the standby has it so; source_standby_behind when that takes too long.
base::Result<void> publish_tables(pg::Connection& reader, const control::StreamDefinition& definition,
                                  const capture::StreamTables& tables, bool before_slot, const DatabaseWork& work);
// Drops them.
base::Result<void> unpublish(pg::Connection& reader, const control::StreamDefinition& definition,
                             const DatabaseWork& work = {});

}  // namespace thalweg::daemon
