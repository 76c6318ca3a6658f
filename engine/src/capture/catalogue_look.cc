#include "capture/catalogue_look.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace thalweg::capture {
namespace {

using Age = CatalogueLook::Age;

constexpr int kAskedMax = 20;

// The changes bring the lower half of a transaction's number.
constexpr const char* kWholeXid =
    "greatest(s.top + ($1::bigint - s.top % 4294967296 + 6442450944) % 4294967296 - 2147483648, 3)::text::xid8";
constexpr const char* kTop =
    "(SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint) s(top)";
constexpr const char* kAttributes =
    "SELECT attnum, attname, attisdropped, attgenerated <> '' FROM pg_catalog.pg_attribute "
    "WHERE attrelid = $1::oid AND attnum > 0 ORDER BY attnum";
constexpr const char* kNow =
    "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() "
    "ELSE pg_catalog.pg_current_wal_insert_lsn() END";

Catalogue catalogue_of(const pg::Rows& rows) {
  Catalogue catalogue;
  for (size_t i = 0; i < rows.size(); ++i) {
    catalogue.push_back({.number = static_cast<int32_t>(rows.integer(i, 0)),
                         .name = std::string(rows.text(i, 1)),
                         .is_dropped = rows.boolean(i, 2),
                         .is_generated = rows.boolean(i, 3)});
  }
  return catalogue;
}

enum class Fate : uint8_t { in_progress, committed, aborted };

base::Result<Fate> fate_of(pg::Connection& source, base::Xid xid) {
  static const std::string sql = fmt::format("SELECT pg_catalog.pg_xact_status({}) FROM {}", kWholeXid, kTop);
  THALWEG_ASSIGN(const pg::Rows rows, source.query(sql, {std::to_string(xid.value)}));
  if (rows.text(0, 0) == "in progress") return Fate::in_progress;
  // NULL: it ended long ago. Nobody streams a transaction that has been rolled back for so long.
  return rows.text(0, 0) == "aborted" ? Fate::aborted : Fate::committed;
}

struct Seen {
  Catalogue catalogue = {};
  bool has_commit = false;  // as far as it has committed
  bool is_locked = false;   // by somebody who may change its columns, or has
};

// The columns of one snapshot, and what it has of the transaction. A transaction that changes columns has the lock
// until it ends, or rolls back to the savepoint.
base::Result<Seen> see(pg::Connection& source, base::RelationId relation, base::Xid xid) {
  static const std::string sql = fmt::format(
      "SELECT a.attnum, a.attname, a.attisdropped, a.attgenerated <> '', t.seen, t.locked FROM (SELECT "
      "pg_catalog.pg_is_in_recovery() OR pg_catalog.pg_visible_in_snapshot({}, pg_catalog.pg_current_snapshot()), "
      "EXISTS (SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database WHERE d.datname = "
      "pg_catalog.current_database() AND l.locktype = 'relation' AND l.relation = $2::oid AND l.granted "
      "AND l.mode = 'AccessExclusiveLock') FROM {}) t(seen, locked) "
      "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = $2::oid AND a.attnum > 0 ORDER BY a.attnum",
      kWholeXid, kTop);
  THALWEG_ASSIGN(const pg::Rows rows, source.query(sql, {std::to_string(xid.value), std::to_string(relation.value)}));
  Seen seen{.catalogue = {}, .has_commit = rows.boolean(0, 4), .is_locked = rows.boolean(0, 5)};
  if (!rows.is_null(0, 0)) seen.catalogue = catalogue_of(rows);
  return seen;
}

}  // namespace

base::Result<CatalogueLook> look_at(pg::Connection& source, base::RelationId relation, const ChangePlace& change) {
  const base::Xid own = change.own();
  for (int asked = 0; asked < kAskedMax; ++asked) {
    Fate before = Fate::committed;
    if (change.is_streamed) {
      THALWEG_ASSIGN(before, fate_of(source, own));
    }
    THALWEG_ASSIGN(Seen seen, see(source, relation, change.xid));
    if (before == Fate::committed && seen.has_commit) {
      return CatalogueLook{.age = Age::later, .catalogue = std::move(seen.catalogue)};
    }
    if (before == Fate::aborted) return CatalogueLook{};
    THALWEG_ASSIGN(const Fate after, fate_of(source, own));
    if (after == Fate::in_progress && !seen.is_locked) {
      return CatalogueLook{.age = Age::same, .catalogue = std::move(seen.catalogue)};
    }
    if (before == Fate::in_progress && after != Fate::committed) return CatalogueLook{};
    THALWEG_TRY(source.query("SELECT pg_catalog.pg_sleep(0.05)"));
  }
  return CatalogueLook{};
}

base::Result<CatalogueNow> look_now(pg::Connection& source, base::RelationId relation) {
  THALWEG_ASSIGN(const pg::Rows now, source.query(kNow));
  const auto lsn = base::parse_lsn(now.text(0, 0));
  if (!lsn) return base::fail(base::ErrorCode::protocol_violation, "The source does not say where its WAL ends");
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kAttributes, {std::to_string(relation.value)}));
  return CatalogueNow{.lsn = *lsn, .catalogue = catalogue_of(rows)};
}

}  // namespace thalweg::capture
