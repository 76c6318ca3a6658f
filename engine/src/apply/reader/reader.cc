#include "apply/reader/reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;
using telemetry::Activity;
using telemetry::ActivityScope;

namespace {
constexpr std::chrono::milliseconds kQueueWait{100};
constexpr std::chrono::milliseconds kFlowControlWait{10};
constexpr std::chrono::seconds kAgesLook{1};
constexpr std::chrono::seconds kShowPause{1};
constexpr size_t kFramesPerLook = 256;  // between looks at stop and at the memory budget

// A note that all that commits below `lsn` has been handed over or was there: only the low watermark moves.
std::unique_ptr<Transaction> passed(base::Lsn lsn) {
  auto transaction = std::make_unique<Transaction>();
  transaction->commit_lsn = transaction->end_lsn = lsn;
  return transaction;
}

}  // namespace

Reader::Reader(SharedState& shared, const ApplyOptions& options, LsnRanges applied, pg::Connection connection,
               BlockPool& pool, spill::SpillSpace& spill, metadata::MetadataCache& cache, TransactionQueue& out)
    : shared_(shared),
      frames_(*options.frames),
      on_partitions_(options.on_partitions),
      memory_budget_bytes_(options.parameters.memory_budget_bytes),
      recovered_low_watermark_{shared.low_watermark.load(std::memory_order_relaxed)},
      applied_(std::move(applied)),
      pool_(pool),
      spill_(spill),
      out_(out),
      cache_(cache),
      tables_(cache, std::move(connection), options.catch_up, shared.stream_id, time_, shared.compared,
              shared.statement_handlers),
      watch_(shared.destination_conninfo, shared.connect_options("reader watch")),
      assembler_(shared, pool, spill, time_, tables_, counters_, [this] { return await_spill_space(); }) {
  producer_works_ = frames_.let_producer_work(frames_bell_, [this] { return try_work(); });
  thread_ = std::thread([this] { run(); });
}

Reader::~Reader() {
  join();
  if (producer_works_) frames_.end_producer_work();
}

void Reader::join() {
  if (!thread_.joinable()) return;
  shared_.reader_bell.ring();
  thread_.join();
}

// Keeps the baton at its end.
void Reader::run() {
  state_.set("DEQUEUE MESSAGES");
  time_.enter(Activity::busy);
  const auto done = read();
  if (!done && done.error().code != ErrorCode::engine_stopping) out_.fail_with(done.error());
  assembler_.drop_fill();
  state_.set("IDLE");
  out_.close();
}

base::Result<void> Reader::read() {
  size_t frames = 0;
  while (true) {
    if (failure_) return std::unexpected(*failure_);
    if (++frames % kFramesPerLook == 0) {
      if (shared_.ending()) return {};
      tend_tables();
      THALWEG_TRY(keep_within_budget());
      THALWEG_TRY(spill_old());
      THALWEG_TRY(watch_destination());
      if (failure_) continue;
    }
    const uint32_t ticket = frames_bell_.ticket();
    THALWEG_ASSIGN(const std::byte* bytes, frames_.browse(std::chrono::microseconds{0}));
    if (bytes == nullptr) {
      assembler_.rest();
      state_.set("IDLE");
      time_.enter(Activity::idle);
      THALWEG_ASSIGN(bytes, await(ticket));
      time_.enter(Activity::busy);
      if (bytes == nullptr) {
        if (failure_) continue;
        if (shared_.ending() || shared_.drain.load(std::memory_order_acquire)) return {};
        tend_tables();
        THALWEG_TRY(spill_old());
        THALWEG_TRY(watch_destination());
        continue;
      }
      if (failure_) continue;
      state_.set("DEQUEUE MESSAGES");
    }
    THALWEG_TRY(take(lcr::FrameView::trusted(bytes)));
    out_.announce();
  }
}

base::Result<const std::byte*> Reader::await(uint32_t ticket) {
  if (!producer_works_) return frames_.browse(kQueueWait);
  baton_.sleep([&] {
    frames_bell_.wait(ticket, kQueueWait);
    ticket = frames_bell_.ticket();
  });
  return frames_.browse(std::chrono::microseconds{0});
}

base::Result<void> Reader::take(const lcr::FrameView& frame) {
  THALWEG_ASSIGN(auto transaction, handle(frame));
  // Before a wait for room: the queue's memory is not ours to hold meanwhile.
  frames_.dequeue();
  return transaction ? hand_over(std::move(transaction)) : base::Result<void>{};
}

// While little comes the agent is not woken: that would be one more wait for a processor on a change's way. Work that
// may have to wait for something, or is exceptional, is the agent's.
bool Reader::try_work() {
  bool done = true;
  baton_.work([&] { done = look(); });
  return done;
}

