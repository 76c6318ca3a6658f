#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "metadata/destination_version.h"
#include "pg/connection.h"

// Asks the destination what versions its tables have now.

namespace thalweg::apply {

// Owner: the reader's own thread, with a connection that nobody else uses: others may do the reader's work meanwhile.
class DestinationWatch {
 public:
  DestinationWatch(base::Conninfo conninfo, pg::ConnectOptions options)
      : conninfo_(std::move(conninfo)), options_(std::move(options)) {}

  // Returns and fails as metadata::destination_versions does. Connects first where there is no connection.
  base::Result<std::vector<metadata::DestinationVersion>> look(std::span<const base::RelationId> tables) {
    if (!connection_) {
      THALWEG_ASSIGN(auto opened, pg::Connection::open(conninfo_, options_));
      connection_.emplace(std::move(opened));
    }
    return metadata::destination_versions(*connection_, tables);
  }

 private:
  const base::Conninfo conninfo_;
  const pg::ConnectOptions options_;
  std::optional<pg::Connection> connection_;
};

}  // namespace thalweg::apply
