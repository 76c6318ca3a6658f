#include "capture/wal/wal_start.h"

#include <fmt/format.h>

#include "base/log.h"
#include "capture/logical/slot.h"
#include "capture/wal/mined_tables.h"
#include "dictionary/first_contents.h"
#include "dictionary/first_contents_file.h"
#include "mining/table_check.h"

namespace thalweg::capture {

namespace {

base::Result<WalStart> begin(const WalStartOptions& options, MinedTables& tables, const WalFolder& folder,
                             pg::Connection& source) {
  THALWEG_ASSIGN(pg::ReplicationStream stream, pg::ReplicationStream::open(options.source, options.session));
  THALWEG_ASSIGN(pg::SystemIdentity identity, stream.identify());
  THALWEG_ASSIGN(const base::Lsn kept_from, stream.create_physical_slot(options.slot, false));
  THALWEG_ASSIGN(pg::CreatedSlot slot, stream.create_slot(options.copy_slot, true));
  THALWEG_TRY(source.script(fmt::format("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}",
                                        source.quote_literal(slot.snapshot_name))));
  THALWEG_ASSIGN(const dictionary::FirstContents contents,
                 dictionary::read_first_contents(source, slot.consistent_point));
  THALWEG_TRY(source.script("COMMIT"));
  // A record behind the position: an idle source would write the next one much later, and only that completes the
  // dictionary.
  THALWEG_TRY(source.script("SELECT pg_catalog.pg_logical_emit_message(true, 'thalweg', '')"));
  THALWEG_TRY(mining::check_tables(contents, tables.oids(), [&](uint32_t table) { return tables.wanted(table); }));
  THALWEG_TRY(tables.recall(folder.tables(), kept_from));
  THALWEG_TRY(dictionary::save_first_contents(contents, folder.first_contents()));
  THALWEG_TRY(folder.write_state({.system_identifier = identity.system_identifier,
                                  .kept_from = kept_from,
                                  .started_at = slot.consistent_point,
                                  .at = {.confirmed = slot.consistent_point, .restart = kept_from}}));
  base::log_event(base::LogLevel::info, "mining_begun",
                  {{"slot", options.slot},
                   {"kept_from", base::to_string(kept_from)},
                   {"consistent_point", base::to_string(slot.consistent_point)}});
  return WalStart{.stream = std::move(stream), .slot = std::move(slot), .identity = std::move(identity)};
}

std::unexpected<base::Error> gap(base::Lsn from, std::string message) {
  base::Error error = base::fail(base::ErrorCode::position_gap, std::move(message), base::ErrorSide::engine).error();
  error.lsn = from;
  return std::unexpected(std::move(error));
}

std::unexpected<base::Error> nothing_left(base::Lsn from) {
  return gap(from, "The engine has lost what it had staged and mined of the source's WAL.");
}

base::Result<MiningState> from_before(WalFolder& folder, base::Lsn from, const MiningState& state) {
  THALWEG_ASSIGN(auto back, folder.back_to(from, state));
  if (back) return *std::move(back);
  THALWEG_ASSIGN(const base::Lsn oldest, folder.reaches_back_to(state));
  return gap(from, fmt::format("The engine keeps the WAL of what commits from {} on, and the destination has applied "
                               "up to {} only: {} bytes of WAL between them are gone. A larger wal_keep_mb keeps more "
                               "of it, for the next time that a destination is restored to an earlier state.",
                               base::to_string(oldest), base::to_string(from), oldest.value - from.value));
}

}  // namespace

base::Result<WalStart> start_wal(const WalStartOptions& options) {
  THALWEG_ASSIGN(pg::Connection source, pg::Connection::open(options.source, options.session));
  THALWEG_TRY(check_source(source));
  THALWEG_TRY(check_checkpoint(source));
  THALWEG_ASSIGN(MinedTables tables, MinedTables::read(source, options.publications));
  const WalFolder folder(options.folder);
  THALWEG_TRY(folder.clear());
  auto begun = begin(options, tables, folder, source);
  // Catalogs do not keep still for who reads them beside DDL: "cache lookup failed for index", and others like it.
  if (!begun && begun.error().sqlstate == "XX000") begun.error().code = base::ErrorCode::database_busy;
  // A slot without anybody who reads it holds WAL for ever. Best effort: whoever comes next finds it and drops it.
  if (!begun) {
    static_cast<void>(source.script("ROLLBACK"));
    static_cast<void>(drop_slot(source, options.slot, options.session.application_name, std::chrono::seconds(2)));
  }
  return begun;
}

base::Result<GoingOn> check_mining(WalFolder& folder, const shipment::WalIdentity& source, base::Lsn from) {
  THALWEG_ASSIGN(auto state, folder.read_state());
  if (!state) return nothing_left(from);
  if (state->system_identifier != std::to_string(source.system_identifier)) {
    return base::fail(base::ErrorCode::source_changed,
                      fmt::format("The source's system identifier is {}, the WAL was staged from {}.",
                                  source.system_identifier, state->system_identifier));
  }
  THALWEG_ASSIGN(const auto end, folder.left_at(source));
  if (end) {
    const base::Lsn reached = state->at.confirmed;
    THALWEG_ASSIGN(state, folder.back_to(*end, *state));
    if (!state) {
      base::Error error =
          base::fail(base::ErrorCode::source_diverged,
                     fmt::format("The source is on timeline {}, which left the former one at {}. All "
                                 "destinations have what committed up to {}, and the engine no longer "
                                 "has the WAL to go back so far.",
                                 source.history.timeline(), base::to_string(*end), base::to_string(reached)))
              .error();
      error.lsn = *end;
      return std::unexpected(std::move(error));
    }
  }
  const base::Lsn reached = state->at.confirmed;
  if (!from || from >= reached) return GoingOn{.state = *std::move(state)};
  THALWEG_ASSIGN(auto back, from_before(folder, from, *state));
  return GoingOn{.state = std::move(back), .again_until = reached};
}

base::Result<void> check_kept(const std::filesystem::path& folder, base::Lsn from) {
  WalFolder kept(folder);
  THALWEG_ASSIGN(const auto state, kept.read_state());
  if (!state) return nothing_left(from);
  THALWEG_TRY(from_before(kept, from, *state));
  return {};
}

}  // namespace thalweg::capture
