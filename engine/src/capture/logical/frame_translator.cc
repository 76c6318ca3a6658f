#include "capture/logical/frame_translator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "capture/logical/truncated_partition.h"
#include "lcr/bytes.h"
#include "pg/connection.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;

bool same_columns(const lcr::ColumnDescription& a, const lcr::ColumnDescription& b) {
  return a.name == b.name && a.type == b.type && a.type_modifier == b.type_modifier && a.is_key == b.is_key;
}

bool same_table(const lcr::TableDescription& a, const lcr::TableDescription& b) {
  return a.schema_name == b.schema_name && a.table_name == b.table_name && a.replica_identity == b.replica_identity &&
         std::ranges::equal(a.columns, b.columns, same_columns);
}

uint16_t column_count(std::span<const std::byte> tuple) { return lcr::load_network<uint16_t>(tuple.data()); }

lcr::FrameKind row_kind(MessageKind kind) {
  if (kind == MessageKind::insert) return lcr::FrameKind::insert;
  return kind == MessageKind::update ? lcr::FrameKind::update : lcr::FrameKind::remove;
}

// The subtransaction that a frame names: none where the change belongs to the top level.
base::Xid subxid_of(base::Xid xid, const MessagePlace& place) { return xid == place.open_xid ? base::Xid{} : xid; }

}  // namespace

base::Result<bool> FrameTranslator::translate(const PgoutputMessage& message, const MessagePlace& place,
                                              base::Lsn lsn) {
  if (lsn) lsn_ = lsn;
  const base::RelationId described = std::exchange(described_last_, {});
  if (std::exchange(awaits_origin_, false)) {
    const bool has_one = message.kind == MessageKind::origin;
    if (!put_origin(has_one ? message.origin : std::string_view{})) return false;
  }
  const lcr::TransactionMark mark{
      .commit_lsn = message.commit_lsn, .end_lsn = message.end_lsn, .commit_time = message.commit_time};
  switch (message.kind) {
    case MessageKind::insert:
    case MessageKind::update:
    case MessageKind::remove:
      return put_row(message, place, described);
    case MessageKind::truncate:
      return put_truncate(message, place);
    case MessageKind::relation:
      describe(message.table);
      described_last_ = message.table.relation;
      return true;
    case MessageKind::begin:
      is_tapped_ = tap_ != nullptr && tap_->is_wanted();
      note_transaction({.is_committed = true, .commit_time = mark.commit_time});
      begun_ = message.xid;
      commit_lsn_ = mark.commit_lsn;
      awaits_origin_ = true;
      return put(lcr::make_begin_frame(message.xid, mark));
    case MessageKind::commit:
      ++counts_.transactions;
      return put(lcr::make_commit_frame(message.xid, false, mark));
    case MessageKind::stream_commit:
      return put_streamed_commit(message.xid, mark);
    case MessageKind::stream_abort:
      return put_abort(message.xid, message.subxid);
    case MessageKind::committed_subtransactions:
      return put_aborts_of_others(message);
    case MessageKind::stream_start:  // each frame of a block names its transaction itself
      is_tapped_ = tap_ != nullptr && tap_->is_wanted();
      note_transaction({});
      return true;
    case MessageKind::stream_stop:
    case MessageKind::origin:  // behind BEGIN, where it has been seen to; that of an open transaction may be another
                               // yet
    case MessageKind::type:
      return true;
    case MessageKind::message:
      return put_truncated_partition(message, place);
  }
  return true;
}

void FrameTranslator::note_transaction(TransactionFacts transaction) {
  transaction_ = std::move(transaction);
  if (filters_ != nullptr) filters_->set_transaction(transaction_);
}

// `origin`: empty where the transaction has none; none where nobody knows, so that a rule that asks cannot decide.
bool FrameTranslator::put_origin(std::optional<std::string_view> origin) {
  if (!origin) {
    note_transaction({.is_committed = true, .is_tag_known = false, .commit_time = transaction_.commit_time});
    return true;
  }
  if (!origin->empty()) {
    note_transaction({.is_committed = true, .commit_time = transaction_.commit_time, .tag = std::string(*origin)});
  }
  return !names_origins_ || put(lcr::make_origin_frame(begun_, commit_lsn_, *origin));
}

bool FrameTranslator::progress(base::Lsn lsn, base::UnixMicros server_time) {
  return put(lcr::make_progress_frame(lsn, server_time));
}

bool FrameTranslator::put(std::span<const std::byte> frame) {
  const auto memory = sink_.reserve(frame.size());
  if (memory.empty()) return false;
  std::memcpy(memory.data(), frame.data(), frame.size());
  sink_.enqueue();
  counts_.bytes += frame.size();
  return true;
}

