#include "capture/wal/wal_capture.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/sentences.h"
#include "capture/wal/masked_columns.h"
#include "capture/wal/wal_start.h"
#include "shipment/source_identity.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;
using namespace std::chrono_literals;

// PROGRESS frames are not more frequent than this.
constexpr std::chrono::milliseconds kProgressInterval{100};
// How late a stop or a new durable position is noticed while nothing arrives.
constexpr std::chrono::milliseconds kWaitMax{100};
// The state is written, and so WAL and dictionaries are dropped, not more often than this.
constexpr std::chrono::milliseconds kStateInterval{1000};
// Marks of what destinations have not got yet. Beyond that every second one goes: a restart then begins a little
// earlier.
constexpr size_t kMarksMax = 4096;
// So many dictionaries are saved at their interval; while more wait for their turn, later ones come at a longer one.
constexpr uint64_t kDictionariesNear = 8;
// Of the staged WAL's limit: what is older than a dictionary can go, so there have to be some within it.
constexpr uint64_t kDictionariesOfStaging = 4;
constexpr std::chrono::seconds kStuckPatience{5};
// Of the limit, and in segments: what is kept for searches leaves so much free.
constexpr uint64_t kRoomOfStaging = 8;
constexpr uint64_t kRoomSegments = 2;

}  // namespace

std::unique_ptr<Capture> make_wal_capture(CaptureOptions options) {
  return std::make_unique<WalCapture>(std::move(options));
}

WalCapture::WalCapture(CaptureOptions options)
    : CaptureAgent(std::move(options)),
      dictionary_interval_(std::min(options_.mining.dictionary_interval_bytes,
                                    options_.mining.staging_bytes_max / kDictionariesOfStaging)),
      folder_(options_.mining.folder),
      archive_([&]() -> std::optional<shipment::Archive> {
        if (!options_.mining.archive) return std::nullopt;
        return std::optional<shipment::Archive>(std::in_place, *options_.mining.archive, folder_.scratch() / "again",
                                                &stop_);
      }()),
      shipment_({.source = options_.source_conninfo,
                 .slot = options_.slot,
                 .directory = folder_.staging(),
                 .clock = *options_.clock,
                 .stop = nullptr,
                 .bytes_max = options_.mining.staging_bytes_max},
                options_.mining.archive, folder_.scratch() / "next") {}

WalCapture::~WalCapture() {
  request_stop();
  join();
}

std::vector<telemetry::ComponentSample> WalCapture::parts() const {
  return {shipment_.sample(),
          {.type = "CAPTURE",
           .name = "capture",
           .sub_component = "LOGMINER BUILDER",
           .server = 0,
           .state = state_.get(),
           .time_ns = {},
           .counters = {{"image_bytes", image_bytes_.get()},
                        {"mined_bytes", mined_bytes_.get()},
                        {"records", records_.get()},
                        {"streamed_transactions", streamed_transactions_.get()}},
           .gauges = {{"held_bytes", held_bytes_.load(std::memory_order_relaxed)},
                      {"kept_bytes", kept_bytes_.load(std::memory_order_relaxed)},
                      {"memory_limit_bytes", static_cast<int64_t>(options_.mining.memory_bytes)},
                      {"open_transactions", open_transactions_.load(std::memory_order_relaxed)},
                      {"open_wal_bytes", open_wal_bytes_.load(std::memory_order_relaxed)}}}};
}

base::Result<void> WalCapture::work() {
  {
    const ActivityScope network(time_, Activity::network);
    THALWEG_TRY(connect());
    THALWEG_TRY(open_shipment());
  }
  if (is_stopped()) return {};
  THALWEG_TRY(begin_mining());
  auto mined = mine_until_stopped();
  // A transaction that was being enqueued when the stop came, comes again.
  if (!mined && mined.error().code == ErrorCode::engine_stopping && is_stopped()) return {};
  return mined;
}

