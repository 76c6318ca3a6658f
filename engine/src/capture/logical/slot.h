#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/ids.h"
#include "capture/logical/standby_snapshots.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"

// The replication slot of a stream: thalweg_<stream id>, without two_phase. Its plugin is chosen when it is made.

namespace thalweg::capture {

// The name under which every session of a stream's capture appears at the source.
std::string capture_application_name(std::string_view stream_id);

// The output plugin of a new slot. `automatic`: thalweg_output where the source's server has it, else pgoutput.
enum class SourcePlugin : uint8_t { automatic, pgoutput, thalweg };

// A slot just made. `stream` holds the exported snapshot: importable until the next command on it or its end.
struct NewSlot {
  pg::ReplicationStream stream;
  pg::CreatedSlot slot;
  pg::OutputPlugin plugin;
  pg::SystemIdentity identity;
};
// At a standby the slot waits for a record of the running transactions, which `primary` is asked for. Fails with
// connection_lost where the server has gone to another timeline meanwhile.
// Fails with wal_level_too_low, slot_limit_reached, insufficient_privilege, output_plugin_unavailable (only where
// thalweg_output is asked for) or what the connection fails with. Waits for transactions that run at the source, unless
// `session` gives up. A slot of that name is an error: drop_slot() first.
base::Result<NewSlot> create_slot(const base::Conninfo& conninfo, const std::string& slot,
                                  const pg::ConnectOptions& session, SourcePlugin wanted,
                                  const PrimaryOfStandby& primary = {});
// Makes a temporary slot of pgoutput for a copy, over a session that is there.
base::Result<pg::CreatedSlot> create_copy_slot(pg::ReplicationStream& session, const pg::SystemIdentity& identity,
                                               const base::Conninfo& conninfo, const std::string& slot,
                                               const PrimaryOfStandby& primary);

// Drops the slot; none is fine. While a session of `application_name`, ours that the server has not yet missed, holds
// it, waits up to `patience`; then, or held by somebody else: slot_in_use.
base::Result<void> drop_slot(pg::Connection& connection, const std::string& slot, const std::string& application_name,
                             std::chrono::milliseconds patience);

// Describes how a slot whose wal_status is lost became so. `reason` is pg_replication_slots.invalidation_reason, from
// PostgreSQL 17 on; else empty.
std::string lost_in_words(const std::string& slot, std::string_view reason);

struct SlotExpectation {
  std::string slot;
  std::string application_name;
  base::Lsn low_watermark;                     // the destination's progress; zero: none
  std::string system_identifier;               // empty: not compared
  std::chrono::milliseconds patience{10'000};  // for our own dead session
  bool shared = false;                         // another engine captures from it: in use is as it should be
  std::string next_slot = {};                  // stands in where the other engine is just changing the capture's kind
  bool at_standby = false;                     // a standby may be read
  bool is_physical = false;                    // its WAL is mined; where the slot is shared, nobody asks
};
struct SlotState {
  pg::OutputPlugin plugin;
  base::Lsn restart_lsn;
  base::Lsn confirmed_flush;  // none of a physical one
};
// Whether the stream can go on from this slot of the server that `source` has identified: source_changed,
// source_read_only (a standby, unless it is to be read), slot_lost, position_gap (with the gap's bytes) or slot_in_use
// where it cannot.
base::Result<SlotState> check_slot(pg::ReplicationStream& source, const pg::SystemIdentity& identity,
                                   const SlotExpectation& expected);

// Up to where the server's history is that of `timeline`, on which a stream was until now: everything that the stream's
// destinations have must lie below. Fails with source_diverged where the server has never been on that timeline.
base::Result<base::Lsn> end_of_timeline(pg::ReplicationStream& source, const pg::SystemIdentity& identity,
                                        int timeline);

}  // namespace thalweg::capture
