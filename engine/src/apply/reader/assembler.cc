#include "apply/reader/assembler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;

namespace {

constexpr size_t kTablesShownMax = 16;

bool has_precommit(std::span<const metadata::StatementHandler> handlers) {
  return std::ranges::any_of(handlers,
                             [](const auto& handler) { return handler.time == metadata::HandlerTime::precommit; });
}

}  // namespace

Assembler::Assembler(SharedState& shared, BlockPool& pool, spill::SpillSpace& spill, telemetry::TimeAccount& time,
                     TableWriter& tables, Counters& counters, std::function<bool()> await_space)
    : shared_(shared),
      pool_(pool),
      spill_(spill),
      time_(time),
      counters_(counters),
      await_space_(std::move(await_space)),
      tables_(tables),
      write_sets_(tables, has_precommit(shared.statement_handlers)) {}

Assembler::~Assembler() {
  for (auto& [xid, open] : streamed_) drop_fill(open);
  whole_.transaction.reset();
  drop_fill();
}

void Assembler::rest() {
  if (fill_ != nullptr && fill_->holders.load(std::memory_order_relaxed) == 1) drop_fill();
}

void Assembler::drop_fill() {
  if (whole_.transaction && !whole_.transaction->frames.empty()) return;  // it holds the block anyway
  if (fill_ != nullptr) pool_.drop(fill_);
  fill_ = nullptr;
}

void Assembler::drop_fill(Open& open) {
  if (open.fill != nullptr) pool_.drop(open.fill);
  open.fill = nullptr;
}

base::Result<std::unique_ptr<Transaction>> Assembler::add(const lcr::FrameView& frame, size_t spill_above,
                                                          bool is_applied) {
  spilling_ = false;
  switch (frame.kind()) {
    case FrameKind::begin:
      if (whole_.transaction) return base::fail(ErrorCode::corrupt_frame, "BEGIN within a transaction");
      whole_.transaction = std::make_unique<Transaction>();
      whole_.transaction->xid = frame.xid();
      whole_.transaction->begun = shared_.clock->steady_now();
      whole_.frames = 0;
      whole_.last_relation = {};
      whole_.relations.clear();
      whole_.trouble.reset();
      return nullptr;
    case FrameKind::insert:
    case FrameKind::update:
    case FrameKind::remove:
    case FrameKind::truncate:
      THALWEG_TRY(append(open_of(frame), frame, spill_above));
      return nullptr;
    case FrameKind::partition: {
      THALWEG_ASSIGN(lcr::PartitionMark mark, frame.partition());
      open_of(frame).transaction->partitions.push_back({.table = frame.relation(),
                                                        .mark = std::move(mark),
                                                        .subxid = frame.subxid(),
                                                        .truncated = frame.has(lcr::kPartitionTruncated)});
      return nullptr;
    }
    case FrameKind::abort:
      abort(frame);
      return nullptr;
    case FrameKind::commit:
      return finish(frame, is_applied);
    default:
      return nullptr;
  }
}

Assembler::Open& Assembler::open_of(const lcr::FrameView& frame) {
  if (whole_.transaction) return whole_;
  Open& open = streamed_[frame.xid()];
  if (open.transaction) return open;
  open.transaction = std::make_unique<Transaction>();
  open.transaction->xid = frame.xid();
  open.streamed = true;
  open.transaction->streamed = true;
  open.transaction->begun = shared_.clock->steady_now();
  counters_.open_transactions.set(streamed_.size());
  return open;
}

bool Assembler::takes_at_once(const lcr::FrameView& frame, uint64_t frames_max) const {
  if (frame.kind() == FrameKind::begin) return true;
  if (!whole_.transaction || whole_.transaction->spilled || frame.has(lcr::kStreamed)) return false;
  switch (frame.kind()) {
    case FrameKind::origin:  // for who judges by rules
      return true;
    case FrameKind::insert:
    case FrameKind::update:
    case FrameKind::remove:
      return whole_.frames < frames_max;
    case FrameKind::commit:
      return whole_.transaction->partitions.empty() && whole_.relations.size() < kTablesShownMax &&
             std::ranges::all_of(
                 whole_.relations, [this](base::RelationId relation) { return tables_.is_cached(relation); });
    default:
      return false;
  }
}