base::Result<void> WalCapture::connect() {
  const pg::ConnectOptions session{.application_name = application_name_, .abandon = &stop_};
  THALWEG_ASSIGN(pg::ReplicationStream replication, pg::ReplicationStream::open(options_.source_conninfo, session));
  THALWEG_ASSIGN(source_, shipment::identify(replication));
  if (options_.timeline != 0 && source_.history.timeline() != options_.timeline) {
    return base::fail(ErrorCode::connection_lost,
                      fmt::format("the source has gone from timeline {} to {} meanwhile", options_.timeline,
                                  source_.history.timeline()),
                      base::ErrorSide::source);
  }
  THALWEG_ASSIGN(GoingOn going_on, check_mining(folder_, source_, options_.start));
  state_on_disk_ = std::move(going_on.state);
  again_until_ = going_on.again_until;
  if (state_on_disk_.segment_bytes != source_.segment_bytes) {
    // An earlier engine has not written it. Searches read it from the disk.
    state_on_disk_.segment_bytes = source_.segment_bytes;
    THALWEG_TRY(folder_.write_state(state_on_disk_));
  }
  // Before the staged WAL is cut back: a kill in between is made good by doing it again.
  THALWEG_ASSIGN(const auto left_at, folder_.left_at(source_));
  if (left_at) THALWEG_TRY(folder_.cut_back(*left_at, state_on_disk_));
  THALWEG_ASSIGN(pg::Connection source, pg::Connection::open(options_.source_conninfo, session));
  THALWEG_TRY(check_source(source));
  THALWEG_ASSIGN(tables_, MinedTables::read(source, options_.publications));
  THALWEG_TRY(tables_.recall(folder_.tables(), state_on_disk_.first_restart()));
  THALWEG_ASSIGN(MaskedColumns masked, MaskedColumns::load(folder_.masked_columns()));
  THALWEG_TRY(masked.note(source, options_.rules.transformations, state_on_disk_.first_restart()));
  THALWEG_TRY(masked.save(folder_.masked_columns()));
  if (filters_) {
    THALWEG_TRY(filters_->locate());
    filters_->at_source().left_to_engine("the capture mines the source's WAL");
  }
  probe_.emplace(options_.source_conninfo, application_name_,
                 SourceEndProbe::Heartbeats{.primary = {},
                                            .system_identifier = std::to_string(source_.system_identifier),
                                            .board = &markers_,
                                            .prefix = options_.slot,
                                            .interval = options_.heartbeat_interval,
                                            .clock = options_.clock});
  return {};
}

base::Result<void> WalCapture::open_shipment() {
  shipment_.begin(source_);
  while (!shipment_.report() && !is_stopped()) {
    const uint32_t ticket = shipment_.bell().ticket();
    if (auto failed = shipment_.failure()) return std::unexpected(std::move(*failed));
    if (!shipment_.report()) shipment_.bell().wait(ticket, kWaitMax);
  }
  return {};
}

base::Result<void> WalCapture::begin_mining() {
  THALWEG_ASSIGN(MiningBegin begun, folder_.begin(state_on_disk_));
  const base::Lsn from = std::max(options_.start, state_on_disk_.at.confirmed);
  dictionary_.emplace(std::move(begun.dictionary));
  builder_.emplace(
      *dictionary_,
      mining::BuilderOptions{.from = from,
                             .is_wanted = [this](uint32_t table) { return tables_.wanted(table); },
                             .sink = this,
                             .message_prefix = options_.heartbeat_interval.count() > 0 ? options_.slot : std::string{},
                             .memory_bytes = options_.mining.memory_bytes});
  staged_.emplace(
      shipment::StagedWalOptions{
          .directory = folder_.staging(), .identity = source_, .archive = archive_ ? &*archive_ : nullptr},
      base::Lsn{begun.from.value - begun.from.value % wal::kPageBytes});
  reader_.emplace(wal::WalReaderOptions{
      .start = begun.from, .segment_bytes = source_.segment_bytes, .timeline_at = source_.timeline_at()});
  mined_ = begun.from;
  if (dictionary_->is_ready()) saved_at_ = begun.from;
  begin_at(from);
  progress_enqueued_ = from;
  reported_.store(state_on_disk_.at.confirmed.value, std::memory_order_relaxed);
  streaming_.store(0, std::memory_order_relaxed);
  committed_at_ = state_on_disk_.at.time;
  THALWEG_TRY(drop_unneeded());
  base::log_event(base::LogLevel::info, "mining_goes_on",
                  {{"stream", options_.stream_id},
                   {"mines_from", base::to_string(begun.from)},
                   {"captures_from", base::to_string(from)}});
  if (again_until_) {
    base::log_event(
        base::LogLevel::warning, "mining_goes_back",
        {{"stream", options_.stream_id}, {"from", base::to_string(from)}, {"to", base::to_string(again_until_)}});
  }
  return {};
}

base::Result<void> WalCapture::mine_until_stopped() {
  while (!is_stopped()) {
    const uint32_t ticket = shipment_.bell().ticket();
    THALWEG_ASSIGN(const auto bytes, staged_->read(readable_end()));
    if (!bytes.empty()) {
      time_.enter(Activity::busy);
      state_.set(!dictionary_->is_ready() ? "DICTIONARY INITIALIZATION"
                 : mined_ < again_until_  ? "MINING AGAIN"
                                          : "CAPTURING CHANGES");
      THALWEG_TRY(mine(bytes));
      shipment_.set_read_to(staged_->position());
      THALWEG_TRY(serve_timers());
      continue;
    }
    if (auto failed = shipment_.failure()) return std::unexpected(std::move(*failed));
    options_.queue->flush();
    THALWEG_TRY(serve_timers());
    auto full = staging_trouble(options_.clock->steady_now());
    auto trouble = shipment_.trouble();
    if (full && trouble) base::add_sentence(full->message, trouble->message);
    set_trouble(full ? std::move(full) : std::move(trouble));
    await_wal(ticket);
  }
  return {};
}

