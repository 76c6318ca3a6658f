#include "apply/applier/group_executor.h"

#include "apply/applier/truncation_note.h"

#include <fmt/format.h>

#include <algorithm>

#include "apply/applier/old_values.h"
#include "apply/applier/tuple_values.h"
#include "apply/data_error.h"
#include "apply/transaction_frames.h"

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;
using lcr::FrameView;
using metadata::HandlerTime;
using metadata::TableMetadata;

namespace {

constexpr size_t kStatementsPerSyncMax = 500;  // so that a failure is noticed early in a large transaction
constexpr size_t kBatchesKept = 256;           // empty, with their memory
constexpr size_t kBatchRowsMax = 20'000;       // rows merged at a time, whatever the group's size
const std::string kSavepoint = "SAVEPOINT thalweg_rows";
const std::string kRelease = "RELEASE SAVEPOINT thalweg_rows";
const std::string kRollBackToSavepoint = "ROLLBACK TO SAVEPOINT thalweg_rows";

bool is_row(FrameKind kind) {
  return kind == FrameKind::insert || kind == FrameKind::update || kind == FrameKind::remove;
}

bool may_be_copied(const TableMetadata& table, const Transaction& transaction) {
  return transaction.commit_lsn < table.copied_to;
}

StatementFailure order_conflict(const TableMetadata& table, const std::byte* frame) {
  return {.error = base::fail(ErrorCode::apply_conflict, "changes of one row do not follow from each other").error(),
          .missing_row = false,
          .frame = lcr::copy_of(frame),
          .table = &table};
}

// The changes behind the statements of a sync: a change may be none, one or several.
class SentChanges {
 public:
  // `begun`: statements that were sent since the sync before the first change.
  explicit SentChanges(size_t begun) : begun_(begun) {}
  // The next change; `statements`: sent since the sync, with its own.
  void add(size_t statements) {
    ++count_;
    if (statements == (ends_.empty() ? begun_ : ends_.back().statements)) return;
    ends_.push_back({.statements = statements, .change = count_});
  }
  void synced() {
    ends_.clear();
    begun_ = 0;
  }
  uint64_t count() const { return count_; }
  // 0: the statement is none of a change.
  uint64_t change_of(size_t statement) const {
    const auto found = std::ranges::upper_bound(ends_, statement, {}, &End::statements);
    return found == ends_.end() || statement < begun_ ? 0 : found->change;
  }

 private:
  struct End {
    size_t statements;
    uint64_t change;
  };
  std::vector<End> ends_;
  size_t begun_;
  uint64_t count_ = 0;
};

}  // namespace

// The initial copy has it.
bool GroupExecutor::is_copied(const TableMetadata& table, const Transaction& transaction) {
  const bool is_there = transaction.commit_lsn < table.copied_from;
  reaches_ = reaches_ || !is_there;
  return is_there;
}

base::Result<const TableMetadata*> GroupExecutor::table_of(const Transaction& transaction, const FrameView& frame) {
  const auto& header = frame.header();
  if (last_table_ != nullptr && last_table_->source.relation == frame.relation() &&
      last_table_->source.version == header.table_version) {
    return last_table_;
  }
  const auto* const source = transaction.tables.find(frame.relation(), header.table_version);
  if (source == nullptr) {
    return base::fail(ErrorCode::corrupt_frame,
                      fmt::format("a row of relation {} came before its description", header.relation));
  }
  THALWEG_ASSIGN(last_table_, tables_.find(*source));
  last_batch_ = nullptr;
  return last_table_;
}

void GroupExecutor::count(const TableMetadata& table, const Transaction& transaction, FrameKind kind) {
  if (last_counted_ != &table) {
    last_counted_ = &table;
    last_counts_ = &counts_[&table];
  }
  last_counts_->newest = std::max(last_counts_->newest, transaction.commit_time);
  switch (kind) {
    case FrameKind::insert:
      ++last_counts_->inserts;
      break;
    case FrameKind::update:
      ++last_counts_->updates;
      break;
    case FrameKind::remove:
      ++last_counts_->deletes;
      break;
    default:
      ++last_counts_->truncates;
      break;
  }
}

