#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"
#include "pg/timeline_history.h"

// The streaming replication protocol (PostgreSQL documentation, chapter of that name;
// src/backend/replication/walsender.c): changes that the source decodes, or its WAL as it is. Both go over a session of
// a database, which pg_hba.conf lets in by the database's name.

namespace thalweg::pg {

struct SystemIdentity {
  std::string system_identifier;
  int timeline;
  base::Lsn flushed;  // the source's current flush position
  std::string database;
  // In recovery. Otherwise a server stays on its timeline for as long as a connection to it lasts.
  // A standby can be promoted, or follow another primary, under a connection.
  bool standby = false;
};

// The output plugin, which decodes at the source. thalweg_output sends pgoutput's messages in batches, and says which
// subtransactions committed (docs/formats/output-batch.md).
enum class OutputPlugin : uint8_t { pgoutput, thalweg_output };
// The plugin's name, as pg_replication_slots shows it.
std::string_view name_of(OutputPlugin plugin);

struct SlotPlace {
  int server_version = 0;  // 150020
  bool standby = false;
};
// From PostgreSQL 17 on a slot that outlives the session can follow a failover to a synchronised standby.
std::string create_slot_sql(const std::string& slot, bool temporary, OutputPlugin plugin, const SlotPlace& place);

struct CreatedSlot {
  base::Lsn consistent_point;
  std::string snapshot_name;  // importable until the next command on this connection
};

struct StreamMessage {
  bool is_keepalive;
  bool reply_requested;  // keepalive only
  base::Lsn wal_start;   // XLogData
  base::Lsn wal_end;     // XLogData: server's current end; keepalive: everything before it was sent
  base::UnixMicros server_time;
  std::span<const std::byte> payload;  // the output plugin's bytes, or WAL; valid until the next call
};

struct Feedback {
  base::Lsn written;
  base::Lsn flushed;  // durable at every destination: the slot may forget what is before it
  base::Lsn applied;
  bool reply_requested = false;
};

// Owner: one thread.
class ReplicationStream {
 public:
  static base::Result<ReplicationStream> open(const base::Conninfo& conninfo, const std::string& application_name);
  static base::Result<ReplicationStream> open(const base::Conninfo& conninfo, ConnectOptions options);
  ReplicationStream(ReplicationStream&&) noexcept;
  ReplicationStream& operator=(ReplicationStream&&) noexcept;
  ~ReplicationStream();

  // Errors of the three below name the slot's trouble: slot_lost, slot_in_use, slot_limit_reached, wal_level_too_low.
  base::Result<SystemIdentity> identify();
  // The timeline on which the server is now, in one round trip.
  base::Result<int> timeline();
  // The history of the server that is on `timeline` now. Fails with database_error if it has lost the file.
  base::Result<TimelineHistory> timeline_history(int timeline);
  // Logical slot that exports its snapshot. Temporary slots vanish with the connection. Fails with
  // output_plugin_unavailable where the server does not offer the plugin; the connection stays usable.
  base::Result<CreatedSlot> create_slot(const std::string& slot, bool temporary,
                                        OutputPlugin plugin = OutputPlugin::pgoutput);
  struct StartOptions {
    OutputPlugin plugin = OutputPlugin::pgoutput;  // the slot's
    uint8_t batch_version = 0;                     // of thalweg_output's batches
    bool binary = true;                            // false: all values come as text (value_forms.h)
    bool streaming = true;                         // transactions may come before their commit
    bool messages = false;                         // logical messages (pg_logical_emit_message) come, too
    std::string row_filters = {};                  // of thalweg_output (docs/formats/row-filters.md); empty: none
  };
  // START_REPLICATION ... (proto_version '2', publication_names ..., binary ..., streaming ...). Text names objects
  // with their schemas: the session's search_path is pg_catalog. SQLSTATE 0A000: the server's thalweg_output is of
  // a release that does not know the batches' version; the connection stays usable. So it does where the server refuses
  // row filters: class 22, or 54 where they are too deep.
  base::Result<void> start(const std::string& slot, base::Lsn from, const std::vector<std::string>& publications,
                           StartOptions options);
  // Slot that keeps WAL from its own restart position on, and that position: a redo pointer (ReplicationSlotReserveWal
  // of src/backend/replication/slot.c). No output plugin runs for it.
  base::Result<base::Lsn> create_physical_slot(const std::string& slot, bool temporary);
  // START_REPLICATION ... PHYSICAL: the WAL of `timeline` from `from` on. The stream ends with connection_lost
  // where the server leaves that timeline.
  base::Result<void> start_physical(const std::string& slot, base::Lsn from, int timeline);
  // The next message; nullopt when none comes until `timeout`. Messages that libpq already holds cost no system call.
  // Fails with connection_lost, publication_lost, slot_lost or what the server's decoding reports.
  base::Result<std::optional<StreamMessage>> receive(std::chrono::milliseconds timeout);
  base::Result<void> send_feedback(const Feedback& feedback);
  // Asked whenever something has been read from the socket, before receive() hands out anything of it; what it fails
  // with receive() fails with, and nothing is handed out.
  void guard_with(std::function<base::Result<void>()> check);
  // Otherwise over a local socket, whose buffer is the server's and small.
  bool over_tcp() const;
  // For Connection::script and what goes with it, before start(): this server's answers, and no other's of several.
  Connection& connection();
  // Ends a create_slot() that waits for running transactions. Thread-safe against the owner.
  Connection::Canceller canceller() const;

 private:
  struct Impl;
  base::Result<void> start(const std::string& command);
  explicit ReplicationStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg::pg
