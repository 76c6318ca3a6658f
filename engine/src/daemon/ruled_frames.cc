#include "daemon/ruled_frames.h"

#include <fmt/format.h>

#include <utility>

namespace thalweg::daemon {
namespace {

using capture::RowFilter;

base::Error placed(base::Error error, const lcr::FrameView& change) {
  error.lsn = change.lsn();
  error.xid = change.xid();
  return error;
}

}  // namespace

RuledFrames::RuledFrames(queue::FrameSource& frames, capture::StreamRules rules, base::Conninfo source,
                         pg::ConnectOptions options, const base::Clock& clock)
    : frames_(frames), rules_(std::move(rules)), filters_(rules_, std::move(source), std::move(options), clock) {}

base::Result<const std::byte*> RuledFrames::browse(std::chrono::microseconds timeout) {
  for (size_t dropped = 0; dropped < kDroppedAtOnce;) {
    THALWEG_ASSIGN(const std::byte* const bytes, frames_.browse(timeout));
    if (bytes == nullptr) return nullptr;
    if (is_judged_) return instead_.empty() ? bytes : instead_.data();
    const auto frame = lcr::FrameView::trusted(bytes);
    if (frame.kind() == lcr::FrameKind::table) THALWEG_TRY(describe(frame));
    note_transaction(frame);
    THALWEG_ASSIGN(const Verdict verdict, lcr::is_change(frame.kind()) ? judge(frame) : Verdict::pass);
    switch (verdict) {
      case Verdict::pass:
        is_judged_ = true;
        return instead_.empty() ? bytes : instead_.data();
      case Verdict::drop:
        is_filter_new_ = false;
        frames_.dequeue();
        timeout = {};
        ++dropped;
        break;
      case Verdict::unready:
        frames_.release();  // an agent must not wait for anything else while it looks at a frame
        THALWEG_TRY(make_filter());
        break;
    }
  }
  return nullptr;
}

// Of a frame that is looked at once more, too: that is the same again.
void RuledFrames::note_transaction(const lcr::FrameView& frame) {
  if (frame.kind() == lcr::FrameKind::begin) {
    // Captured when no rule asked, perhaps: then nothing says by which origin it came.
    transaction_ = {.is_committed = true, .is_tag_known = false, .commit_time = frame.transaction_mark().commit_time};
  } else if (frame.kind() == lcr::FrameKind::origin) {
    transaction_.is_tag_known = true;
    if (!frame.origin().empty()) transaction_.tag = std::string(frame.origin());
  } else if (frame.has(lcr::kStreamed) && lcr::is_change(frame.kind())) {
    transaction_ = {};
  } else {
    return;
  }
  filters_.set_transaction(transaction_);
}

void RuledFrames::dequeue() {
  is_filter_new_ = false;
  is_judged_ = false;
  instead_.clear();
  frames_.dequeue();
}

base::Result<void> RuledFrames::describe(const lcr::FrameView& frame) {
  THALWEG_ASSIGN(lcr::TableDescription description, frame.table());
  // Also of the version that is known: something else about the table may have changed, such as a collation.
  tables_[description.relation] = Table{.description = std::move(description), .filter = {}};
  return {};
}

base::Result<RuledFrames::Table*> RuledFrames::find(base::RelationId relation) {
  const auto found = tables_.find(relation);
  if (found != tables_.end()) return &found->second;
  return base::fail(base::ErrorCode::corrupt_frame,
                    fmt::format("A change of relation {} comes before its description.", relation.value));
}

base::Result<RuledFrames::Verdict> RuledFrames::judge(const lcr::FrameView& change) {
  auto verdict = change.kind() == lcr::FrameKind::truncate ? judge_truncate(change) : judge_row(change);
  if (!verdict) return std::unexpected(placed(std::move(verdict).error(), change));
  return verdict;
}

base::Result<RuledFrames::Verdict> RuledFrames::judge_row(const lcr::FrameView& change) {
  THALWEG_ASSIGN(Table* const table, find(change.relation()));
  if (table->description.version != change.header().table_version) {
    return base::fail(base::ErrorCode::corrupt_frame,
                      fmt::format("A change of relation {} is of its version {}, and version {} was described.",
                                  change.relation().value, change.header().table_version, table->description.version));
  }
  if (table->is_ready && !table->filter) return Verdict::pass;
  if (!table->is_ready || (!is_filter_new_ && !table->filter->knows_labels_of(change))) {
    unready_ = table;
    return Verdict::unready;
  }
  THALWEG_ASSIGN(const RowFilter::Fate fate, table->filter->judge(change));
  switch (fate) {
    case RowFilter::Fate::drop:
      return Verdict::drop;
    case RowFilter::Fate::pass:
      return Verdict::pass;
    case RowFilter::Fate::becomes_insert: {
      THALWEG_ASSIGN(const auto row, table->filter->inserted_row(change));
      put(capture::as_insert(lcr::row_of(change), row));
      return Verdict::pass;
    }
    case RowFilter::Fate::becomes_delete: {
      THALWEG_ASSIGN(const auto key, table->filter->deleted_key(change));
      put(capture::as_delete(lcr::row_of(change), key));
      return Verdict::pass;
    }
  }
  return Verdict::pass;
}

base::Result<RuledFrames::Verdict> RuledFrames::judge_truncate(const lcr::FrameView& truncate) {
  const auto relations = truncate.truncated_relations();
  std::vector<Table*> tables;
  for (const base::RelationId relation : relations) {
    THALWEG_ASSIGN(Table* const table, find(relation));
    if (!table->is_ready) {
      unready_ = table;
      return Verdict::unready;
    }
    tables.push_back(table);
  }
  std::vector<base::RelationId> passed;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i]->filter) {
      THALWEG_ASSIGN(const RowFilter::Fate fate, tables[i]->filter->judge(truncate));
      if (fate == RowFilter::Fate::drop) continue;
    }
    passed.push_back(relations[i]);
  }
  if (passed.empty()) return Verdict::drop;
  if (passed.size() < relations.size()) {
    instead_ =
        lcr::make_truncate_frame(truncate.xid(), truncate.subxid(), truncate.lsn(), truncate.header().flags, passed);
  }
  return Verdict::pass;
}

base::Result<void> RuledFrames::make_filter() {
  THALWEG_ASSIGN(unready_->filter, filters_.make(unready_->description));
  unready_->is_ready = true;
  is_filter_new_ = true;
  return {};
}

void RuledFrames::put(const lcr::RowFrame& row) {
  instead_.resize(lcr::row_frame_bytes(row));
  lcr::write_row_frame(row, instead_);
}

}  // namespace thalweg::daemon
