#include "daemon/destination_errors.h"

#include <utility>

#include "apply/error_queue.h"
#include "apply/parked_contents.h"
#include "apply/parked_tree.h"
#include "daemon/operator_connection.h"
#include "daemon/row_security.h"
#include "daemon/statement_handlers.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

constexpr std::chrono::seconds kListPatience{10};    // twice what the control plane has
constexpr std::chrono::seconds kDryRunPatience{15};  // less than the control plane has

base::Result<void> check_applies_here(const control::Delivery& delivery) {
  if (!delivery.destination.send_to) return {};
  return base::fail(
      base::ErrorCode::unknown_error_transaction,
      "The stream's error queue is with the engine that applies: " + delivery.destination.send_to->engine);
}

std::string application_name(const control::Delivery& delivery) { return "thalweg error queue " + delivery.stream.id; }

base::Result<pg::Connection> connect(const control::Delivery& delivery, OperatorSession session) {
  THALWEG_TRY(check_applies_here(delivery));
  return open_for_operator(delivery.destination.conninfo, application_name(delivery), session);
}

}  // namespace

base::Result<control::ParkedListView> parked_errors(const control::Delivery& delivery,
                                                    const telemetry::ParkedPart& part,
                                                    const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(delivery, {.abandon = &abandon, .lifetime = kListPatience}));
  // One more than wanted: whether there are more.
  THALWEG_ASSIGN(
      std::vector<telemetry::ParkedTransaction> parked,
      apply::list_parked(
          connection, delivery.stream.id,
          {.after = part.after, .limit = part.limit + 1, .roots_only = part.roots_only, .cause = part.cause}));
  THALWEG_ASSIGN(const apply::ParkedCounts counts, apply::count_parked(connection, delivery.stream.id));
  THALWEG_ASSIGN(std::vector<telemetry::ParkedCause> causes, apply::parked_causes(connection, delivery.stream.id));
  control::ParkedListView list{.errors = std::move(parked),
                               .total = counts.total,
                               .roots = counts.roots,
                               .causes = std::move(causes),
                               .next_after = {},
                               .execution = {}};
  if (list.errors.size() > part.limit) {
    list.errors.pop_back();
    list.next_after = list.errors.back().id;
  }
  return list;
}

base::Result<telemetry::ParkedTree> parked_error_tree(const control::Delivery& delivery, int64_t error_id,
                                                      const telemetry::TreePart& part,
                                                      const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(delivery, {.abandon = &abandon, .lifetime = kListPatience}));
  return apply::read_parked_tree(connection, delivery.stream.id, error_id, part);
}

base::Result<control::ParkedContentsView> parked_error_contents(const control::Delivery& delivery, int64_t error_id,
                                                                const telemetry::ChangesPart& part,
                                                                const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection,
                 connect(delivery, {.abandon = &abandon, .answer_bytes_max = pg::kRowBytesMax}));
  THALWEG_ASSIGN(telemetry::ParkedTransaction parked, apply::find_parked(connection, delivery.stream.id, error_id));
  THALWEG_ASSIGN(telemetry::ParkedContents contents,
                 apply::read_parked(connection, delivery.stream.id, error_id, apply::kContentsPatience, part));
  return control::ParkedContentsView{.error = std::move(parked), .contents = std::move(contents)};
}

base::Result<void> execute_parked_error(const control::Delivery& delivery, const telemetry::ParkedChoice& choice,
                                        const apply::ExecutionWatch& watch) {
  THALWEG_TRY(check_applies_here(delivery));
  pg::ConnectOptions options;
  options.application_name = application_name(delivery);
  options.abandon = watch.abandon;
  options.answer_bytes_max = pg::kRowBytesMax;
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(delivery.destination.conninfo, options));
  auto executed =
      apply::execute_parked(std::move(connection), delivery.stream.id, choice, watch, statement_handlers(delivery));
  if (executed) return executed;
  return std::unexpected(with_row_security(std::move(executed).error(), delivery, watch.abandon));
}

base::Result<control::DryRunView> dry_run_parked_error(const control::Delivery& delivery, int64_t error_id,
                                                       const std::string& role, const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(
      pg::Connection connection,
      connect(delivery, {.abandon = &abandon, .lifetime = kDryRunPatience, .answer_bytes_max = pg::kRowBytesMax}));
  auto tried =
      apply::dry_run_parked(std::move(connection), delivery.stream.id, error_id, role, statement_handlers(delivery));
  if (!tried) return std::unexpected(with_row_security(std::move(tried).error(), delivery, &abandon));
  if (tried->error) tried->error = with_row_security(std::move(*tried->error), delivery, &abandon);
  return control::DryRunView{.error = std::move(tried->error),
                             .changes = tried->changes,
                             .edited = tried->edited,
                             .left_out = tried->left_out,
                             .settled = tried->settled,
                             .failed_change = tried->failed_change};
}

base::Result<void> edit_parked_error(const control::Delivery& delivery, int64_t error_id, uint64_t change,
                                     const std::optional<telemetry::ParkedEdit>& edit, const std::string& version,
                                     const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection,
                 connect(delivery, {.abandon = &abandon, .answer_bytes_max = pg::kRowBytesMax}));
  return apply::edit_parked(connection, delivery.stream.id, error_id, change, edit, version);
}

base::Result<void> remove_parked_error(const control::Delivery& delivery, int64_t error_id,
                                       const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(delivery, {.abandon = &abandon}));
  return apply::remove_parked(connection, delivery.stream.id, error_id);
}

}  // namespace thalweg::daemon