base::Result<void> WalCapture::mine(std::span<const std::byte> bytes) {
  reader_->feed(bytes);
  while (true) {
    THALWEG_ASSIGN(const wal::WalRecord* const record, reader_->next());
    if (record == nullptr) return {};
    if (tables_.go_to(record->begin)) builder_->forget_tables();
    THALWEG_TRY(parts_.parse(*record, *reader_->format()));
    THALWEG_TRY(builder_->apply(*record, parts_, *reader_->format()));
    mined_ = record->end;
    records_.add();
    mined_bytes_.add(record->end.value - record->begin.value);
    image_bytes_.add(parts_.image_bytes());
  }
}

void WalCapture::await_wal(uint32_t ticket) {
  const bool has_all = staged_end().value >= source_end_.load(std::memory_order_relaxed);
  if (has_all && dictionary_->is_ready()) state_.set("WAITING FOR WAL");
  time_.enter(has_all ? Activity::idle : Activity::network);
  shipment_.bell().wait(ticket, kWaitMax);
}

base::Lsn WalCapture::staged_end() const {
  const auto report = shipment_.report();
  return report ? report->end : base::Lsn{};
}

base::Lsn WalCapture::readable_end() const {
  const auto report = shipment_.report();
  return report ? report->whole : base::Lsn{};
}

// --- positions

base::Result<void> WalCapture::serve_timers() {
  const auto now = options_.clock->steady_now();
  THALWEG_TRY(look_at_source());
  if (dictionary_->is_ready()) {
    note_captured(mined_);
    THALWEG_TRY(put_due_progress(now));
  }
  THALWEG_TRY(save_due_dictionary(false));
  note_mined_again();
  THALWEG_TRY(note_confirmed(false));
  note_kept();
  streamed_transactions_.set(builder_->streamed_transactions());
  held_bytes_.store(static_cast<int64_t>(builder_->held_bytes()), std::memory_order_relaxed);
  open_transactions_.store(static_cast<int64_t>(builder_->open_transactions()), std::memory_order_relaxed);
  open_wal_bytes_.store(static_cast<int64_t>(mined_.value - mark().restart.value), std::memory_order_relaxed);
  publish_counters();
  return {};
}

base::Result<void> WalCapture::look_at_source() {
  const auto staged = shipment_.report().value_or(shipment::StagingReport{});
  source_end_.store(std::max(probe_->position(), staged.end).value, std::memory_order_relaxed);
  return watch_shutdown(probe_->is_shutting_down(), staged.durable);
}

base::Result<void> WalCapture::put_due_progress(std::chrono::steady_clock::time_point now) {
  if (mined_ <= progress_enqueued_ || now - progress_at_ < kProgressInterval) return {};
  const auto report = shipment_.report();
  const bool is_known = report && report->server_time != base::UnixMicros{};
  THALWEG_ASSIGN(const bool taken, put_progress(mined_, is_known ? report->server_time : options_.clock->unix_now()));
  if (!taken) return {};
  progress_enqueued_ = mined_;
  progress_at_ = now;
  add_mark(false);
  return {};
}

WalCapture::Mark WalCapture::mark() const {
  const base::Lsn first_open = builder_->first_open();
  return {.position = mined_, .restart = first_open ? std::min(first_open, mined_) : mined_, .time = committed_at_};
}

// Destinations have what a start mines again: nothing passes them that would say so. Without this a full staging that
// ends at what they have would stay full.
void WalCapture::note_mined_again() {
  if (!marks_.empty() || mined_ > confirmed() || mined_ < state_on_disk_.at.confirmed) return;
  const Mark here = mark();
  if (here.restart > state_on_disk_.at.restart) confirmed_ = here;
}

void WalCapture::add_mark(bool has_dictionary) {
  marks_.push_back(mark());
  marks_.back().has_dictionary = has_dictionary;
  if (marks_.size() <= kMarksMax) return;
  bool keeps = true;
  std::erase_if(marks_, [&](const Mark&) { return !std::exchange(keeps, !keeps); });
}

