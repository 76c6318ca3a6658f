#include "apply/parked_execution.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apply/applier/conflict_resolver.h"
#include "apply/data_error.h"
#include "apply/parked_frames.h"
#include "apply/ranges.h"
#include "pg/text_array.h"

namespace thalweg::apply {

using base::ErrorCode;

namespace {

// Read ahead: no more than this of each, 16 MiB of a page of them. Less than a chunk, so that the first chunk of such a
// transaction is its only one.
constexpr size_t kSmallBytes = 64 * 1024;
constexpr uint64_t kSmallLcrs = 100;  // all of its statements go out before an answer comes

const std::string kReadSmall = fmt::format(
    "SELECT error_id, frames FROM thalweg.error_queue_chunk WHERE error_id = ANY ($1::bigint[]) AND chunk = 0 AND "
    "octet_length(frames) <= {}",
    kSmallBytes);
constexpr std::array kIdType{base::TypeId{20}};
const std::string kNote =
    "UPDATE thalweg.error_queue SET code = $1, message = $2, sqlstate = $3, failure = " + failure_of("$2", "$5") +
    " WHERE id = $4";

// The number of a change in its transaction as it came, from its number among the changes that are applied; 0 stays 0.
uint64_t number_as_it_came(uint64_t number, const ParkedEdits& edits) {
  for (const auto& [left_out, edit] : edits) {
    if (number > 0 && edit.left_out && left_out <= number) ++number;
  }
  return number;
}

}  // namespace

bool ParkedEntry::all_left_out() const {
  const auto left_out = std::ranges::count_if(edits, [](const auto& edit) { return edit.second.left_out; });
  return left_out > 0 && static_cast<uint64_t>(left_out) == transaction.lcrs;
}

ParkedExecution::ParkedExecution(DestinationSession& session, std::string_view role,
                                 std::span<const metadata::StatementHandler> handlers)
    : session_(session),
      role_(role),
      tables_(session.connection(), handlers),
      executor_(session, tables_, sets_, data_layer_calls_, merged_updates_, handlers),
      pool_(&bell_) {}

base::Result<void> ParkedExecution::begin(std::string_view stream_id) {
  drop_read();
  stream_id_ = stream_id;
  session_.leave_pipeline();
  return tables_.read_records(stream_id);
}

base::Result<void> ParkedExecution::read_ahead(std::span<ParkedEntry* const> entries) {
  drop_read();
  ahead_ = entries;
  session_.leave_pipeline();
  THALWEG_TRY(tables_.forget_changed());
  std::unordered_map<int64_t, ParkedEntry*> by_id;
  std::vector<std::string> ids;
  for (ParkedEntry* const entry : entries) {
    by_id[entry->id] = entry;
    ids.push_back(std::to_string(entry->id));
  }
  THALWEG_ASSIGN(const pg::Rows rows, session_.connection().query(kReadSmall, {pg::text_array(ids)}));
  Block* fill = nullptr;
  base::Result<void> taken;
  for (size_t row = 0; row < rows.size() && taken; ++row) {
    ParkedEntry& entry = *by_id.at(rows.integer(row, 0));
    uint64_t changes = 0;
    taken = visit_frames(bytes_from_hex(rows.text(row, 1)),
                         [&](const lcr::FrameView& frame) { return take_frame(frame, entry, changes, fill); });
    entry.is_read = taken.has_value();
  }
  if (fill != nullptr) pool_.drop(fill);
  return taken;
}

void ParkedExecution::drop_read() {
  for (ParkedEntry* const entry : ahead_) {
    entry->transaction.frames.clear();
    entry->is_read = false;
  }
  ahead_ = {};
}

base::Result<void> ParkedExecution::execute(ParkedEntry& entry) {
  auto executed = prepare(entry);
  if (executed) executed = run(entry);
  entry.transaction.frames.clear();  // its memory is our pool's
  entry.is_read = false;
  if (!executed && is_about_data(executed.error().code) && !session_.broken()) {
    THALWEG_TRY(note(entry.id, executed.error()));
  }
  return executed;
}

base::Result<void> ParkedExecution::dry_run(ParkedEntry& entry) {
  auto tried = prepare(entry);
  if (tried) tried = run_in_steps(entry, Ending::rollback);
  entry.transaction.frames.clear();  // its memory is our pool's
  entry.is_read = false;
  return tried;
}

base::Result<void> ParkedExecution::prepare(ParkedEntry& entry) {
  failure_ = {};
  settled_ = 0;
  if (!entry.is_read) THALWEG_TRY(read(entry));
  for (const auto& table : entry.transaction.tables.all()) {
    if (tables_.is_replaced(*table)) {
      return base::fail(ErrorCode::missing_table,
                        fmt::format("transaction {} has changes of a table that is gone: {} is another one now",
                                    entry.id, table->quoted_name));
    }
    if (!tables_.is_being_copied(*table)) continue;
    return base::fail(ErrorCode::database_busy,
                      fmt::format("{} is to be copied again: when it has been, transaction {} is gone from the error "
                                  "queue, or can be executed without its changes of that table",
                                  table->quoted_name, entry.id));
  }
  return find_tables(entry.transaction);
}

base::Result<void> ParkedExecution::run(const ParkedEntry& entry) {
  if (role_.empty()) {
    THALWEG_ASSIGN(const bool done, run_at_once(entry));
    if (done) return {};
  }
  // It says what is in the way, unless that was what was known of the tables.
  for (const auto& table : entry.transaction.tables.all()) tables_.forget(*table);
  THALWEG_TRY(find_tables(entry.transaction));
  return run_in_steps(entry, Ending::commit);
}

base::Result<void> ParkedExecution::find_tables(const Transaction& transaction) {
  for (const auto& table : transaction.tables.all()) {
    if (tables_.has(*table)) continue;
    session_.leave_pipeline();
    THALWEG_TRY(tables_.load(*table));
  }
  return {};
}

// A trigger may keep a row from being written, which the server does not call a failure.
bool ParkedExecution::goes_at_once(const Transaction& transaction) {
  return transaction.lcrs <= kSmallLcrs && std::ranges::all_of(transaction.tables.all(), [&](const auto& source) {
           const auto table = tables_.find(*source);
           return table && !(*table)->has_triggers;
         });
}

// Executes the transaction in one round trip; the sync commits it. False: it was refused, nothing of it stays.
base::Result<bool> ParkedExecution::run_at_once(const ParkedEntry& entry) {
  if (!goes_at_once(entry.transaction)) return false;
  auto sent = executor_.send_checked(entry.transaction);
  if (sent) sent = send_removal(entry);
  if (!sent && session_.broken()) return std::unexpected(sent.error());
  // The sync must not commit the rows that were sent of a transaction that cannot be sent whole.
  if (!sent) THALWEG_TRY(session_.run("SELECT 1 / 0"));
  auto refusal = session_.sync();
  executor_.reset();
  if (!refusal) return std::unexpected(refusal.error());
  return sent && !*refusal;
}

base::Result<Refusal> ParkedExecution::execute_rows(const ParkedEntry& entry) {
  const auto has_handlers = [&](const auto& source) {
    const auto table = tables_.find(*source);
    return table && !(*table)->error_statements.empty();
  };
  if (std::ranges::none_of(entry.transaction.tables.all(), has_handlers)) {
    return executor_.execute_rows(entry.transaction);
  }
  OtherRights rights;
  if (!role_.empty()) {
    rights.leave = [this]() -> base::Result<void> {
      THALWEG_ASSIGN(Refusal refusal, leave_role());
      if (refusal) return std::unexpected(std::move(refusal->error));
      return {};
    };
    rights.take = [this] { return take_role(); };
  }
  ConflictResolver resolver(session_, executor_, no_policies_, stream_id_, entry.transaction, std::move(rights));
  const auto settle = [&](const GroupExecutor::FailedRow& row) -> base::Result<Refusal> {
    THALWEG_ASSIGN(Refusal refusal, resolver.settle({.frame = row.frame,
                                                     .change = number_as_it_came(row.change, entry.edits),
                                                     .failure = row.failure}));
    // A role that may change the row but not look at it: the row's own error says more.
    const bool is_of_look = refusal && refusal->table == nullptr && !role_.empty() &&
                            refusal->error.code == ErrorCode::insufficient_privilege;
    return is_of_look ? Refusal(row.failure) : refusal;
  };
  auto executed = executor_.execute_rows(entry.transaction, settle);
  settled_ = resolver.settled();
  return executed;
}

base::Result<void> ParkedExecution::run_in_steps(const ParkedEntry& entry, Ending ending) {
  THALWEG_TRY(session_.run("BEGIN"));
  THALWEG_TRY(take_role());
  auto refusal = execute_rows(entry);
  failure_.change = number_as_it_came(executor_.failed_change(), entry.edits);
  if (refusal && !*refusal) refusal = take_role_back();
  if (refusal && !*refusal) {
    THALWEG_TRY(send_removal(entry));
    refusal = session_.sync();
    if (refusal && !*refusal) {
      // A commit checks what is deferred, a rollback does not.
      THALWEG_TRY(session_.run(ending == Ending::commit ? "COMMIT" : "SET CONSTRAINTS ALL IMMEDIATE"));
      refusal = session_.sync();
    }
  }
  executor_.reset();
  const bool went_through = refusal && !*refusal;
  if (went_through && ending == Ending::commit) return {};
  if (went_through) return roll_back();
  if (refusal && (*refusal)->own_row_missing) {
    refusal =
        base::fail(ErrorCode::unknown_error_transaction,
                   fmt::format("transaction {} is not in the error queue any more, or has a table that was renamed "
                               "meanwhile: look again",
                               entry.id));
  }
  if (refusal) {
    StatementFailure& failure = **refusal;
    failure_.named = failure.named;
    // The failure is this transaction's, not the engine's: another role may write the row.
    const bool is_of_change = failure.table != nullptr || failure.handler > 0;
    if (!role_.empty() && is_of_change && failure.error.code == ErrorCode::insufficient_privilege) {
      failure.error.code = ErrorCode::apply_failed;
    }
  }
  base::Error error = refusal ? final_error(**refusal, entry.transaction) : refusal.error();
  if (!role_.empty() && refusal && (*refusal)->missing_row) {
    error.message += fmt::format(" that {} may see", pg::quote_identifier(role_));
  }
  if (!session_.broken()) {
    if (!refusal) THALWEG_TRY(session_.sync());  // what may have been sent before
    THALWEG_TRY(roll_back());
  }
  return std::unexpected(std::move(error));
}

// Takes the role with its policies: an applier's session fails where one would apply.
base::Result<void> ParkedExecution::take_role() {
  if (role_.empty()) return {};
  THALWEG_TRY(session_.run("SET LOCAL row_security = on"));
  return session_.run("SET LOCAL ROLE " + pg::quote_identifier(role_));
}

// Deferred checks are the role's, too; the error queue is not. A trigger's function may have reset the role: then the
// rows after it were written as the session's own, and nothing of the transaction may stay.
base::Result<Refusal> ParkedExecution::take_role_back() {
  if (role_.empty()) return Refusal{};
  THALWEG_TRY(session_.run("SET CONSTRAINTS ALL IMMEDIATE"));
  return leave_role();
}

base::Result<Refusal> ParkedExecution::leave_role() {
  static constexpr std::array kRoleType{base::TypeId{19}};  // name
  const std::array parameters{pg::text_parameter(role_)};
  THALWEG_TRY(session_.run(session_.prepared("SELECT WHERE current_user = $1", kRoleType), parameters, {.rows = 1}));
  // Not LOCAL: nor does it stay if a function has set it for the session.
  THALWEG_TRY(session_.run("SET row_security = off"));
  THALWEG_TRY(session_.run("RESET ROLE"));
  THALWEG_ASSIGN(Refusal refusal, session_.sync());
  if (refusal && refusal->missing_row) {
    return base::fail(ErrorCode::apply_failed,
                      fmt::format("a function, of a trigger or in a statement handler, has reset or changed the "
                                  "role: what followed was not applied as {}, so all of it was rolled back",
                                  pg::quote_identifier(role_)));
  }
  return refusal;
}

base::Result<void> ParkedExecution::roll_back() {
  THALWEG_TRY(session_.run("ROLLBACK"));
  THALWEG_TRY(session_.sync());
  return {};
}

// Fails at the server where somebody else has taken it out: then its changes do not count twice. And where a rename was
// followed since it was read: then they went to whatever has the table's old name.
base::Result<void> ParkedExecution::send_removal(const ParkedEntry& entry) {
  static constexpr std::array kTypes{base::TypeId{20}, base::TypeId{25}};
  const std::string id_text = std::to_string(entry.id);
  const std::array parameters{pg::text_parameter(id_text), pg::text_parameter(entry.tables)};
  // The session's replica role keeps the foreign key's cascade from firing.
  THALWEG_TRY(session_.run(session_.prepared("DELETE FROM thalweg.error_queue_chunk WHERE error_id = $1", kIdType),
                           std::span(parameters).first(1), {.rows = 0, .any = true}));
  return session_.run(session_.prepared("WITH gone AS (DELETE FROM thalweg.error_queue WHERE id = $1 AND "
                                        "coalesce(tables, '{}')::text = $2 RETURNING id) "
                                        "SELECT 1 / count(*) FROM gone",
                                        kTypes),
                      parameters, {.rows = 1, .own_row = true});
}

// The queue tells why it waits now: it may have been parked behind one that is gone.
base::Result<void> ParkedExecution::note(int64_t id, const base::Error& why) {
  static constexpr std::array kTypes{base::TypeId{25}, base::TypeId{25}, base::TypeId{25}, base::TypeId{20},
                                     base::TypeId{25}};
  const std::string id_text = std::to_string(id);
  const std::string failure = failure_json(failure_, why);
  const std::array parameters{pg::text_parameter(base::name_of(why.code)), pg::text_parameter(why.message),
                              pg::text_parameter(why.sqlstate), pg::text_parameter(id_text),
                              pg::text_parameter(failure)};
  THALWEG_TRY(session_.run(session_.prepared(kNote, kTypes), parameters, {.rows = 0, .any = true}));
  THALWEG_TRY(session_.sync());
  return {};
}

base::Result<void> ParkedExecution::read(ParkedEntry& entry) {
  session_.leave_pipeline();
  Block* fill = nullptr;
  uint64_t changes = 0;
  auto loaded =
      visit_parked_frames(session_.connection(), entry.id, [&](const lcr::FrameView& frame) -> base::Result<bool> {
        THALWEG_TRY(take_frame(frame, entry, changes, fill));
        return true;
      });
  if (fill != nullptr) pool_.drop(fill);
  return loaded;
}

base::Result<void> ParkedExecution::take_frame(const lcr::FrameView& frame, ParkedEntry& entry, uint64_t& changes,
                                               Block*& fill) {
  Transaction& transaction = entry.transaction;
  if (frame.kind() == lcr::FrameKind::table) {
    THALWEG_ASSIGN(const auto source, tables_.described(frame));
    transaction.tables.add(source);
    return {};
  }
  if (lcr::is_change(frame.kind())) ++changes;
  const auto edit = lcr::is_change(frame.kind()) ? entry.edits.find(changes) : entry.edits.end();
  if (edit == entry.edits.end()) {
    transaction.frames.append(pool_, fill, frame.bytes());
    return {};
  }
  if (edit->second.left_out) return {};
  const auto* const source = transaction.tables.find(frame.relation(), frame.header().table_version);
  if (source == nullptr) return base::fail(ErrorCode::corrupt_frame, "a change came before its table's description");
  auto edited = edited_frame(frame, edit->second, source->description);
  if (!edited) {
    failure_.change = changes;
    return std::unexpected(std::move(edited).error());
  }
  transaction.frames.append(pool_, fill, *edited);
  return {};
}

}  // namespace thalweg::apply