bool FrameTranslator::put_abort(base::Xid xid, base::Xid subxid) {
  const bool whole = subxid == xid;
  if (whole) {
    subtransactions_.ended(xid);
    withheld_.erase(xid.value);
  } else {
    subtransactions_.aborted(xid, subxid);
    if (const auto found = withheld_.find(xid.value); found != withheld_.end()) found->second.erase(subxid.value);
  }
  if (is_tapped_) tap_->aborted(xid, whole ? base::Xid{} : subxid);
  return put(lcr::make_abort_frame(xid, whole ? base::Xid{} : subxid, lsn_));
}

bool FrameTranslator::put_aborts_of_others(const PgoutputMessage& message) {
  settled_ = message.xid;
  if (const auto found = withheld_.find(message.xid.value); found != withheld_.end()) {
    std::erase_if(found->second, [&](uint32_t subxid) {
      return subxid != message.xid.value &&
             std::ranges::find(message.subxids, base::Xid{subxid}) == message.subxids.end();
    });
  }
  const auto rolled_back = subtransactions_.take_rolled_back(message.xid, message.subxids);
  return std::ranges::all_of(rolled_back, [&](base::Xid subxid) {
    if (is_tapped_) tap_->aborted(message.xid, subxid);
    return put(lcr::make_abort_frame(message.xid, subxid, lsn_));
  });
}

base::Result<bool> FrameTranslator::put_streamed_commit(base::Xid xid, const lcr::TransactionMark& mark) {
  if (!(std::exchange(settled_, {}) == xid)) {
    return base::fail(
        ErrorCode::protocol_violation,
        fmt::format("Transaction {} was streamed, and which of its subtransactions committed was not said.",
                    xid.value));
  }
  THALWEG_TRY(check_withheld(xid));
  if (is_tapped_) tap_->committed(xid);
  ++counts_.transactions;
  return put(lcr::make_commit_frame(xid, true, mark));
}

// Read again, it is a transaction that has committed, and the catalogue says what its tables are.
base::Result<void> FrameTranslator::check_withheld(base::Xid xid) {
  const auto withheld = withheld_.extract(xid.value);
  if (withheld.empty() || withheld.mapped().empty()) return {};
  return base::fail(ErrorCode::database_busy,
                    fmt::format("Transaction {} changed the columns of a table with transformations, or locked it, and "
                                "came before its end. It has committed and is read again.",
                                xid.value),
                    base::ErrorSide::source);
}

ChangePlace FrameTranslator::place_of(const PgoutputMessage& message, const MessagePlace& place) const {
  return {.lsn = lsn_, .xid = place.open_xid, .subxid = subxid_of(message.xid, place), .is_streamed = place.in_stream};
}

base::Result<bool> FrameTranslator::put_row(const PgoutputMessage& message, const MessagePlace& place,
                                            base::RelationId described) {
  Table* const table = find(message.relation);
  if (table == nullptr) {
    return base::fail(ErrorCode::protocol_violation,
                      fmt::format("A row of relation {} comes before its description.", message.relation.value));
  }
  for (const auto& tuple : {message.old_tuple, message.new_tuple}) {
    if (!tuple.empty() && column_count(tuple) != table->columns) {
      return base::fail(
          ErrorCode::protocol_violation,
          fmt::format("A row of {}.{} has {} columns, its description {}.", table->description.schema_name,
                      table->description.table_name, column_count(tuple), table->columns));
    }
  }
  if (message.kind == MessageKind::update && message.old_tuple.empty() && !table->has_key) {
    base::Error error =
        base::fail(
            ErrorCode::replica_identity_missing,
            fmt::format("An UPDATE of {}.{} came, and nothing says of which row. Somebody has put the table into "
                        "a publication that sends updates.",
                        table->description.schema_name, table->description.table_name))
            .error();
    error.table = pg::quote_table(table->description.schema_name, table->description.table_name);
    return std::unexpected(std::move(error));
  }
  THALWEG_ASSIGN(const Announced announced, announce(*table, place_of(message, place)));
  if (announced != Announced::yes) return announced == Announced::withheld;
  const bool streamed = place.in_stream;
  const base::Xid subxid = subxid_of(message.xid, place);
  if (subxid) subtransactions_.note(place.open_xid, subxid);
  const bool is_of_partition = described.value != 0 && described != message.relation;
  if (is_of_partition && !put_partition(message, place)) return false;
  const lcr::RowFrame row{
      .kind = row_kind(message.kind),
      .flags = static_cast<uint16_t>(message.old_flags | (streamed ? lcr::kStreamed : 0)),
      .xid = place.open_xid,
      .subxid = subxid,
      .relation = message.relation,
      .table_version = table->description.version,
      .lsn = lsn_,
      .old_tuple = message.old_tuple,
      .new_tuple = message.new_tuple,
  };
  THALWEG_TRY(check_size(row, *table));
  if (is_tapped_) [[unlikely]]
    is_tapped_ = tap_->note(row, table->description, table->transformation.get(), transaction_);
  if (table->filter) return put_filtered(row, *table);
  return put_row_frame(row, *table);
}