base::Result<void> GroupExecutor::send_truncate(const Transaction& transaction, const FrameView& frame) {
  std::string names;
  for (const base::RelationId relation : frame.truncated_relations()) {
    const auto* const source = transaction.tables.latest(relation);
    if (source == nullptr) {
      return base::fail(ErrorCode::corrupt_frame,
                        fmt::format("TRUNCATE of relation {} came before its description", relation.value));
    }
    THALWEG_ASSIGN(const TableMetadata* const table, tables_.find(*source));
    if (is_copied(*table, transaction)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", table->own_rows());
    count(*table, transaction, FrameKind::truncate);
    if (table->is_partitioned && !source->recorded_by.empty()) {
      const base::Xid xid = frame.subxid() ? frame.subxid() : transaction.xid;
      THALWEG_TRY(session_.run(truncation_note(*source, xid, transaction.commit_lsn)));
    }
  }
  if (names.empty()) return {};
  // Without CASCADE: the source names every table that its own CASCADE reached; what else hangs on them here stays.
  return session_.run(fmt::format("TRUNCATE {}{}", names, frame.has(lcr::kRestartIdentity) ? " RESTART IDENTITY" : ""));
}

// The copy may or may not have the change, and later ones. A row that is not there was deleted later, within the span;
// a row that is there already is overwritten, and the changes that follow bring it to the copy's state.
base::Result<void> GroupExecutor::send_idempotent(const TableMetadata& table, const FrameView& frame) {
  const std::byte* const bytes = frame.bytes().data();
  const ChangeWriter::RowOptions any{.checked = false, .any_count = true};
  if (frame.kind() == FrameKind::insert) {
    THALWEG_ASSIGN(const Values values, read_values(frame.new_tuple(), table, arena_));
    return writer_.upsert(table, values, bytes);
  }
  if (frame.kind() == FrameKind::remove) {
    THALWEG_ASSIGN(const Values key, read_values(frame.old_tuple(), table, arena_));
    return writer_.remove(table, key, bytes, any);
  }
  THALWEG_ASSIGN(const UpdateValues update, read_update(table, frame, arena_));
  bool all_came = true;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    all_came = all_came && update.now[column].mark != lcr::ValueMark::unchanged;
  }
  if (table.keyless()) return writer_.update(table, update.now, update.key, bytes, any);
  const bool same_key = same_identity(table, update.now, update.key);
  if (all_came) {
    if (!same_key) THALWEG_TRY(writer_.remove(table, update.key, bytes, any));
    return writer_.upsert(table, update.now, bytes);
  }
  if (same_key) return writer_.update(table, update.now, update.key, bytes, any);
  // The new key is there, from the copy: change that row, and the old one goes. Or it is not: the old one moves.
  THALWEG_TRY(writer_.update(table, update.now, update.now, bytes, any));
  THALWEG_TRY(writer_.remove_if_moved(table, update.now, update.key, bytes));
  return writer_.update(table, update.now, update.key, bytes, any);
}

base::Result<void> GroupExecutor::send_row(const Transaction& transaction, const FrameView& frame, bool checked) {
  if (frame.kind() == FrameKind::truncate) return send_truncate(transaction, frame);
  if (!is_row(frame.kind())) return {};
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  if (is_copied(*table, transaction)) return {};
  count(*table, transaction, frame.kind());
  if (table->statements.empty()) return send_write(transaction, *table, frame, checked);
  THALWEG_ASSIGN(const bool is_replaced, handlers_.send(transaction, *table, frame, HandlerTime::instead, arena_));
  if (!is_replaced) THALWEG_TRY(send_write(transaction, *table, frame, checked));
  THALWEG_TRY(handlers_.send(transaction, *table, frame, HandlerTime::after, arena_));
  return {};
}

