#include "apply/applier/progress_writer.h"

#include <limits>

#include <fmt/format.h>

namespace thalweg::apply {

namespace {

// Divides by zero when the row is gone or of another epoch.
const std::string kUpdate =
    "WITH touched AS (UPDATE thalweg.apply_progress SET low_watermark = $1, ranges = $2, updated_at = now(), "
    "applier = $6 WHERE stream_id = $3 AND applier = $4 AND epoch = $5 RETURNING 1) SELECT 1 / count(*) FROM touched";
constexpr std::array kTypes{base::TypeId{3220}, base::TypeId{17}, base::TypeId{25},
                            base::TypeId{23},   base::TypeId{20}, base::TypeId{23}};

constexpr size_t kColumns = 6;  // of the table, progress.cc; row() has their values in the table's order
// The origin that a frame has to name: an oid below FirstNormalObjectId, which no replicated table of a source has.
constexpr base::RelationId kRelation{1};
constexpr uint32_t kVersion = 1;
constexpr base::Xid kXid{1};

metadata::TableMetadata progress_table(base::RelationId table, uint32_t index) {
  metadata::TableMetadata made;
  made.source.relation = kRelation;
  made.source.version = kVersion;
  made.destination = table;
  made.quoted_name = "thalweg.apply_progress";
  made.identity_index = index;
  const auto type = std::make_shared<const metadata::TypeNode>();  // values without oids in them
  for (size_t i = 0; i < kColumns; ++i) {
    metadata::Column& column = made.columns.emplace_back();
    column.type = type;
    column.attribute = static_cast<int16_t>(i + 1);
  }
  return made;
}

lcr::Value text_value(std::string_view text) {
  return {.mark = lcr::ValueMark::text, .bytes = std::as_bytes(std::span(text))};
}

}  // namespace

base::Error taken_over(const std::string& stream_id) {
  return base::fail(base::ErrorCode::stream_in_use, fmt::format("another engine has taken stream {} over", stream_id))
      .error();
}

ProgressWriter::ProgressWriter(SharedState& shared, int row)
    : shared_(shared), number_(row), epoch_(std::to_string(shared.epoch)) {}

base::Result<void> ProgressWriter::create_row(pg::Connection& connection) {
  const std::string low_watermark = base::to_string(base::Lsn{shared_.low_watermark.load(std::memory_order_acquire)});
  // The stream's row is locked for the moment, so that a newer epoch begins before or after, not in between.
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query("WITH current AS (SELECT FROM thalweg.stream WHERE stream_id = $1 AND epoch = $3::bigint "
                       "FOR SHARE) INSERT INTO thalweg.apply_progress (stream_id, applier, epoch, "
                       "low_watermark, ranges) SELECT $1, $2::integer, $3::bigint, $4::pg_lsn, '' FROM current "
                       "ON CONFLICT (stream_id, applier) DO UPDATE SET updated_at = now() "
                       "WHERE apply_progress.epoch = excluded.epoch "
                       "RETURNING tableoid, 'thalweg.apply_progress_epoch'::regclass::oid",
                       {shared_.stream_id, std::to_string(number_), epoch_, low_watermark}));
  if (rows.size() != 1) return std::unexpected(taken_over(shared_.stream_id));
  table_ = progress_table({static_cast<uint32_t>(rows.integer(0, 0))}, static_cast<uint32_t>(rows.integer(0, 1)));
  return {};
}

void ProgressWriter::add(LsnRange range, base::Lsn low_watermark) {
  pending_ = recorded_;
  pending_.prune(low_watermark);
  pending_.add(range);
}

void ProgressWriter::committed() {
  recorded_ = pending_;
  const int number = next_number();
  versions_ = number == number_ ? versions_ + 1 : 1;
  number_ = number;
}

// The row's number after the next update. The numbers start over after half a billion commits.
int ProgressWriter::next_number() const {
  if (versions_ < kVersionsMax) return number_;
  return number_ <= std::numeric_limits<int>::max() - kRowsMax ? number_ + kRowsMax : (number_ - 1) % kRowsMax + 1;
}

base::Result<void> ProgressWriter::send(DestinationSession& session, LsnRange range) {
  const base::Lsn low_watermark{shared_.low_watermark.load(std::memory_order_acquire)};
  add(range, low_watermark);
  const auto ranges = pending_.encode();
  const std::string low_watermark_text = base::to_string(low_watermark);
  const std::string number = std::to_string(number_);
  const std::string next = std::to_string(next_number());
  const std::array parameters{pg::text_parameter(low_watermark_text),
                              pg::Parameter{.bytes = ranges, .type = {}, .is_null = false, .is_binary = true},
                              pg::text_parameter(shared_.stream_id),
                              pg::text_parameter(number),
                              pg::text_parameter(epoch_),
                              pg::text_parameter(next)};
  return session.run(session.prepared(kUpdate, kTypes), parameters, {.rows = 1, .own_row = true});
}

PendingFrame ProgressWriter::row(LsnRange range) {
  const base::Lsn low_watermark{shared_.low_watermark.load(std::memory_order_acquire)};
  add(range, low_watermark);
  const auto ranges = pending_.encode();
  const std::string low_watermark_text = base::to_string(low_watermark);
  const std::string number = std::to_string(number_);
  const std::string next = std::to_string(next_number());
  const std::array<lcr::Value, kColumns> key{text_value(shared_.stream_id), text_value(number), text_value(epoch_)};
  const std::array<lcr::Value, kColumns> values{text_value(shared_.stream_id),
                                                text_value(next),
                                                text_value(epoch_),
                                                text_value(low_watermark_text),
                                                {.mark = lcr::ValueMark::binary, .bytes = ranges},
                                                text_value("now")};
  const bool moves = next != number;
  const auto old_tuple = moves ? lcr::make_tuple(key) : std::vector<std::byte>{};
  const auto new_tuple = lcr::make_tuple(values);
  const lcr::RowFrame row{.kind = lcr::FrameKind::update,
                          .flags = moves ? uint16_t{lcr::kOldKey} : uint16_t{0},
                          .xid = kXid,
                          .subxid = {},
                          .relation = kRelation,
                          .table_version = kVersion,
                          .lsn = low_watermark,
                          .old_tuple = old_tuple,
                          .new_tuple = new_tuple};
  frame_.resize(lcr::row_frame_bytes(row));
  lcr::write_row_frame(row, frame_);
  return {.table = &table_, .frame = lcr::FrameView::trusted(frame_.data())};
}

}  // namespace thalweg::apply
