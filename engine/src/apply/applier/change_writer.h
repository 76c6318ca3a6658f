#pragma once

#include <optional>
#include <span>
#include <vector>

#include "apply/applier/arena.h"
#include "apply/applier/compactor.h"
#include "apply/applier/destination_session.h"
#include "base/error.h"
#include "telemetry/agent.h"

// Turns changes into statements: single rows, or sets of rows.

namespace thalweg::apply {

// A failure of the server, or none.
// Owner: the session's owner. Sends only; sync() is the caller's, except around COPY.
class ChangeWriter {
 public:
  ChangeWriter(DestinationSession& session, telemetry::Counter& sets) : session_(session), sets_(sets) {}

  // Options of one row's statement. `checked`: it fails by itself when it finds no row.
  struct RowOptions {
    bool checked = false;
    bool any_count = false;           // whether it finds a row does not matter
    const lcr::Value* old = nullptr;  // the row has to be as it says: old_values()
  };
  base::Result<void> insert(const metadata::TableMetadata& table, const lcr::Value* values, const std::byte* frame);
  base::Result<void> upsert(const metadata::TableMetadata& table, const lcr::Value* values, const std::byte* frame);
  // `key`: the old identity (old row for keyless tables), which may be `values` itself.
  base::Result<void> update(const metadata::TableMetadata& table, const lcr::Value* values, const lcr::Value* key,
                            const std::byte* frame, RowOptions options);
  base::Result<void> remove(const metadata::TableMetadata& table, const lcr::Value* key, const std::byte* frame,
                            RowOptions options);
  // Removes the row of `key` if there is one of `values`' identity; catch-up of a key update.
  base::Result<void> remove_if_moved(const metadata::TableMetadata& table, const lcr::Value* values,
                                     const lcr::Value* key, const std::byte* frame);

  // Everything of `batch`: removes, then updates, then inserts. Inserts that are worth a COPY are left for
  // copy_inserts(); returns whether there are any.
  base::Result<bool> write(Compactor& batch);
  // Inserts of `batch` through COPY. The session must be in a transaction and synced.
  base::Result<Refusal> copy_inserts(const Compactor& batch);

 private:
  base::Result<void> run_row(DestinationSession::Prepared& prepared, const lcr::Value* values, const lcr::Value* key,
                             const DestinationSession::Expectation& expectation);
  using Rows = std::vector<const RowChange*>;
  // `compared`: in all of them, null for nothing.
  base::Result<void> write_removes(const metadata::TableMetadata& table, const Rows& rows, const ColumnMask* compared);
  base::Result<void> write_updates(const metadata::TableMetadata& table, const Rows& rows, const ColumnMask& came,
                                   const ColumnMask* compared);
  // Takes those that one statement can do out of `rows`.
  base::Result<void> write_alike(const metadata::TableMetadata& table, Rows& rows, StatementKind kind);
  base::Result<void> write_inserts(const metadata::TableMetadata& table, const Rows& rows);
  base::Result<void> run_set(const metadata::TableMetadata& table, StatementKind kind, const ColumnMask& came,
                             const ColumnMask* compared, std::span<const RowChange* const> rows);
  bool fits_sets(const metadata::TableMetadata& table, StatementKind kind, const ColumnMask& came,
                 const ColumnMask* compared);

  DestinationSession& session_;
  telemetry::Counter& sets_;
  std::vector<pg::Parameter> parameters_;
  std::vector<std::vector<std::byte>> arrays_;
  std::vector<std::byte> copy_buffer_;
  Rows removes_, updates_, partial_updates_, inserts_, single_;
};

}  // namespace thalweg::apply
