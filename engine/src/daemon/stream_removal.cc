#include "daemon/stream_removal.h"

#include <fmt/format.h>

#include "apply/progress.h"
#include "capture/logical/slot.h"
#include "daemon/source_objects.h"
#include "daemon/source_servers.h"
#include "instantiation/instantiation.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

using control::Delivery;
using control::StreamDefinition;
constexpr std::chrono::seconds kSlotPatience{10};

// A forced removal waits at most 3 s for any lock.
base::Result<pg::Connection> connect(const base::Conninfo& conninfo, const std::string& stream_id, bool force,
                                     const DatabaseWork& work) {
  THALWEG_TRY(work.end_given_up(conninfo));
  THALWEG_ASSIGN(pg::Connection connection,
                 pg::Connection::open(conninfo, work.session("thalweg supervisor " + stream_id)));
  if (force) THALWEG_TRY(connection.script("SET lock_timeout = '3s'"));
  return connection;
}

base::Result<void> drop_slot_and_publication(const StreamDefinition& definition, const DatabaseWork& work) {
  THALWEG_ASSIGN(const StreamDefinition at_server, with_server_to_read(definition));
  THALWEG_ASSIGN(pg::Connection connection, connect(at_server.source.conninfo, definition.id, definition.force, work));
  // Slots first: they hold WAL.
  for (const std::string& slot : {slot_name(definition.id), next_slot_name(definition.id)}) {
    THALWEG_TRY(capture::drop_slot(connection, slot, capture::capture_application_name(definition.id), kSlotPatience));
  }
  return unpublish(connection, at_server, work);
}

base::Result<void> remove_at_source(const StreamDefinition& definition, const DatabaseWork& work) {
  auto removed = drop_slot_and_publication(definition, work);
  if (!removed && work.is_given_up()) work.try_to_end_given_up(definition.source.conninfo);
  return removed;
}

base::Result<void> forget(const Delivery& delivery, const DatabaseWork& work) {
  THALWEG_ASSIGN(pg::Connection connection,
                 connect(delivery.destination.conninfo, delivery.stream.id, delivery.destination.force, work));
  THALWEG_TRY(instantiation::Instantiation::forget(connection, delivery.stream.id));
  return apply::forget_stream(connection, delivery.stream.id);
}

base::Result<void> remove_at_destination(const Delivery& delivery, const DatabaseWork& work) {
  auto removed = forget(delivery, work);
  if (!removed && work.is_given_up()) work.try_to_end_given_up(delivery.destination.conninfo);
  return removed;
}

std::string left_at_source(const StreamDefinition& definition, const base::Error& error) {
  const pg::PublicationNames publications = publications_of(definition.id);
  return fmt::format(
      "Left behind at the source \"{}\" ({}): SELECT pg_drop_replication_slot('{}'); DROP PUBLICATION IF EXISTS {}, "
      "{};",
      definition.source.name, base::message_without_rows(error), slot_name(definition.id), publications.changes,
      publications.inserts);
}

std::string left_at_destination(const Delivery& delivery, const base::Error& error) {
  std::string sql;
  for (const char* table : {"copy_range", "stream_table", "instantiation", "error_queue", "apply_progress", "stream"}) {
    sql += fmt::format(" DELETE FROM thalweg.{} WHERE stream_id = '{}';", table, delivery.stream.id);
  }
  return fmt::format(
      "Left behind at the destination \"{}\" ({}):{} With the last stream, unless others use it: DROP SCHEMA thalweg "
      "CASCADE;",
      delivery.destination.name, base::message_without_rows(error), sql);
}

}  // namespace

base::Result<std::string> remove_destination(const Delivery& delivery, const DatabaseWork& work) {
  if (delivery.destination.send_to) return std::string{};  // all of it is the receiving engine's
  auto removed = remove_at_destination(delivery, work);
  if (removed) return std::string{};
  if (!delivery.destination.force || work.is_given_up()) return std::unexpected(removed.error());
  return left_at_destination(delivery, removed.error());
}

base::Result<std::string> remove_stream(const StreamDefinition& definition, const DatabaseWork& work) {
  std::string left;
  const auto add = [&left](const std::string& more) { left += (left.empty() || more.empty() ? "" : " ") + more; };
  if (!definition.receive_from) {
    if (auto at_source = remove_at_source(definition, work); !at_source) {
      if (!definition.force || work.is_given_up()) return std::unexpected(at_source.error());
      add(left_at_source(definition, at_source.error()));
    }
  }
  for (const control::DestinationDefinition& destination : definition.destinations) {
    THALWEG_ASSIGN(const std::string more, remove_destination(control::delivery_to(definition, destination), work));
    add(more);
  }
  return left;
}

}  // namespace thalweg::daemon
