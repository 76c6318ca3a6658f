#include <algorithm>

#include "apply/applier/group_executor.h"
#include "apply/applier/tuple_values.h"
#include "apply/data_error.h"

// One row written over what the destination has, or replaced by statements.

namespace thalweg::apply {

using lcr::FrameKind;
using lcr::FrameView;
using lcr::ValueMark;
using metadata::TableMetadata;

namespace {

constexpr std::string_view kUniqueViolation = "23505";
// Others write at the destination, too: the row that an INSERT met may be gone by the UPDATE, and the one that an
// UPDATE did not find may be there by the INSERT. Then the other way is tried again, a few times.
constexpr int kTriesMax = 4;

}  // namespace

base::Result<Refusal> GroupExecutor::overwrite_row(const Transaction& transaction, const FrameView& frame,
                                                   bool is_there, bool& done) {
  done = false;
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  if (table->keyless()) return Refusal{};
  const bool removes = frame.kind() == FrameKind::remove;
  UpdateValues values = {};
  if (frame.kind() == FrameKind::update) {
    THALWEG_ASSIGN(values, read_update(*table, frame, arena_));
    // Values that did not change are as the old row has them.
    for (size_t column = 0; column < table->columns.size() && frame.has(lcr::kOldRow); ++column) {
      const bool is_known = values.key[column].mark != ValueMark::null;  // a large value that came is none
      if (values.now[column].mark == ValueMark::unchanged && is_known) values.now[column] = values.key[column];
    }
  } else {
    THALWEG_ASSIGN(const Values row, read_values(removes ? frame.old_tuple() : frame.new_tuple(), *table, arena_));
    values = {.now = row, .key = row};
  }
  const std::span<const lcr::Value> now(values.now, table->columns.size());
  const bool is_whole = std::ranges::none_of(now, [](const auto& v) { return v.mark == ValueMark::unchanged; });
  bool updates = is_there || frame.kind() == FrameKind::insert;
  for (int tries = 0; tries < kTriesMax; ++tries, updates = !updates) {
    if (!removes && !updates && !is_whole) break;
    THALWEG_TRY(set_savepoint());
    THALWEG_ASSIGN(Refusal refusal, write_over(transaction, *table, frame, values, updates));
    if (!refusal) {
      done = true;
      count(*table, transaction, frame.kind());
      return keep_savepoint();  // whoever records it leaves the pipeline
    }
    THALWEG_ASSIGN(const Refusal lost, forget_savepoint());
    if (lost) return lost;
    // Anything but the row's fault is for the whole transaction: a deadlock, say, or a statement that follows it.
    if (refusal->handler > 0 || !is_about_data(final_error(*refusal, transaction).code)) return refusal;
    const bool has_moved = updates ? refusal->missing_row : refusal->error.sqlstate == kUniqueViolation;
    if (removes || is_there || !has_moved) break;  // a row that is there is locked
  }
  return Refusal{};
}

base::Result<Refusal> GroupExecutor::write_over(const Transaction& transaction, const TableMetadata& table,
                                                const FrameView& frame, const UpdateValues& values, bool updates) {
  const std::byte* const bytes = frame.bytes().data();
  if (frame.kind() == FrameKind::remove) {
    THALWEG_TRY(writer_.remove(table, values.key, bytes, {}));
  } else if (updates) {
    THALWEG_TRY(writer_.update(table, values.now, values.key, bytes, {}));
  } else {
    THALWEG_TRY(writer_.insert(table, values.now, bytes));
  }
  THALWEG_TRY(handlers_.send(transaction, table, frame, metadata::HandlerTime::after, arena_));
  return session_.sync();
}

base::Result<Refusal> GroupExecutor::replace_row(const Transaction& transaction, const FrameView& frame,
                                                 const HandledError& failed, std::string& why) {
  THALWEG_ASSIGN(const TableMetadata* const table, table_of(transaction, frame));
  THALWEG_TRY(set_savepoint());
  THALWEG_ASSIGN(why, handlers_.send(transaction, *table, frame, failed, arena_));
  THALWEG_ASSIGN(const Refusal refusal, session_.sync());
  if (!refusal && why.empty()) return keep_savepoint();
  THALWEG_ASSIGN(const Refusal lost, forget_savepoint());
  return lost ? lost : refusal;
}

}  // namespace thalweg::apply