// A look by the producer. False: something is left for the agent.
bool Reader::look() {
  if (failure_ || shared_.ending()) return false;
  time_.enter(Activity::busy);
  bool done = false;
  for (size_t frames = 0; frames < shared_.policy.news_frames_max && !failure_; ++frames) {
    const auto bytes = frames_.browse(std::chrono::microseconds{0});
    if (!bytes) break;  // the agent meets the same
    done = *bytes == nullptr;
    if (done || !is_little(lcr::FrameView::trusted(*bytes))) break;
    if (auto taken = take(lcr::FrameView::trusted(*bytes)); !taken) failure_ = std::move(taken).error();
  }
  out_.announce();  // what came together goes out together: the next would have to wait for the first one's end
  assembler_.rest();
  if (done) state_.set("IDLE");
  time_.enter(Activity::idle);
  return done;
}

bool Reader::is_little(const lcr::FrameView& frame) const {
  if (frame.header().length > shared_.policy.news_frame_bytes_max || out_.full() ||
      pool_.held_bytes() > memory_budget_bytes_)
    return false;
  const size_t spill_above = shared_.parameters.txn_lcr_spill_threshold.load(std::memory_order_relaxed);
  return frame.kind() == FrameKind::progress ||
         assembler_.takes_at_once(frame, std::min(shared_.policy.news_frames_max, spill_above));
}

base::Result<std::unique_ptr<Transaction>> Reader::handle(const lcr::FrameView& frame) {
  if (lcr::is_change(frame.kind())) lcrs_.add();
  bytes_.add(frame.header().length);
  if (frame.kind() == FrameKind::table) {
    THALWEG_TRY(tables_.describe(frame));
    return nullptr;
  }
  if (frame.kind() == FrameKind::progress) return passed(frame.lsn());
  const size_t spill_above = shared_.parameters.txn_lcr_spill_threshold.load(std::memory_order_relaxed);
  if (lcr::is_change(frame.kind()) && tables_.leaves_out_any()) {
    if (frame.kind() == FrameKind::truncate) return handle_truncate(frame, spill_above);
    if (tables_.leaves_out(frame.relation())) return nullptr;
  }
  const bool is_applied = frame.kind() == FrameKind::commit && is_duplicate(frame.transaction_mark().commit_lsn);
  THALWEG_ASSIGN(auto transaction, assembler_.add(frame, spill_above, is_applied));
  if (!transaction) {
    state_.set(assembler_.is_spilling() ? "SPILLING" : "DEQUEUE MESSAGES");
    return nullptr;
  }
  transactions_.add();
  if (is_applied) {
    duplicates_.add();
    return passed(transaction->end_lsn);  // nothing may come behind it that says so: it may end a log
  }
  if (!transaction->partitions.empty()) {
    THALWEG_ASSIGN(const bool any, tables_.note_partitions(*transaction));
    if (any && on_partitions_) on_partitions_();
  }
  if (transaction->empty()) {
    markers_.note({transaction->commit_lsn, transaction->commit_time, shared_.clock->unix_now()});
  }
  transaction->barrier = tables_.take_keys_changed() || transaction->barrier;
  tables_.hand_over(transaction->commit_lsn);
  return transaction;
}

// One TRUNCATE may name several tables: those that are left out are not to be found in what goes on.
base::Result<std::unique_ptr<Transaction>> Reader::handle_truncate(const lcr::FrameView& frame, size_t spill_above) {
  std::vector<base::RelationId> relations = frame.truncated_relations();
  std::erase_if(relations, [this](base::RelationId relation) { return tables_.leaves_out(relation); });
  if (relations.empty()) return nullptr;
  const auto rest = lcr::make_truncate_frame(frame.xid(), frame.subxid(), frame.lsn(), frame.header().flags, relations);
  return assembler_.add(lcr::FrameView::trusted(rest.data()), spill_above);
}

bool Reader::is_duplicate(base::Lsn commit_lsn) const {
  return commit_lsn < recovered_low_watermark_ || applied_.contains(commit_lsn);
}

// Frees metadata that nobody can use any more.
void Reader::tend_tables() {
  show_transactions();
  tables_.purge({shared_.low_watermark.load(std::memory_order_acquire)}, assembler_.any_open());
}

base::Result<void> Reader::watch_destination() {
  const auto watched = tables_.to_watch(shared_.clock->steady_now());
  if (watched.empty()) return {};
  time_.enter(Activity::idle);  // a thread with news says itself what it does
  base::Result<std::vector<metadata::DestinationVersion>> versions;
  baton_.lend([&] { versions = watch_.look(watched); },
              [this] { frames_bell_.wait(frames_bell_.ticket(), kFlowControlWait); });
  time_.enter(Activity::busy);
  THALWEG_TRY(versions);
  tables_.compare(watched, *versions);
  return {};
}

