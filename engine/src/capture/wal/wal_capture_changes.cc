#include "capture/wal/wal_capture.h"

// Changes that are built, on their way through the translator: they are given to it as the messages that the source's
// decoding would have sent.

namespace thalweg::capture {

namespace {

constexpr uint16_t kOldFlags = lcr::kOldKey | lcr::kOldRow;
constexpr uint16_t kTruncateFlags = lcr::kCascade | lcr::kRestartIdentity;

MessageKind kind_of(lcr::FrameKind kind) {
  if (kind == lcr::FrameKind::insert) return MessageKind::insert;
  return kind == lcr::FrameKind::update ? MessageKind::update : MessageKind::remove;
}

}  // namespace

base::Result<void> WalCapture::translate(MessagePlace place, base::Lsn lsn) {
  THALWEG_ASSIGN(const bool translated, translator_.translate(message_, place, lsn));
  THALWEG_ASSIGN(const bool taken, put(translated));
  if (taken) return {};
  return base::fail(base::ErrorCode::engine_stopping, "The capture stops");
}

void WalCapture::set_mark(base::Xid xid, const lcr::TransactionMark& mark) {
  message_.xid = xid;
  message_.commit_lsn = mark.commit_lsn;
  message_.end_lsn = mark.end_lsn;
  message_.commit_time = mark.commit_time;
}

// A commit that was applied from elsewhere has the time that it had there.
void WalCapture::note_commit_time(const lcr::TransactionMark& mark) {
  if (parts_.origin() == 0) committed_at_ = mark.commit_time;
}

base::Result<void> WalCapture::begin(base::Xid xid, const lcr::TransactionMark& mark) {
  block_ = {};
  message_.kind = MessageKind::begin;
  set_mark(xid, mark);
  THALWEG_TRY(translate({.open_xid = xid}, mark.commit_lsn));
  const bool is_asked = options_.rules.reads_transaction || (options_.tap != nullptr && options_.tap->is_wanted());
  const uint16_t origin = parts_.origin();  // the record that is mined is the transaction's commit
  if (!is_asked || origin == 0) return {};
  THALWEG_ASSIGN(origin_, origin_name(origin, xid));
  message_.origin = origin_;
  message_.kind = MessageKind::origin;
  return translate({.open_xid = xid}, mark.commit_lsn);
}

// The WAL has its number only, which another origin may have got since. So each transaction is looked up by itself, and
// an origin counts that was there before the transaction began.
base::Result<std::optional<std::string>> WalCapture::origin_name(uint16_t origin, base::Xid xid) {
  if (!origins_ || origins_->broken()) {
    origins_.reset();
    THALWEG_ASSIGN(origins_, pg::Connection::open(options_.source_conninfo,
                                                  {.application_name = application_name_, .abandon = &stop_}));
  }
  THALWEG_ASSIGN(
      const pg::Rows rows,
      origins_->query("SELECT roname FROM pg_catalog.pg_replication_origin WHERE roident = $1::pg_catalog.oid "
                      "AND NOT pg_catalog.age(xmin) BETWEEN 0 AND pg_catalog.age($2::pg_catalog.xid) - 1",
                      {std::to_string(origin), std::to_string(xid.value)}));
  return rows.size() == 0 ? std::nullopt : std::optional(std::string(rows.text(0, 0)));
}

base::Result<void> WalCapture::describe(const mining::MinedTable& table) {
  message_.kind = MessageKind::relation;
  message_.table = table.description;
  return translate({}, {});
}

base::Result<void> WalCapture::change(const lcr::RowFrame& row) {
  const MessagePlace place{.open_xid = row.xid, .in_stream = (row.flags & lcr::kStreamed) != 0};
  if (place.in_stream && !(block_ == row.xid)) {
    block_ = message_.xid = row.xid;
    message_.kind = MessageKind::stream_start;
    THALWEG_TRY(translate(place, row.lsn));
    streaming_.store(1, std::memory_order_relaxed);
  }
  message_.kind = kind_of(row.kind);
  message_.xid = row.subxid ? row.subxid : row.xid;
  message_.relation = row.relation;
  message_.old_flags = row.flags & kOldFlags;
  message_.old_tuple = row.old_tuple;
  message_.new_tuple = row.new_tuple;
  return translate(place, row.lsn);
}

base::Result<void> WalCapture::truncate(const mining::TruncateChange& truncate) {
  message_.kind = MessageKind::truncate;
  message_.xid = truncate.subxid ? truncate.subxid : truncate.xid;
  message_.truncate_flags = truncate.flags & kTruncateFlags;
  message_.truncated.assign(truncate.relations.begin(), truncate.relations.end());
  return translate({.open_xid = truncate.xid, .in_stream = (truncate.flags & lcr::kStreamed) != 0}, truncate.lsn);
}

base::Result<void> WalCapture::message(base::Xid xid, std::string_view content) {
  message_.kind = MessageKind::message;
  message_.xid = xid;
  message_.prefix = options_.slot;
  message_.content = content;
  note_marker(message_, xid);
  return {};
}

base::Result<void> WalCapture::rolled_back(base::Xid xid, base::Xid subxid, base::Lsn lsn) {
  block_ = {};
  message_.kind = MessageKind::stream_abort;
  message_.xid = xid;
  message_.subxid = subxid ? subxid : xid;
  return translate({.open_xid = xid, .in_stream = true}, lsn);
}

base::Result<void> WalCapture::commit(base::Xid xid, const lcr::TransactionMark& mark) {
  message_.kind = MessageKind::commit;
  set_mark(xid, mark);
  THALWEG_TRY(translate({.open_xid = xid}, mark.commit_lsn));
  note_commit_time(mark);
  note_commit(message_);
  return {};
}

base::Result<void> WalCapture::commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                               std::span<const base::Xid> subtransactions) {
  block_ = {};
  message_.kind = MessageKind::committed_subtransactions;
  message_.xid = xid;
  message_.subxids.assign(subtransactions.begin(), subtransactions.end());
  THALWEG_TRY(translate({.open_xid = xid, .in_stream = true}, mark.commit_lsn));
  message_.kind = MessageKind::stream_commit;
  set_mark(xid, mark);
  THALWEG_TRY(translate({.open_xid = xid}, mark.commit_lsn));
  note_commit_time(mark);
  note_commit(message_);
  return {};
}

}  // namespace thalweg::capture
