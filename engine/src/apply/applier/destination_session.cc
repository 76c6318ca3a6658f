#include "apply/applier/destination_session.h"

#include <utility>

#include <fmt/format.h>

namespace thalweg::apply {

namespace {

// replica: triggers and foreign keys of the source's transaction have had their say. Indexes: a set of keys has to be
// looked up key by key, never by reading the table; where a table has no index these settings only raise the price.
constexpr const char* kSettings =
    "SET session_replication_role = replica; SET synchronous_commit = off; SET enable_seqscan = off; "
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan; "
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET row_security = off; "
    "SET search_path = pg_catalog; "
    // A session that was given up, or whose engine died, is not to wait for a lock, and to hold others, for ever.
    // Servers on other systems refuse this.
    "SELECT pg_catalog.set_config('client_connection_check_interval', '2s', false) "
    "WHERE pg_catalog.version() LIKE '%linux%'";

constexpr std::string_view kDivisionByZero = "22012";

}  // namespace

DestinationSession::DestinationSession(pg::Connection connection) : connection_(std::move(connection)) {}

base::Result<DestinationSession> DestinationSession::open(const std::string& conninfo,
                                                          const pg::ConnectOptions& options) {
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, options));
  return adopt(std::move(connection));
}

base::Result<DestinationSession> DestinationSession::adopt(pg::Connection connection) {
  THALWEG_TRY(connection.script(kSettings));
  return DestinationSession(std::move(connection));
}

pg::Pipeline& DestinationSession::pipeline() {
  if (!pipeline_) pipeline_ = std::make_unique<pg::Pipeline>(connection_);
  return *pipeline_;
}

std::string DestinationSession::next_name() { return fmt::format("s{}", ++names_); }

DestinationSession::Prepared& DestinationSession::prepared(const metadata::TableMetadata& table, StatementKind kind,
                                                           const ColumnMask& came, bool checked) {
  const auto [generation, is_new] = generations_.try_emplace(table.source.relation, table.generation);
  if (!is_new && generation->second != table.generation) {
    outdated_.push_back(generation->second);
    std::erase(outdated_, table.generation);  // it may come back before the sync
    generation->second = table.generation;
  }
  auto& variants = statements_[StatementKey{.generation = table.generation, .kind = kind, .checked = checked}];
  for (auto& variant : variants) {
    if (variant.came == came) return *variant.prepared;
  }
  auto made = std::make_unique<Prepared>();
  made->statement = make_statement(table, kind, came, checked);
  variants.push_back({.came = came, .prepared = std::move(made)});
  return *variants.back().prepared;
}

DestinationSession::Prepared& DestinationSession::prepared(const std::string& sql,
                                                           std::span<const base::TypeId> types) {
  auto& slot = plain_[sql];
  if (!slot) {
    slot = std::make_unique<Prepared>();
    slot->statement.sql = sql;
    slot->statement.types.assign(types.begin(), types.end());
  }
  return *slot;
}

base::Result<void> DestinationSession::run(Prepared& prepared, std::span<const pg::Parameter> parameters,
                                           const Expectation& expectation) {
  for (const std::string& name : std::exchange(forgotten_, {})) {
    THALWEG_TRY(run("DEALLOCATE " + name));
  }
  if (!prepared.sent) {
    prepared.name = next_name();
    THALWEG_TRY(pipeline().prepare(prepared.name, prepared.statement.sql, prepared.statement.types));
    prepared.sent = true;
    prepared_since_sync_.push_back(&prepared);
    expectations_.push_back(
        {.any = true, .frame = expectation.frame, .table = expectation.table, .below_sql = expectation.below_sql});
  }
  THALWEG_TRY(pipeline().execute_prepared(prepared.name, parameters));
  expectations_.push_back(expectation);
  return {};
}

base::Result<void> DestinationSession::run(const std::string& sql) {
  THALWEG_TRY(pipeline().execute(sql));
  expectations_.push_back({.any = true});
  return {};
}

// The server may not have come to preparing them.
void DestinationSession::forget_unfinished() {
  for (Prepared* prepared : prepared_since_sync_) prepared->sent = false;
}

void DestinationSession::forget_outdated() {
  for (const uint64_t generation : std::exchange(outdated_, {})) {
    std::erase_if(statements_, [&](const auto& statement) {
      if (statement.first.generation != generation) return false;
      for (const Variant& variant : statement.second) {
        if (variant.prepared->sent) forgotten_.push_back(variant.prepared->name);
      }
      return true;
    });
  }
}

base::Result<std::optional<StatementFailure>> DestinationSession::sync() {
  auto synced = pipeline().sync();
  const std::vector<Expectation> expectations = std::exchange(expectations_, {});
  if (!synced || synced->error) forget_unfinished();
  prepared_since_sync_.clear();
  forget_outdated();
  if (!synced) return std::unexpected(std::move(synced).error());
  if (synced->error) {
    StatementFailure failure{.error = std::move(*synced->error)};
    if (synced->failed_statement < expectations.size()) {
      const Expectation& failed = expectations[synced->failed_statement];
      failure.frame = lcr::copy_of(failed.frame);
      failure.table = failed.table;
      failure.below_sql = failed.below_sql;
      failure.missing_row = failure.error.sqlstate == kDivisionByZero && failed.frame != nullptr;
    }
    return failure;
  }
  for (size_t i = 0; i < expectations.size() && i < synced->affected.size(); ++i) {
    const Expectation& expected = expectations[i];
    if (expected.any || synced->affected[i] == expected.rows) continue;
    StatementFailure failure{.error = base::fail(base::ErrorCode::apply_conflict,
                                                 fmt::format("a statement touched {} rows where {} were expected",
                                                             synced->affected[i], expected.rows))
                                          .error()};
    failure.missing_row = synced->affected[i] < expected.rows;
    failure.frame = lcr::copy_of(expected.frame);
    failure.table = expected.table;
    return failure;
  }
  return std::nullopt;
}

}  // namespace thalweg::apply