base::Result<void> GroupExecutor::send_write(const Transaction& transaction, const TableMetadata& table,
                                             const FrameView& frame, bool checked) {
  if (may_be_copied(table, transaction)) return send_idempotent(table, frame);
  const std::byte* const bytes = frame.bytes().data();
  ChangeWriter::RowOptions options{.checked = checked, .any_count = false};
  if (frame.kind() == FrameKind::insert) {
    THALWEG_ASSIGN(const Values values, read_values(frame.new_tuple(), table, arena_));
    return writer_.insert(table, values, bytes);
  }
  if (frame.kind() == FrameKind::update) {
    THALWEG_ASSIGN(const UpdateValues update, read_update(table, frame, arena_));
    options.old = old_values(table, frame, update.key, arena_);
    return writer_.update(table, update.now, update.key, bytes, options);
  }
  THALWEG_ASSIGN(const Values key, read_values(frame.old_tuple(), table, arena_));
  options.old = old_values(table, frame, key, arena_);
  return writer_.remove(table, key, bytes, options);
}

base::Result<bool> GroupExecutor::send_below_sql(const Transaction& transaction, const FrameView& frame) {
  if (!uses_data_layer_) return false;
  if (frame.kind() == FrameKind::truncate) {
    THALWEG_TRY(flush_below_sql());
    return false;
  }
  if (!is_row(frame.kind())) return true;
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  if (is_copied(*table, transaction)) return true;
  if (!may_be_copied(*table, transaction) && DataLayer::takes(*table, frame.kind()) &&
      !DataLayer::is_too_large(frame)) {
    count(*table, transaction, frame.kind());
    THALWEG_TRY(add_below_sql(merger_.take(*table, frame)));
    return true;
  }
  // A trigger or a statement sees what was written before.
  const bool looks_on = table->has_triggers || !table->statements.empty();
  if (looks_on || merger_.holds(*table) || data_layer_.holds(*table)) THALWEG_TRY(flush_below_sql());
  return false;
}

base::Result<void> GroupExecutor::add_below_sql(std::span<const PendingFrame> frames) {
  for (const auto& [table, frame] : frames) THALWEG_TRY(data_layer_.add(*table, frame));
  return {};
}

base::Result<void> GroupExecutor::flush_below_sql() {
  THALWEG_TRY(add_below_sql(merger_.release()));
  return data_layer_.flush();
}

base::Result<void> GroupExecutor::send_rows_checked(const Transaction& transaction) {
  reaches_ = false;
  TransactionFrames frames(transaction);
  THALWEG_TRY(frames.for_each(
      [&](const FrameView& frame) -> base::Result<void> {
        THALWEG_ASSIGN(const bool sent, send_below_sql(transaction, frame));
        return sent ? base::Result<void>{} : send_row(transaction, frame, true);
      },
      []() -> base::Result<void> { return {}; }));
  if (!has_precommit()) return {};
  THALWEG_TRY(flush_below_sql());
  return handlers_.send_precommit(transaction);
}

base::Result<void> GroupExecutor::send_checked(const Group& group, const std::optional<PendingFrame>& progress) {
  for (const auto& transaction : group.transactions) THALWEG_TRY(send_rows_checked(*transaction));
  if (progress) THALWEG_TRY(data_layer_.add(*progress->table, progress->frame));
  return flush_below_sql();
}

base::Result<void> GroupExecutor::send_checked(const Transaction& transaction) {
  THALWEG_TRY(send_rows_checked(transaction));
  return flush_below_sql();
}

base::Result<Refusal> GroupExecutor::execute_rows(const Transaction& transaction) {
  Refusal refusal;
  SentChanges sent(session_.unsynced());
  failed_change_ = 0;
  reaches_ = false;
  // Stops the walk; the refusal tells the rest.
  const auto stop = []() { return base::fail(ErrorCode::apply_failed, {}); };
  const auto sync = [&]() -> base::Result<void> {
    THALWEG_ASSIGN(refusal, session_.sync());
    arena_.reset();
    if (refusal) failed_change_ = sent.change_of(refusal->statement);
    sent.synced();
    return {};
  };
  const auto check = [&]() -> base::Result<void> {
    THALWEG_TRY(sync());
    return refusal ? stop() : base::Result<void>{};
  };
  TransactionFrames frames(transaction);
  const auto walked = frames.for_each(
      [&](const FrameView& frame) -> base::Result<void> {
        if (session_.unsynced() >= kStatementsPerSyncMax) THALWEG_TRY(check());
        if (!lcr::is_change(frame.kind())) return {};
        auto done = send_row(transaction, frame, false);
        sent.add(session_.unsynced());
        if (!done) failed_change_ = sent.count();
        return done;
      },
      check);
  if (refusal) return refusal;
  if (!walked) return std::unexpected(walked.error());
  if (has_precommit()) THALWEG_TRY(handlers_.send_precommit(transaction));
  THALWEG_TRY(sync());
  return refusal;
}

