#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "pg/connection.h"

// The publication of a stream: which tables the source's decoding sends.

namespace thalweg::capture {

struct PublishedTable {
  std::string schema_name;
  std::string table_name;
  auto operator<=>(const PublishedTable&) const = default;
};

// Creates the publication, or makes an existing one publish exactly `tables`: insert, update, delete, truncate, through
// the root of partitioned tables, without inheritance children. Touches nothing when it is so already.
// Fails with missing_table, insufficient_privilege or what the connection fails with.
base::Result<void> ensure_publication(pg::Connection& connection, const std::string& name,
                                      const std::vector<PublishedTable>& tables);
// Whether there is nothing to change: it is there, and publishes exactly `tables`.
base::Result<bool> is_published(pg::Connection& connection, const std::string& name,
                                const std::vector<PublishedTable>& tables);
// The publication and its tables by their identities: two servers of one cluster that answer the same have the same.
base::Result<std::string> publication_as_it_is(pg::Connection& connection, const std::string& name);
// What it publishes, under the names of now; none where there is none.
base::Result<std::vector<PublishedTable>> published_tables(pg::Connection& connection, const std::string& name);
// Those that there are.
base::Result<std::vector<PublishedTable>> existing_tables(pg::Connection& connection,
                                                          const std::vector<PublishedTable>& tables);
// None is fine.
base::Result<void> drop_publication(pg::Connection& connection, const std::string& name);

}  // namespace thalweg::capture
