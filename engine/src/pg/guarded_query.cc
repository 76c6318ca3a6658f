#include "pg/guarded_query.h"

#include <utility>

namespace thalweg::pg {

namespace {

base::Result<Pipeline::Outcome> run_behind_savepoint(Connection& connection, const std::string& sql,
                                                     std::span<const Parameter> parameters) {
  Pipeline pipeline(connection);
  THALWEG_TRY(pipeline.execute("SAVEPOINT thalweg_guarded"));
  THALWEG_TRY(pipeline.execute(sql, parameters));
  THALWEG_TRY(pipeline.execute("RELEASE SAVEPOINT thalweg_guarded"));
  return pipeline.sync();
}

}  // namespace

base::Result<Rows> query_guarded(Connection& connection, const std::string& sql,
                                 std::span<const Parameter> parameters) {
  THALWEG_ASSIGN(Pipeline::Outcome outcome, run_behind_savepoint(connection, sql, parameters));
  if (outcome.error) {
    const bool has_savepoint = outcome.failed_statement > 0;
    if (has_savepoint) {
      THALWEG_TRY(connection.script("ROLLBACK TO SAVEPOINT thalweg_guarded; RELEASE SAVEPOINT thalweg_guarded"));
    }
    return std::unexpected(*std::move(outcome.error));
  }
  return outcome.rows ? *std::move(outcome.rows) : Rows{};
}

}  // namespace thalweg::pg