base::Result<Refusal> GroupExecutor::execute_rows(const Transaction& transaction, const SettleRow& settle_row) {
  std::vector<NumberedFrame> rows;
  uint64_t change = 0;
  Refusal refusal;
  failed_change_ = 0;
  reaches_ = false;
  const auto execute = [&]() -> base::Result<void> {
    THALWEG_ASSIGN(refusal, execute_settling(transaction, rows, settle_row));
    rows.clear();
    arena_.reset();
    if (refusal) return base::fail(ErrorCode::apply_failed, {});  // stops the walk
    return {};
  };
  TransactionFrames frames(transaction);
  const auto walked = frames.for_each(
      [&](const FrameView& frame) -> base::Result<void> {
        if (!lcr::is_change(frame.kind())) return {};
        rows.push_back({.frame = frame, .change = ++change});
        return rows.size() >= kStatementsPerSyncMax ? execute() : base::Result<void>{};
      },
      execute);
  if (refusal) return refusal;
  if (!walked) return std::unexpected(walked.error());
  THALWEG_ASSIGN(refusal, execute_settling(transaction, rows, settle_row));
  if (refusal || !has_precommit()) return refusal;
  THALWEG_TRY(handlers_.send_precommit(transaction));
  return session_.sync();
}

// Rows that fail are found by halves: a transaction of n rows sends n log n statements at most, however many fail.
base::Result<Refusal> GroupExecutor::execute_settling(const Transaction& transaction,
                                                      std::span<const NumberedFrame> rows,
                                                      const SettleRow& settle_row) {
  if (rows.empty()) return Refusal{};
  const auto counts = counts_;
  THALWEG_TRY(set_savepoint());
  for (const NumberedFrame& row : rows) {
    failed_change_ = row.change;
    THALWEG_TRY(send_row(transaction, row.frame, false));
  }
  failed_change_ = 0;
  THALWEG_ASSIGN(Refusal refusal, session_.sync());
  if (!refusal) {
    THALWEG_TRY(session_.run(kRelease));
    return refusal;
  }
  counts_ = counts;
  last_counted_ = nullptr;
  THALWEG_ASSIGN(const Refusal lost, forget_savepoint());
  if (lost) return lost;
  if (rows.size() == 1) {
    THALWEG_ASSIGN(const Refusal unsettled,
                   settle_row({.frame = rows.front().frame, .change = rows.front().change, .failure = *refusal}));
    if (unsettled) failed_change_ = rows.front().change;
    return unsettled;
  }
  const size_t half = rows.size() / 2;
  THALWEG_ASSIGN(refusal, execute_settling(transaction, rows.first(half), settle_row));
  if (refusal) return refusal;
  return execute_settling(transaction, rows.subspan(half), settle_row);
}

base::Result<void> GroupExecutor::set_savepoint() { return session_.run(kSavepoint); }

base::Result<Refusal> GroupExecutor::keep_savepoint() {
  THALWEG_TRY(session_.run(kRelease));
  return session_.sync();
}

base::Result<Refusal> GroupExecutor::forget_savepoint() {
  THALWEG_TRY(session_.run(kRollBackToSavepoint));
  return keep_savepoint();
}

base::Result<Refusal> GroupExecutor::repeat_row(const Transaction& transaction, const FrameView& frame) {
  const auto counts = counts_;
  THALWEG_TRY(set_savepoint());
  THALWEG_TRY(send_row(transaction, frame, false));
  THALWEG_ASSIGN(Refusal refusal, session_.sync());
  if (!refusal) return keep_savepoint();
  counts_ = counts;
  last_counted_ = nullptr;
  THALWEG_ASSIGN(Refusal lost, forget_savepoint());
  return lost ? lost : refusal;
}

