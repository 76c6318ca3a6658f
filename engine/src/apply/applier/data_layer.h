#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "apply/applier/destination_session.h"
#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/table_metadata.h"
#include "pg/connection.h"
#include "telemetry/agent.h"

// Rows as they came, written below SQL: the extension thalweg_datalayer (engine/datalayer) of the destination. The
// bytes on the wire are described in docs/formats/data-layer-call.md.

namespace thalweg::apply {

// Whether the destination has the extension, in the version that we know.
base::Result<bool> has_data_layer(pg::Connection& connection);

// Whether the SQLSTATE of a failed call means that later calls may fail as well: the extension refuses one of the
// tables, or may have been dropped.
bool is_refused(std::string_view sqlstate);
bool may_be_gone(std::string_view sqlstate);

// Whether a call without rows works: the function exists, has its library, and may be called. The earlier failure then
// came from within the call, a trigger for example. No transaction may be open, and no statement in flight.
base::Result<bool> answers_calls(DestinationSession& session);

// Collects frames in their order and sends them in calls of bounded size. Owner: the session's owner. Sends only;
// sync() is the caller's.
class DataLayer {
 public:
  DataLayer(DestinationSession& session, telemetry::Counter& calls) : session_(session), calls_(calls) {}

  // Whether rows of this kind can be written to the table. Else they are for SQL, which compares old values
  // and is followed by statements of handlers.
  static bool takes(const metadata::TableMetadata& table, lcr::FrameKind kind);
  // Too large for a call, whatever the table: for SQL, in its turn among those that are not.
  static bool is_too_large(const lcr::FrameView& frame);
  // Fails with destination_table_differs where a value does not fit the destination's type.
  base::Result<void> add(const metadata::TableMetadata& table, const lcr::FrameView& frame);
  // Rows of the table are collected that have not been sent.
  bool holds(const metadata::TableMetadata& table) const;
  base::Result<void> flush();
  void clear();

 private:
  void describe(const metadata::TableMetadata& table);

  DestinationSession& session_;
  telemetry::Counter& calls_;
  std::vector<const metadata::TableMetadata*> tables_;  // that have been described
  const metadata::TableMetadata* last_ = nullptr;       // one of them
  std::vector<std::byte> descriptions_;
  std::vector<std::byte> frames_;
};

}  // namespace thalweg::apply