// `message.table` is still the description.
bool FrameTranslator::put_partition(const PgoutputMessage& message, const MessagePlace& place) {
  const lcr::TableDescription& partition = message.table;
  return put(lcr::make_partition_frame(
      place.open_xid, subxid_of(message.xid, place), static_cast<uint16_t>(place.in_stream ? lcr::kStreamed : 0), lsn_,
      message.relation,
      {.partition = partition.relation, .schema_name = partition.schema_name, .partition_name = partition.table_name}));
}

base::Result<bool> FrameTranslator::put_truncated_partition(const PgoutputMessage& message, const MessagePlace& place) {
  if (!trusts_truncated_partitions_ || message.prefix != kTruncatedPartitionPrefix) return true;
  THALWEG_ASSIGN(const TruncatedPartition truncated, read_truncated_partition(message.content));
  // Of a transaction that comes whole, those of its subtransactions that were rolled back do not come.
  const base::Xid subxid = place.in_stream ? subxid_of(truncated.xid, place) : base::Xid{};
  if (subxid) subtransactions_.note(place.open_xid, subxid);
  const auto flags = static_cast<uint16_t>(lcr::kPartitionTruncated | (place.in_stream ? lcr::kStreamed : 0));
  return put(
      lcr::make_partition_frame(place.open_xid, subxid, flags, lsn_, truncated.table, std::move(truncated.mark)));
}

base::Result<void> FrameTranslator::check_size(const lcr::RowFrame& row, const Table& table) const {
  const size_t bytes = lcr::row_frame_bytes(row);
  if (bytes <= lcr::kFrameLengthMax) [[likely]]
    return {};
  return base::fail(ErrorCode::protocol_violation,
                    fmt::format("A change of {}.{} has {} bytes; a frame holds {}.", table.description.schema_name,
                                table.description.table_name, bytes, lcr::kFrameLengthMax));
}

base::Result<bool> FrameTranslator::put_row_frame(const lcr::RowFrame& row, Table& table) {
  lcr::RowFrame sent = row;
  if (table.transformation) [[unlikely]] {
    auto transformed = table.transformation->apply(row);
    if (!transformed) return std::unexpected(placed(std::move(transformed).error(), row.xid));
    sent = *transformed;
    THALWEG_TRY(check_size(sent, table));  // what is made may be longer than what it is made of
  }
  const size_t bytes = lcr::row_frame_bytes(sent);
  const auto memory = sink_.reserve(bytes);
  if (memory.empty()) return false;
  lcr::write_row_frame(sent, memory);
  sink_.enqueue();
  ++counts_.lcrs;
  counts_.bytes += bytes;
  return true;
}

base::Result<bool> FrameTranslator::put_filtered(const lcr::RowFrame& row, Table& table) {
  const size_t bytes = lcr::row_frame_bytes(row);
  const auto memory = sink_.reserve(bytes);
  if (memory.empty()) return false;
  lcr::write_row_frame(row, memory);
  const auto change = lcr::FrameView::trusted(memory.data());
  if (!table.filter->knows_labels_of(change)) {
    THALWEG_ASSIGN(table.filter, filters_->make(table.description));
  }
  const auto fate = table.filter->judge(change);
  if (!fate) return std::unexpected(placed(fate.error(), row.xid));
  switch (*fate) {
    case RowFilter::Fate::drop:
      return true;
    case RowFilter::Fate::pass:
      if (table.transformation) return put_row_frame(row, table);
      sink_.enqueue();
      ++counts_.lcrs;
      counts_.bytes += bytes;
      return true;
    case RowFilter::Fate::becomes_insert: {
      const auto whole = table.filter->inserted_row(change);
      if (!whole) return std::unexpected(placed(whole.error(), row.xid));
      return put_row_frame(as_insert(row, *whole), table);
    }
    case RowFilter::Fate::becomes_delete: {
      const auto key = table.filter->deleted_key(change);
      if (!key) return std::unexpected(placed(key.error(), row.xid));
      return put_row_frame(as_delete(row, *key), table);
    }
  }
  return true;
}