base::Result<Refusal> GroupExecutor::follow_row(const Transaction& transaction, const FrameView& frame) {
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  count(*table, transaction, frame.kind());
  THALWEG_ASSIGN(const bool any, handlers_.send(transaction, *table, frame, HandlerTime::after, arena_));
  return any ? session_.sync() : base::Result<Refusal>(Refusal{});
}

Compactor& GroupExecutor::batch_for(const TableMetadata& table) {
  if (last_batch_ != nullptr && &last_batch_->table() == &table) return *last_batch_;
  auto& batch = batches_[table.generation];
  if (!batch) batch = std::make_unique<Compactor>(table);
  if (batch->size() == 0 && std::ranges::find(used_, batch.get()) == used_.end()) used_.push_back(batch.get());
  last_batch_ = batch.get();
  return *batch;
}

base::Result<Refusal> GroupExecutor::flush(Compactor& batch) {
  if (batch.size() == 0) return Refusal{};
  THALWEG_ASSIGN(const bool copies, writer_.write(batch));
  if (copies) {
    THALWEG_ASSIGN(Refusal refusal, session_.sync());
    if (!refusal) {
      THALWEG_ASSIGN(refusal, writer_.copy_inserts(batch));
    }
    if (refusal) return refusal;
  }
  batch.clear();
  return Refusal{};
}

base::Result<Refusal> GroupExecutor::flush_batches() {
  THALWEG_TRY(flush_below_sql());
  std::vector<Compactor*> copying;
  for (Compactor* batch : used_) {
    if (batch->size() == 0) continue;
    THALWEG_ASSIGN(const bool copies, writer_.write(*batch));
    if (copies) copying.push_back(batch);
  }
  THALWEG_ASSIGN(Refusal refusal, session_.sync());
  for (Compactor* batch : copying) {
    if (refusal) break;
    THALWEG_ASSIGN(refusal, writer_.copy_inserts(*batch));
  }
  for (Compactor* batch : used_) batch->clear();
  used_.clear();
  last_batch_ = nullptr;
  return refusal;
}

base::Result<Refusal> GroupExecutor::flush_waiting() {
  if (std::ranges::any_of(used_, [](const Compactor* batch) { return batch->size() > 0; })) return flush_batches();
  THALWEG_TRY(flush_below_sql());
  return Refusal{};
}

base::Result<Refusal> GroupExecutor::add_to_batch(const Transaction& transaction, const FrameView& frame) {
  THALWEG_ASSIGN(const bool sent, send_below_sql(transaction, frame));
  if (sent) return Refusal{};
  if (frame.kind() == FrameKind::truncate) {
    THALWEG_ASSIGN(Refusal refusal, flush_batches());
    if (!refusal) THALWEG_TRY(send_truncate(transaction, frame));
    return refusal;
  }
  if (!is_row(frame.kind())) return Refusal{};
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  if (is_copied(*table, transaction)) return Refusal{};
  if (!table->statements.empty()) {
    THALWEG_ASSIGN(const Refusal refusal, flush_waiting());
    if (!refusal) THALWEG_TRY(send_row(transaction, frame, false));
    return refusal;
  }
  if (may_be_copied(*table, transaction)) {
    THALWEG_ASSIGN(const Refusal refusal, flush(batch_for(*table)));
    if (refusal) return refusal;
    THALWEG_TRY(send_row(transaction, frame, false));
    return Refusal{};
  }
  if (uses_data_layer_ && DataLayer::takes(*table, frame.kind())) {
    // Too large: now, because the table's next row may go below SQL again.
    THALWEG_TRY(send_row(transaction, frame, false));
    return Refusal{};
  }
  const std::byte* const bytes = frame.bytes().data();
  Compactor& batch = batch_for(*table);
  if (frame.kind() == FrameKind::insert) {
    count(*table, transaction, frame.kind());
    THALWEG_ASSIGN(const Values values, read_values(frame.new_tuple(), *table, arena_));
    if (!batch.insert(values, bytes)) return order_conflict(*table, bytes);
    return Refusal{};
  }
  if (!table->keyless()) {
    if (frame.kind() == FrameKind::remove) {
      count(*table, transaction, frame.kind());
      THALWEG_ASSIGN(const Values key, read_values(frame.old_tuple(), *table, arena_));
      const lcr::Value* const old = old_values(*table, frame, key, arena_);
      if (!batch.remove(key, old, bytes)) return order_conflict(*table, bytes);
      return Refusal{};
    }
    THALWEG_ASSIGN(const UpdateValues update, read_update(*table, frame, arena_));
    if (update.key == update.now || same_identity(*table, update.now, update.key)) {
      count(*table, transaction, frame.kind());
      const lcr::Value* const old = old_values(*table, frame, update.key, arena_);
      if (!batch.update(update.now, old, bytes)) return order_conflict(*table, bytes);
      return Refusal{};
    }
  }
  // A key changes, or the table has none: what is pending goes first, then this row by itself.
  THALWEG_ASSIGN(const Refusal refusal, flush(batch));
  if (refusal) return refusal;
  THALWEG_TRY(send_row(transaction, frame, false));
  return Refusal{};
}

