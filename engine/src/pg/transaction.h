#pragma once

#include "pg/connection.h"

namespace thalweg::pg {

// Runs `body` (base::Result<void>()) in a transaction of its own; anything that fails rolls it back.
template <typename Body>
base::Result<void> in_transaction(Connection& connection, Body body) {
  THALWEG_TRY(connection.script("BEGIN"));
  base::Result<void> done = body();
  if (done) {
    if (auto committed = connection.script("COMMIT"); !committed) return std::unexpected(committed.error());
    return {};
  }
  if (!connection.broken()) static_cast<void>(connection.script("ROLLBACK"));  // the first failure is the answer
  return done;
}

}  // namespace thalweg::pg
