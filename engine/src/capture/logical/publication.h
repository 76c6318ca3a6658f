#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "pg/connection.h"
#include "pg/publication_names.h"

// The publications of a stream: what the source's decoding sends of which tables.

namespace thalweg::capture {

struct PublishedTable {
  std::string schema_name;
  std::string table_name;
  auto operator<=>(const PublishedTable&) const = default;
};

enum class Operations : uint8_t {
  all,      // insert, update, delete, truncate
  inserts,  // insert, truncate: PostgreSQL lets a table without a replica identity be updated
};

// Creates the publication, or makes an existing one publish exactly these operations of `tables`, through the root of
// partitioned tables, without inheritance children. Touches nothing when it is so already.
// Fails with missing_table, insufficient_privilege or what the connection fails with.
base::Result<void> ensure_publication(pg::Connection& connection, const std::string& name,
                                      const std::vector<PublishedTable>& tables,
                                      Operations operations = Operations::all);

struct StreamTables {
  std::vector<PublishedTable> changes;
  std::vector<PublishedTable> inserts;
};
// Both publications of a stream, in one transaction: a table goes from one to the other at one position. The second is
// made with `before_slot` only. Decoding looks publications up as of each change, and cannot go on where a change is
// older than one that it is asked for; so this fails with publication_lost where tables want what is not there.
base::Result<void> ensure_publications(pg::Connection& connection, const pg::PublicationNames& names,
                                       const StreamTables& tables, bool before_slot);
// Whether there is nothing to change: both are there, and publish exactly this.
base::Result<bool> are_published(pg::Connection& connection, const pg::PublicationNames& names,
                                 const StreamTables& tables);
// Both publications and their tables by their identities: two servers of one cluster return the same.
base::Result<std::string> publications_as_they_are(pg::Connection& connection, const pg::PublicationNames& names);
// The tables of publication `name`, under their current names; empty if it does not exist.
base::Result<std::vector<PublishedTable>> published_tables(pg::Connection& connection, const std::string& name);
// The ones among `tables` that exist.
base::Result<std::vector<PublishedTable>> existing_tables(pg::Connection& connection,
                                                          const std::vector<PublishedTable>& tables);
// Those of `tables` whose updates and deletes can be published: PostgreSQL refuses them at the source for any other.
base::Result<std::vector<PublishedTable>> identified_tables(pg::Connection& connection,
                                                            const std::vector<PublishedTable>& tables);
// A publication that does not exist is no failure.
base::Result<void> drop_publication(pg::Connection& connection, const std::string& name);
base::Result<void> drop_publications(pg::Connection& connection, const pg::PublicationNames& names);

}  // namespace thalweg::capture