base::Result<Turn> GroupExecutor::turn_of(const Transaction& transaction, const FrameView& frame) {
  if (!is_row(frame.kind())) return Turn::after;
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  if (may_be_copied(*table, transaction) || !table->statements.empty()) return Turn::after;
  return turns_.of(transaction, *table, frame);
}

base::Result<Refusal> GroupExecutor::execute_together(const Group& group, const Settle& settle) {
  Refusal refusal;
  size_t rows = 0;
  std::vector<std::pair<const Transaction*, FrameView>> later;
  bool settled = !settle;
  if (!settled) turns_.begin(group.contested);
  const auto stop = []() { return base::fail(ErrorCode::apply_failed, {}); };
  const auto flush_all = [&]() -> base::Result<void> {
    THALWEG_ASSIGN(refusal, flush_batches());
    arena_.reset();
    rows = 0;
    if (refusal) return stop();
    return {};
  };
  const auto add = [&](const Transaction& transaction, const FrameView& frame) -> base::Result<void> {
    THALWEG_ASSIGN(refusal, add_to_batch(transaction, frame));
    if (refusal) return stop();
    if (++rows >= kBatchRowsMax) return flush_all();
    return {};
  };
  const auto settle_now = [&]() -> base::Result<void> {
    settled = true;
    THALWEG_TRY(flush_all());
    THALWEG_TRY(settle());
    for (const auto& [transaction, frame] : later) THALWEG_TRY(add(*transaction, frame));
    return {};
  };
  const auto end = [&](const Transaction& transaction) -> base::Result<void> {
    if (handlers_.any_precommit() && !settled) THALWEG_TRY(settle_now());
    if (!has_precommit()) return {};
    THALWEG_ASSIGN(refusal, flush_waiting());
    if (refusal) return stop();
    return handlers_.send_precommit(transaction);
  };
  for (const auto& transaction : group.transactions) {
    reaches_ = false;
    TransactionFrames frames(*transaction);
    auto walked = frames.for_each(
        [&](const FrameView& frame) -> base::Result<void> {
          if (settled) return add(*transaction, frame);
          THALWEG_ASSIGN(const Turn turn, turn_of(*transaction, frame));
          if (turn == Turn::later) {
            later.emplace_back(transaction.get(), frame);
            return {};
          }
          if (turn == Turn::after) THALWEG_TRY(settle_now());
          return add(*transaction, frame);
        },
        flush_all);
    if (walked) walked = end(*transaction);
    if (refusal) return refusal;
    if (!walked) return std::unexpected(walked.error());
  }
  if (!settled) {
    const auto done = settle_now();
    if (refusal) return refusal;
    if (!done) return std::unexpected(done.error());
  }
  return flush_batches();
}

void GroupExecutor::reset() {
  merger_.clear();
  data_layer_.clear();
  for (Compactor* batch : used_) batch->clear();
  // Batches of metadata that is gone are never found again: their generation does not come back.
  if (batches_.size() > kBatchesKept) batches_.clear();
  used_.clear();
  counts_.clear();
  last_counted_ = nullptr;
  last_batch_ = nullptr;
  last_table_ = nullptr;
  arena_.reset();
}

}  // namespace thalweg::apply