uint64_t WalCapture::crowding_bytes() const {
  const uint64_t limit = options_.mining.staging_bytes_max;
  const uint64_t room = std::max(limit / kRoomOfStaging, kRoomSegments * source_.segment_bytes);
  const uint64_t most = limit - std::min(limit, room);
  const uint64_t staged = shipment_.report().value_or(shipment::StagingReport{}).bytes;
  return staged - std::min(staged, most);
}

base::Result<void> WalCapture::drop_unneeded() {
  const base::Lsn begin = shipment_.report().value_or(shipment::StagingReport{}).begin;
  const Keeping keeping{.bytes = options_.mining.keep_bytes, .possible_from = {begin.value + crowding_bytes()}};
  THALWEG_ASSIGN(const base::Lsn wanted, folder_.drop_unneeded(state_on_disk_, keeping));
  shipment_.set_needed_from(wanted);
  return {};
}

// Anew at each look: the shipment removes what may go when it comes to it.
void WalCapture::note_kept() {
  const base::Lsn begin = shipment_.report().value_or(shipment::StagingReport{}).begin;
  const base::Lsn needed = begin ? std::max(folder_.needed_from(), begin) : begin;
  kept_bytes_.store(static_cast<int64_t>(needed.value - begin.value), std::memory_order_relaxed);
}

base::Result<void> WalCapture::note_confirmed(bool at_once) {
  // With the state that is on the disk only: a start goes by that.
  if (!confirmed_ && folder_.keeps() && crowding_bytes() > 0) THALWEG_TRY(drop_unneeded());
  const base::Lsn durable = confirmed();
  while (!marks_.empty() && marks_.front().position <= durable) {
    // The oldest position to which mining can go back later on.
    if (marks_.front().has_dictionary) state_on_disk_.advance(position_of(marks_.front()));
    confirmed_ = marks_.front();
    marks_.pop_front();
  }
  const auto now = options_.clock->steady_now();
  if (!confirmed_ || (!at_once && now - state_written_at_ < kStateInterval)) return {};
  state_written_at_ = now;
  state_on_disk_.advance(position_of(*confirmed_));
  confirmed_.reset();
  THALWEG_TRY(folder_.write_state(state_on_disk_));
  reported_.store(state_on_disk_.at.confirmed.value, std::memory_order_relaxed);
  return drop_unneeded();
}

base::Result<void> WalCapture::save_due_dictionary(bool at_once) {
  if (!dictionary_->is_ready()) return {};
  const uint64_t waiting = folder_.dictionaries() / kDictionariesNear;
  const uint64_t interval = at_once && waiting == 0 ? 0 : dictionary_interval_ * std::max<uint64_t>(1, waiting);
  if (saved_at_ && mined_.value - saved_at_.value < interval) return {};
  THALWEG_ASSIGN(const bool is_saved, folder_.save(*dictionary_));
  if (!is_saved) return {};
  saved_at_ = mined_;
  // At the end the builder may stand in the middle of a commit. Where dictionaries are far apart, mining may not have
  // come to its position yet.
  if (!at_once && mined_ >= state_on_disk_.at.confirmed) add_mark(true);
  return {};
}

std::optional<base::Error> WalCapture::staging_trouble(std::chrono::steady_clock::time_point now) {
  const auto report = shipment_.report();
  if (!report || !report->is_full) {
    stuck_since_.reset();
    return std::nullopt;
  }
  if (!stuck_since_) stuck_since_ = now;
  if (now - *stuck_since_ < kStuckPatience) return std::nullopt;
  const base::Lsn first_open = builder_->first_open();
  return base::fail(
             ErrorCode::spill_limit_reached,
             fmt::format("The staged WAL has reached staging_limit_mb ({} MiB), and all of it is mined. {}",
                         options_.mining.staging_bytes_max >> 20,
                         first_open && first_open < confirmed()
                             ? fmt::format("A transaction that is open since {} needs it.", base::to_string(first_open))
                             : "Destinations do not have it yet."),
             base::ErrorSide::engine)
      .error();
}

// --- the end

base::Result<void> WalCapture::while_held_back() {
  if (auto failed = shipment_.failure()) return std::unexpected(std::move(*failed));
  THALWEG_TRY(look_at_source());
  THALWEG_TRY(note_confirmed(false));
  note_kept();
  return {};
}

// A dictionary at the end, where nothing is open: the next start then begins there.
base::Result<void> WalCapture::await_end() {
  const ActivityScope idle(time_, Activity::idle);
  while (!is_ended()) {
    THALWEG_TRY(note_confirmed(false));
    std::this_thread::sleep_for(5ms);
  }
  if (dictionary_) THALWEG_TRY(save_due_dictionary(true));
  return builder_ ? note_confirmed(true) : base::Result<void>{};
}

void WalCapture::release() {
  shipment_.end();
  probe_.reset();
}

}  // namespace thalweg::capture