base::Result<void> Assembler::append_spilled(Open& open, const lcr::FrameView& frame) {
  spill::SpillLog& log = *open.transaction->spilled;
  if (log.would_write(frame.header().length)) {
    THALWEG_TRY(with_space([&] { return log.append(frame.bytes()); }));
  } else {
    THALWEG_TRY(log.append(frame.bytes()));
  }
  counters_.spilled_lcrs.add();
  counters_.spilled_bytes.add(frame.header().length);
  spilling_ = true;
  return {};
}

// A write that failed for want of space left its log as it was: it may come again once others have given theirs back.
base::Result<void> Assembler::with_space(const std::function<base::Result<void>()>& write) {
  const telemetry::ActivityScope disk(time_, telemetry::Activity::disk);
  while (true) {
    auto written = write();
    if (written) return written;
    const ErrorCode code = written.error().code;
    if (code != ErrorCode::spill_limit_reached && code != ErrorCode::disk_full) return written;
    if (await_space_()) continue;
    if (shared_.ending()) return base::fail(ErrorCode::engine_stopping, "apply ends");
    return write();  // the last of the others may have given its space back since the write failed
  }
}

base::Result<void> Assembler::append(Open& open, const lcr::FrameView& frame, size_t spill_above) {
  Transaction& transaction = *open.transaction;
  ++open.frames;
  if (!(frame.relation() == open.last_relation) || open.frames == 1) note(open, frame);
  if (!transaction.spilled && open.frames > spill_above) THALWEG_TRY(spill(open));
  if (!transaction.spilled) {
    transaction.frames.append(pool_, open.streamed ? open.fill : fill_, frame.bytes());
    return {};
  }
  THALWEG_TRY(note_table(open, frame));
  return append_spilled(open, frame);
}

base::Result<void> Assembler::note_table(Open& open, const lcr::FrameView& frame) {
  if (open.trouble) return {};
  auto noted = write_sets_.note_table(*open.transaction, frame);
  const bool waits = !noted && (noted.error().code == ErrorCode::destination_table_differs ||
                                noted.error().code == ErrorCode::missing_table);
  if (!waits) return noted;
  open.trouble = std::move(noted.error());
  return {};
}

void Assembler::note(Open& open, const lcr::FrameView& frame) {
  if (open.frames == 1) open.transaction->first_lsn = frame.lsn();
  open.last_relation = frame.relation();
  const auto add = [&](base::RelationId relation) {
    if (open.relations.size() >= kTablesShownMax) return;
    if (std::ranges::find(open.relations, relation) == open.relations.end()) open.relations.push_back(relation);
  };
  if (frame.kind() != FrameKind::truncate) return add(frame.relation());
  for (const base::RelationId relation : frame.truncated_relations()) add(relation);
}

void Assembler::show(const Open& open, std::vector<telemetry::TransactionSample>& out) const {
  const Transaction& transaction = *open.transaction;
  telemetry::TransactionSample sample{.xid = transaction.xid,
                                      .state = "OPEN",
                                      .first_lsn = transaction.first_lsn,
                                      .commit_lsn = {},
                                      .begun = transaction.begun,
                                      .lcrs = open.frames,
                                      .bytes = transaction.frames.bytes(),
                                      .streamed = open.streamed};
  if (transaction.spilled) sample.bytes = sample.spilled_bytes = transaction.spilled->bytes();
  for (const base::RelationId relation : open.relations) sample.tables.push_back(tables_.name_of(relation));
  out.push_back(std::move(sample));
}

telemetry::TransactionSamples Assembler::sample() const {
  telemetry::TransactionSamples out;
  if (whole_.transaction) show(whole_, out.shown);
  for (const auto& [xid, open] : streamed_) show(open, out.shown);
  out.open = out.shown.size();
  telemetry::keep_notable(out.shown);
  return out;
}

base::Result<void> Assembler::spill(Open& open) {
  Transaction& transaction = *open.transaction;
  transaction.spilled = std::make_unique<spill::SpillLog>(spill_, fmt::format("xid-{}", transaction.xid.value));
  counters_.spilled_transactions.add();
  for (const auto& segment : transaction.frames.segments()) {
    for (const std::byte* at = segment.begin; at < segment.end;) {
      const auto frame = lcr::FrameView::trusted(at);
      THALWEG_TRY(note_table(open, frame));
      THALWEG_TRY(append_spilled(open, frame));
      at += frame.header().length;
    }
  }
  transaction.frames.clear();
  drop_fill(open);
  return with_space([&] { return transaction.spilled->flush(); });  // it may be long until something more comes
}

