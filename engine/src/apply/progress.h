#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"

// The stream's rows in schema `thalweg` of the destination (docs/internals/destination-metadata.md).

namespace thalweg::apply {

// Registration of a stream at its destination. The row is written once, when the stream's slot has been created.
struct StreamRecord {
  std::string stream_id;
  std::string source_system_identifier;  // as IDENTIFY_SYSTEM prints it
  int source_timeline = 0;
  std::string source_database;
  std::string slot;
  base::Lsn start_lsn;      // the slot's consistent point: changes that commit from here on are applied
  base::Lsn low_watermark;  // every transaction with commit LSN < low_watermark is committed, durably
};

// Creates schema and tables where missing, and migrates older versions. Safe against a concurrent caller.
base::Result<void> ensure_schema(pg::Connection& connection);
// Inserts the stream's row; low_watermark starts as start_lsn. A row of the same id is replaced together with the
// stream's progress and error queue: the caller has just created the slot anew.
base::Result<void> register_stream(pg::Connection& connection, const StreamRecord& record);
// The row, or nullopt when there is none (or no schema). low_watermark includes what the appliers have recorded.
base::Result<std::optional<StreamRecord>> find_stream(pg::Connection& connection, std::string_view stream_id);
// A server that has left the stream's timeline, after a failover say, and goes on along another.
struct TimelineSwitch {
  int from = 0;         // the stream's
  int to = 0;           // the server's
  base::Lsn end;        // below it both have the same history
  base::Lsn copied_to;  // the youngest snapshot that the stream's tables were copied from; zero: none
  // Where applied changes reach further: whether nothing of that is the stream's; then the progress goes back to the
  // end. A source_diverged names what is. Empty: nobody knows.
  std::function<base::Result<void>(base::Lsn reached)> check_beyond = {};
};
// Records the new timeline where all that the destination has of the stream lies below the switch, or is of no
// transaction (a position that only the source's other work has moved on). Fails with
// source_diverged, and changes nothing, where something may lie beyond: the server has never had it. No other engine's
// apply runs (stream_in_use), and what a dead one's server processes have not committed by then they never do.
base::Result<void> follow_timeline(pg::Connection& connection, std::string_view stream_id, const TimelineSwitch& turn);
// Deletes the stream's rows, and the schema when no other stream is left and nothing else lives in it.
base::Result<void> forget_stream(pg::Connection& connection, std::string_view stream_id);

}  // namespace thalweg::apply