base::Result<bool> FrameTranslator::put_truncate(const PgoutputMessage& message, const MessagePlace& place) {
  for (const auto relation : message.truncated) {
    Table* const table = find(relation);
    if (table == nullptr) {
      return base::fail(ErrorCode::protocol_violation,
                        fmt::format("A truncate of relation {} comes before its description.", relation.value));
    }
    THALWEG_ASSIGN(const Announced announced, announce(*table, place_of(message, place)));
    if (announced != Announced::yes) return announced == Announced::withheld;
  }
  const auto flags = static_cast<uint16_t>(message.truncate_flags | (place.in_stream ? lcr::kStreamed : 0));
  const base::Xid subxid = subxid_of(message.xid, place);
  if (subxid) subtransactions_.note(place.open_xid, subxid);
  auto frame = lcr::make_truncate_frame(place.open_xid, subxid, lsn_, flags, message.truncated);
  if (filters_ != nullptr) {
    THALWEG_ASSIGN(const auto passed, truncated(lcr::FrameView::trusted(frame.data()), message.truncated));
    if (passed.empty()) return true;
    if (passed.size() < message.truncated.size()) {
      frame = lcr::make_truncate_frame(place.open_xid, subxid, lsn_, flags, passed);
    }
  }
  ++counts_.lcrs;
  return put(frame);
}

base::Result<std::vector<base::RelationId>> FrameTranslator::truncated(const lcr::FrameView& truncate,
                                                                       std::span<const base::RelationId> relations) {
  std::vector<base::RelationId> passed;
  for (const base::RelationId relation : relations) {
    RowFilter* const filter = find(relation)->filter.get();
    if (filter != nullptr) {
      const auto fate = filter->judge(truncate);
      if (!fate) return std::unexpected(placed(fate.error(), truncate.xid()));
      if (*fate == RowFilter::Fate::drop) continue;
    }
    passed.push_back(relation);
  }
  return passed;
}

void FrameTranslator::describe(const lcr::TableDescription& described) {
  Table& table = tables_[described.relation];
  // The source repeats descriptions after every invalidation of its own caches; only news make a version. But rules
  // depend on more than a description says: collations, the replica identities of partitions. Those of destinations are
  // looked at again where the frame is repeated.
  table.is_filter_new = false;
  table.announced = false;
  table.undecided = {};
  if (table.description.version != 0 && same_table(table.description, described)) return;
  const uint32_t version = table.description.version + 1;
  table.description = described;
  table.description.version = version;
  table.columns = static_cast<uint16_t>(described.columns.size());
  table.has_key = std::ranges::any_of(described.columns, &lcr::ColumnDescription::is_key);
  table.filter.reset();
  table.transformation.reset();
  last_table_ = nullptr;
}

base::Result<void> FrameTranslator::make_filter(Table& table, const ChangePlace& change) {
  table.undecided = {};
  if (filters_ != nullptr) {
    THALWEG_ASSIGN(MadeTransformation made, filters_->make_transformation(table.description, change));
    if (made.is_undecided) {
      if (!change.is_streamed) {
        const std::string name = pg::quote_table(table.description.schema_name, table.description.table_name);
        base::Error error =
            base::fail(ErrorCode::database_busy,
                       fmt::format("Transaction {} has changed {}, and its commit is not to be seen yet "
                                   "at the source, whose catalogue says what is masked.",
                                   change.xid.value, name),
                       base::ErrorSide::source)
                .error();
        error.table = name;
        return std::unexpected(placed(std::move(error), change.xid));
      }
      table.undecided = change.own();
      return {};
    }
    table.transformation = std::move(made.steps);
    THALWEG_ASSIGN(table.filter, filters_->make(table.description));
  }
  table.is_filter_new = true;
  return {};
}

base::Result<FrameTranslator::Announced> FrameTranslator::announce(Table& table, const ChangePlace& change) {
  if (!table.is_filter_new) {
    // A subtransaction, rolled back perhaps, says nothing of the others.
    if (!table.undecided || !(table.undecided == change.own())) THALWEG_TRY(make_filter(table, change));
    if (table.undecided) {
      withheld_[change.xid.value].insert(change.own().value);
      return Announced::withheld;
    }
  }
  if (table.announced) [[likely]]
    return Announced::yes;
  table.announced =
      put(lcr::make_table_frame(table.transformation ? table.transformation->sent_table() : table.description));
  return table.announced ? Announced::yes : Announced::ended;
}

base::Error FrameTranslator::placed(base::Error error, base::Xid xid) const {
  error.lsn = lsn_;
  error.xid = xid;
  return error;
}

FrameTranslator::Table* FrameTranslator::find(base::RelationId relation) {
  if (last_table_ != nullptr && last_table_->description.relation == relation) return last_table_;
  const auto found = tables_.find(relation);
  if (found == tables_.end()) return nullptr;
  last_table_ = &found->second;
  return last_table_;
}

}  // namespace thalweg::capture
