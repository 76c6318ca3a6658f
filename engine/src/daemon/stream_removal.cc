#include "daemon/stream_removal.h"

#include <fmt/format.h>

#include "apply/progress.h"
#include "capture/logical/publication.h"
#include "capture/logical/slot.h"
#include "daemon/source_objects.h"
#include "instantiation/instantiation.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

using control::StreamDefinition;
constexpr std::chrono::seconds kSlotPatience{10};

base::Result<pg::Connection> connect(const std::string& conninfo, const std::string& stream_id) {
  pg::ConnectOptions options;
  options.application_name = "thalweg supervisor " + stream_id;
  return pg::Connection::open(conninfo, options);
}

base::Result<void> remove_at_source(const StreamDefinition& definition) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition.source.conninfo, definition.id));
  // The slot first: it holds WAL.
  THALWEG_TRY(capture::drop_slot(connection, slot_name(definition.id), capture::capture_application_name(definition.id),
                                 kSlotPatience));
  return capture::drop_publication(connection, publication_name(definition.id));
}

base::Result<void> remove_at_destination(const StreamDefinition& definition) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition.destination.conninfo, definition.id));
  THALWEG_TRY(instantiation::Instantiation::forget(connection, definition.id));
  return apply::forget_stream(connection, definition.id);
}

std::string left_at_source(const StreamDefinition& definition, const base::Error& error) {
  return fmt::format(
      "Left behind at the source \"{}\" ({}): SELECT pg_drop_replication_slot('{}'); DROP PUBLICATION IF EXISTS {};",
      definition.source.name, error.message, slot_name(definition.id), publication_name(definition.id));
}

std::string left_at_destination(const StreamDefinition& definition, const base::Error& error) {
  std::string sql;
  for (const char* table : {"copy_range", "stream_table", "instantiation", "error_queue", "apply_progress", "stream"}) {
    sql += fmt::format(" DELETE FROM thalweg.{} WHERE stream_id = '{}';", table, definition.id);
  }
  return fmt::format("Left behind at the destination \"{}\" ({}):{} With the last stream: DROP SCHEMA thalweg CASCADE;",
                     definition.destination.name, error.message, sql);
}

}  // namespace

base::Result<std::string> remove_stream(const StreamDefinition& definition) {
  if (definition.send_to) return std::string{};  // all of it is the receiving half's
  auto at_source = remove_at_source(definition);
  if (!at_source && !definition.force) return std::unexpected(at_source.error());
  auto at_destination = remove_at_destination(definition);
  if (!at_destination && !definition.force) return std::unexpected(at_destination.error());
  std::string left;
  if (!at_source) left = left_at_source(definition, at_source.error());
  if (!at_destination) left += (left.empty() ? "" : " ") + left_at_destination(definition, at_destination.error());
  return left;
}

}  // namespace thalweg::daemon