base::Result<void> Assembler::spill_begun_before(std::chrono::steady_clock::time_point then) {
  const auto is_old = [&](const Open& open) {
    return open.transaction && !open.transaction->spilled && !open.transaction->frames.empty() &&
           open.transaction->begun < then;
  };
  if (is_old(whole_)) THALWEG_TRY(spill(whole_));
  for (auto& [xid, open] : streamed_) {
    if (is_old(open)) THALWEG_TRY(spill(open));
  }
  return {};
}

uint64_t Assembler::open_disk_bytes() const {
  const auto of = [](const Open& open) {
    return open.transaction && open.transaction->spilled ? open.transaction->spilled->disk_bytes() : 0;
  };
  uint64_t bytes = of(whole_);
  for (const auto& [xid, open] : streamed_) bytes += of(open);
  return bytes;
}

size_t Assembler::open_bytes() const {
  size_t bytes = whole_.transaction ? whole_.transaction->frames.held_bytes() : 0;
  for (const auto& [xid, open] : streamed_) bytes += open.transaction->frames.held_bytes();
  return bytes;
}

base::Result<bool> Assembler::spill_largest() {
  // Transactions that come whole share blocks: that of a small one would not come back.
  const bool whole_counts =
      whole_.transaction && !whole_.transaction->spilled && whole_.transaction->frames.bytes() >= kBlockBytes / 2;
  Open* largest = whole_counts ? &whole_ : nullptr;
  for (auto& [xid, open] : streamed_) {
    if (open.transaction->spilled || open.transaction->frames.empty()) continue;
    if (largest == nullptr || open.transaction->frames.bytes() > largest->transaction->frames.bytes()) largest = &open;
  }
  if (largest == nullptr) return false;
  THALWEG_TRY(spill(*largest));
  return true;
}

// Finishes a spill while its transaction still counts as open: it must not wait for the space that it takes.
base::Result<void> Assembler::finish_spill(Open& open) {
  if (!open.transaction->spilled) return {};
  return with_space([&] { return open.transaction->spilled->finish(); });
}

void Assembler::abort(const lcr::FrameView& frame) {
  const auto found = streamed_.find(frame.xid());
  if (found == streamed_.end()) return;  // nothing of it came
  const base::Xid subxid = frame.subxid();
  if (subxid && !(subxid == frame.xid())) {
    found->second.transaction->aborted.insert(subxid.value);
    return;
  }
  drop_fill(found->second);
  streamed_.erase(found);
  counters_.open_transactions.set(streamed_.size());
  counters_.aborted_transactions.add();
}

base::Result<std::unique_ptr<Transaction>> Assembler::finish(const lcr::FrameView& frame, bool is_applied) {
  std::unique_ptr<Transaction> transaction;
  std::optional<base::Error> trouble;
  uint64_t frames = 0;
  if (frame.has(lcr::kStreamed)) {
    const auto found = streamed_.find(frame.xid());
    if (found != streamed_.end()) {
      THALWEG_TRY(finish_spill(found->second));
      drop_fill(found->second);
      frames = found->second.frames;
      trouble = std::move(found->second.trouble);
      transaction = std::move(found->second.transaction);
      streamed_.erase(found);
      counters_.open_transactions.set(streamed_.size());
    } else {
      transaction = std::make_unique<Transaction>();  // all of its changes were other tables'
      transaction->xid = frame.xid();
      transaction->streamed = true;
      transaction->begun = shared_.clock->steady_now();
    }
  } else {
    if (!whole_.transaction) return base::fail(ErrorCode::corrupt_frame, "COMMIT without BEGIN");
    THALWEG_TRY(finish_spill(whole_));
    transaction = std::exchange(whole_.transaction, nullptr);
    trouble = std::exchange(whole_.trouble, std::nullopt);
    frames = whole_.frames;
  }
  const lcr::TransactionMark mark = frame.transaction_mark();
  transaction->commit_lsn = mark.commit_lsn;
  transaction->end_lsn = std::max(mark.end_lsn, base::Lsn{mark.commit_lsn.value + 1});
  transaction->commit_time = mark.commit_time;
  if (transaction->spilled) {
    transaction->lcrs = frames;
    transaction->bytes = transaction->spilled->bytes();
  }
  if (is_applied) return transaction;
  if (trouble) return std::unexpected(std::move(*trouble));
  const auto serialization = shared_.parameters.commit_serialization.load(std::memory_order_relaxed);
  THALWEG_TRY(write_sets_.build(*transaction, serialization != CommitSerialization::none));
  return transaction;
}

}  // namespace thalweg::apply
