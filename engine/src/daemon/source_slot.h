#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "capture/logical/slot.h"
#include "control/desired_state.h"
#include "daemon/database_work.h"
#include "daemon/queue_producer.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "shipment/wal_identity.h"

// The stream's slot at its source, and the sessions of those who look after it there.

namespace thalweg::daemon {

base::Result<pg::Connection> connect(const base::Conninfo& conninfo, const std::string& stream_id,
                                     const DatabaseWork& work);
pg::ConnectOptions capture_session(const control::StreamDefinition& definition, const DatabaseWork& work);
CaptureIdentity identity_of(const pg::SystemIdentity& identity);

// Says which side failed: both messages of libpq look the same.
template <typename T>
base::Result<T> on_side(std::string_view side, const std::string& database, base::Result<T> result) {
  if (!result) result.error().message = std::string(side) + " \"" + database + "\": " + result.error().message;
  return result;
}

bool mines(const control::StreamDefinition& definition);
// A slot of the stream, and a snapshot of its position. `folder`: of its mining, if it mines.
base::Result<capture::NewSlot> make_slot(const control::StreamDefinition& definition, const DatabaseWork& work,
                                         const std::string& name, const std::filesystem::path& folder);
// Of a stream that mines: another slot in the place of one that somebody dropped or that has lost its WAL, if the
// stream has an archive for what is between; and at a source that was promoted, where there was none.
base::Result<void> renew_slot(const control::StreamDefinition& definition, const shipment::WalIdentity& source,
                              const DatabaseWork& work, const std::filesystem::path& folder);
// Of a stream that mines, at a source that was promoted, before the staged WAL is cut back: what this server lacks is
// kept, for those who may have it. Best effort: without, whoever is beyond the switch stops without a list.
void note_left_behind(const control::StreamDefinition& definition, const shipment::WalIdentity& wal,
                      pg::Connection& source, const std::filesystem::path& folder);
void log_undone(const control::StreamDefinition& definition, const base::Result<void>& ended);

}  // namespace thalweg::daemon