void Reader::show_transactions() {
  const auto now = shared_.clock->steady_now();
  if (now - shown_at_ < kShowPause) return;
  shown_at_ = now;
  const bool any = assembler_.any_open();
  if (any || shown_any_) shown_.publish(assembler_.sample());
  shown_any_ = any;
}

base::Result<void> Reader::hand_over(std::unique_ptr<Transaction> transaction) {
  if (out_.push(transaction)) return {};
  out_.announce();
  state_.set("PAUSED FOR FLOW CONTROL");
  const ActivityScope waiting(time_, Activity::flow_control);
  out_.set_reader_waits(true);
  while (true) {
    const uint32_t ticket = shared_.reader_bell.ticket();
    if (out_.push(transaction)) break;
    if (shared_.ending()) {
      out_.set_reader_waits(false);
      return base::fail(ErrorCode::engine_stopping, "apply ends");
    }
    tend_tables();
    shared_.reader_bell.wait(ticket, kFlowControlWait);
  }
  out_.set_reader_waits(false);
  state_.set("DEQUEUE MESSAGES");
  return {};
}

// Complete transactions give their memory back as they are applied: the source waits for that. Open ones may not
// commit for long: the largest go to disk.
base::Result<void> Reader::keep_within_budget() {
  while (pool_.held_bytes() > memory_budget_bytes_) {
    if (assembler_.open_bytes() > memory_budget_bytes_ / 2) {
      state_.set("SPILLING");
      THALWEG_ASSIGN(const bool spilled, assembler_.spill_largest());
      if (spilled) continue;
    }
    assembler_.drop_fill();
    state_.set("PAUSED FOR FLOW CONTROL");
    const ActivityScope waiting(time_, Activity::flow_control);
    const uint32_t ticket = shared_.reader_bell.ticket();
    if (shared_.ending()) return base::fail(ErrorCode::engine_stopping, "apply ends");
    tend_tables();
    if (pool_.held_bytes() > memory_budget_bytes_) shared_.reader_bell.wait(ticket, kFlowControlWait);
  }
  state_.set("DEQUEUE MESSAGES");
  return {};
}

// Spills transactions that have been in memory for too long, before memory is short: they are likely to wait on.
base::Result<void> Reader::spill_old() {
  const auto now = shared_.clock->steady_now();
  if (now - ages_seen_at_ < kAgesLook) return {};
  ages_seen_at_ = now;
  const std::chrono::seconds age_max{shared_.parameters.txn_age_spill_seconds.load(std::memory_order_relaxed)};
  return assembler_.spill_begun_before(now - age_max);
}

// Complete transactions give their segments back as they are applied. False when there is none to wait for.
bool Reader::await_spill_space() {
  if (shared_.ending() || spill_.use().bytes <= assembler_.open_disk_bytes()) return false;
  state_.set("PAUSED FOR FLOW CONTROL");
  const ActivityScope waiting(time_, Activity::flow_control);
  show_transactions();
  shared_.reader_bell.wait(shared_.reader_bell.ticket(), kFlowControlWait);
  return true;
}

telemetry::ComponentSample Reader::sample() const {
  const spill::SpillUse spill = spill_.use();
  const metadata::MetadataCache::Counts tables = cache_.counts();
  telemetry::ComponentSample out{
      .type = "APPLY",
      .name = "apply",
      .sub_component = "APPLY READER",
      .server = 0,
      .state = state_.get(),
      .time_ns = time_.sample(),
      .counters = {{"lcrs", lcrs_.get()},
                   {"transactions", transactions_.get()},
                   {"bytes", bytes_.get()},
                   {"aborted_transactions", counters_.aborted_transactions.get()},
                   {"duplicate_transactions", duplicates_.get()},
                   {"spilled_lcrs", counters_.spilled_lcrs.get()},
                   {"spilled_transactions", counters_.spilled_transactions.get()},
                   {"spilled_bytes", counters_.spilled_bytes.get()},
                   {"metadata_hits", tables.hits},
                   {"metadata_misses", tables.misses},
                   {"metadata_loads", tables.loads},
                   {"metadata_invalidations", tables.invalidations},
                   {"metadata_purged", tables.purged},
                   {"metadata_replaced", tables.replaced}},
      .gauges = {{"open_transactions", static_cast<int64_t>(counters_.open_transactions.get())},
                 {"held_bytes", static_cast<int64_t>(pool_.held_bytes())},
                 {"spill_transactions", static_cast<int64_t>(spill.logs)},
                 {"spill_bytes", static_cast<int64_t>(spill.bytes)},
                 {"spill_age_us", spill.age.count()},
                 {"metadata_bytes", static_cast<int64_t>(tables.bytes)},
                 {"metadata_tables", static_cast<int64_t>(tables.tables)}}};
  if (const auto latency = markers_.latency_micros()) out.gauges.emplace_back("marker_latency_us", *latency);
  return out;
}

}  // namespace thalweg::apply
