#include "apply/applier/destination_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "apply/row_errors.h"
#include "metadata/destination_version.h"

namespace thalweg::apply {

namespace {

// replica: triggers and foreign keys of the source's transaction have had their say. Indexes: a set of keys has to be
// looked up key by key, never by reading the table; where a table has no index these settings only raise the price.
constexpr const char* kSettings =
    "SET session_replication_role = replica; SET synchronous_commit = off; SET enable_seqscan = off; "
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; "
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET row_security = off; "
    "SET search_path = pg_catalog; "
    // A session that was given up, or whose engine died, is not to wait for a lock, and to hold others, for ever.
    // Servers on other systems refuse this.
    "SELECT pg_catalog.set_config('client_connection_check_interval', '2s', false) "
    "WHERE pg_catalog.version() LIKE '%linux%'";

constexpr std::string_view kDivisionByZero = "22012";

}  // namespace

DestinationSession::DestinationSession(pg::Connection connection) : connection_(std::move(connection)) {}

base::Result<DestinationSession> DestinationSession::open(const base::Conninfo& conninfo,
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

std::vector<DestinationSession::Variant>& DestinationSession::variants_of(const metadata::TableMetadata& table,
                                                                          StatementKey key) {
  const auto [generation, is_new] = generations_.try_emplace(table.source.relation, table.generation);
  if (!is_new && generation->second != table.generation) {
    outdated_.push_back(generation->second);
    std::erase(outdated_, table.generation);  // it may come back before the sync
    generation->second = table.generation;
  }
  return statements_[key];
}

DestinationSession::Prepared& DestinationSession::prepared(const metadata::TableMetadata& table, StatementKind kind,
                                                           const ColumnMask& came, const ColumnMask* compared,
                                                           bool checked) {
  const bool compares = compared != nullptr;
  auto& variants =
      variants_of(table, {.generation = table.generation, .kind = kind, .checked = checked, .compares = compares});
  for (auto& variant : variants) {
    if (variant.came == came && (!compares || variant.compared == *compared)) return *variant.prepared;
  }
  const ColumnMask to_compare = compares ? *compared : ColumnMask{};
  auto made = std::make_unique<Prepared>();
  made->statement = make_statement(table, kind, came, to_compare, checked);
  variants.push_back({.came = came, .compared = to_compare, .prepared = std::move(made)});
  return *variants.back().prepared;
}

DestinationSession::Prepared& DestinationSession::prepared(const metadata::TableMetadata& table,
                                                           const metadata::HandlerStatement& handler) {
  auto& variants = variants_of(table, {.generation = table.generation,
                                       .kind = StatementKind::handler,
                                       .checked = false,
                                       .compares = false,
                                       .handler = handler.number});
  if (variants.empty()) {
    auto made = std::make_unique<Prepared>();
    made->statement.sql = handler.sql;
    made->statement.types = handler.types;
    variants.push_back({.came = {}, .compared = {}, .prepared = std::move(made)});
  }
  return *variants.front().prepared;
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
    open_.prepared.push_back(&prepared);
    open_.expectations.push_back({.any = true,
                                  .frame = expectation.frame,
                                  .table = expectation.table,
                                  .below_sql = expectation.below_sql,
                                  .handler = expectation.handler});
  }
  THALWEG_TRY(pipeline().execute_prepared(prepared.name, parameters));
  open_.expectations.push_back(expectation);
  open_.expectations.back().is_checked = prepared.statement.is_checked;
  if (expectation.handler > 0) open_.expectations.back().prepared = &prepared;
  return {};
}

base::Result<void> DestinationSession::run(const std::string& sql) {
  THALWEG_TRY(pipeline().execute(sql));
  open_.expectations.push_back({.any = true});
  return {};
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

base::Result<Refusal> DestinationSession::sync() {
  THALWEG_TRY(send_sync());
  return await_answer();
}

base::Result<void> DestinationSession::send_sync() {
  awaited_.push_back(std::exchange(open_, {}));
  auto sent = pipeline().send_sync();
  if (!sent) awaited_.pop_back();
  return sent;
}

base::Result<std::optional<Refusal>> DestinationSession::answer() {
  auto outcome = pipeline().outcome();
  if (outcome && !*outcome) return std::nullopt;
  THALWEG_ASSIGN(Refusal refusal, take(outcome ? base::Result<pg::Pipeline::Outcome>(std::move(**outcome))
                                               : std::unexpected(std::move(outcome).error())));
  return refusal;
}

base::Result<Refusal> DestinationSession::await_answer() { return take(pipeline().await_outcome()); }

bool DestinationSession::prepares() const {
  return std::ranges::any_of(awaited_, [](const Batch& batch) { return !batch.prepared.empty(); });
}

pollfd DestinationSession::polled() const {
  return pipeline_ ? pipeline_->polled() : pollfd{.fd = -1, .events = 0, .revents = 0};
}

// The plan of a handler's statement stays as its tables and functions were: nobody else compares them.
void DestinationSession::forget_outdated_handler(const Batch& batch, const pg::Pipeline::Outcome& outcome) {
  if (outcome.failed_statement >= batch.expectations.size()) return;
  Prepared* const prepared = batch.expectations[outcome.failed_statement].prepared;
  if (prepared == nullptr || !prepared->sent || !metadata::is_schema_change(outcome.error->sqlstate)) return;
  forgotten_.push_back(prepared->name);
  prepared->sent = false;
}

base::Result<Refusal> DestinationSession::take(base::Result<pg::Pipeline::Outcome> outcome) {
  if (!outcome) {  // the connection is lost, with all that was prepared
    awaited_.clear();
    return std::unexpected(std::move(outcome).error());
  }
  const Batch batch = std::move(awaited_.front());
  awaited_.pop_front();
  // The server may not have come to preparing them.
  if (outcome->error) {
    for (Prepared* const prepared : batch.prepared) prepared->sent = false;
    forget_outdated_handler(batch, *outcome);
  }
  if (awaited_.empty() && open_.prepared.empty()) forget_outdated();
  if (outcome->error) {
    StatementFailure failure{.error = std::move(*outcome->error),
                             .named = std::move(outcome->named),
                             .statement = outcome->failed_statement};
    if (outcome->failed_statement < batch.expectations.size()) {
      const Expectation& failed = batch.expectations[outcome->failed_statement];
      failure.frame = lcr::copy_of(failed.frame);
      failure.table = failed.table;
      failure.below_sql = failed.below_sql;
      failure.handler = failed.handler;
      failure.own_row_missing = failure.error.sqlstate == kDivisionByZero && failed.own_row;
      failure.missing_row = failure.error.sqlstate == kDivisionByZero && failed.is_checked && failed.frame != nullptr;
    }
    return failure;
  }
  for (size_t i = 0; i < batch.expectations.size() && i < outcome->affected.size(); ++i) {
    const Expectation& expected = batch.expectations[i];
    if (expected.any || outcome->affected[i] == expected.rows) continue;
    const bool is_of_row = expected.frame != nullptr && expected.rows == 1 && outcome->affected[i] > 1;
    const std::string why = is_of_row ? std::string(kSeveralRows)
                                      : fmt::format("a statement touched {} rows where {} were expected",
                                                    outcome->affected[i], expected.rows);
    StatementFailure failure{.error = base::fail(base::ErrorCode::apply_conflict, why).error()};
    failure.statement = i;
    failure.missing_row = outcome->affected[i] < expected.rows;
    failure.frame = lcr::copy_of(expected.frame);
    failure.table = expected.table;
    return failure;
  }
  return std::nullopt;
}

}  // namespace thalweg::apply
