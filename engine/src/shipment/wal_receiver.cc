#include "shipment/wal_receiver.h"

#include <fmt/format.h>

#include <string_view>
#include <thread>
#include <utility>

#include "shipment/segment_name.h"
#include "shipment/source_identity.h"

namespace thalweg::shipment {

namespace {

constexpr std::chrono::milliseconds kLook{100};
// The newest segments never go: below that many, a limit would be reached for good.
constexpr uint64_t kSegmentsMin = 3;

// Where a slot keeps WAL from; none: it never kept any.
base::Result<base::Lsn> restart_of(pg::Connection& connection, const std::string& slot) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.script(fmt::format(
                     "SELECT restart_lsn FROM pg_catalog.pg_replication_slots WHERE slot_name = {} AND slot_type = "
                     "'physical'",
                     connection.quote_literal(slot))));
  const auto restart = rows.size() == 1 ? base::parse_lsn(rows.text(0, 0)) : std::nullopt;
  if (restart) return *restart;
  return base::fail(base::ErrorCode::slot_lost,
                    fmt::format("The source has no physical slot {} that keeps WAL.", slot));
}

// A segment that goes while its sender reads it is an internal error to the server (CheckXLogRemoved of
// src/backend/access/transam/xlog.c). Its text, in whatever language, has the segment's name.
bool names_segment(const base::Error& error, uint32_t segment_bytes) {
  constexpr size_t kLength = 24;
  const std::string_view text = error.message;
  for (size_t at = 0; at + kLength <= text.size(); ++at) {
    if (SegmentName::parse(text.substr(at, kLength), segment_bytes)) return true;
  }
  return false;
}

}  // namespace

StagingRoomOptions room_options(const WalReceiverOptions& options, const WalIdentity& identity) {
  return {.needed_from = options.needed_from,
          .read_to = options.read_to,
          .bytes_max = std::max<uint64_t>(options.bytes_max, kSegmentsMin * identity.segment_bytes),
          .archive = options.archive,
          .identity = identity,
          .clock = &options.clock};
}

base::Result<void> WalReceiver::run() {
  THALWEG_TRY(start());
  while (!*options_.stop && staging_->end() < timeline_end_) {
    auto received = receive();
    if (received) continue;
    if (received.error().sqlstate == "XX000" && names_segment(received.error(), report_.identity.segment_bytes)) {
      received.error().code = base::ErrorCode::slot_lost;
    }
    return received;
  }
  THALWEG_TRY(staging_->sync());
  return tell();
}

base::Result<void> WalReceiver::start() {
  THALWEG_ASSIGN(stream_, pg::ReplicationStream::open(options_.source,
                                                      {.application_name = options_.slot, .abandon = options_.stop}));
  THALWEG_ASSIGN(const WalIdentity found, identify(*stream_));
  THALWEG_TRY(check(found));
  if (staging_) {
    THALWEG_TRY(staging_->compare_page());
  } else {
    THALWEG_ASSIGN(staging_, Staging::open({.directory = options_.directory, .identity = found}));
  }
  room_.emplace(*staging_, room_options(options_, found));
  report_.identity = found;
  if (staging_->end()) report();
  THALWEG_ASSIGN(restart_, restart_of(stream_->connection(), options_.slot));
  // A segment from its begin: the slot keeps whole ones.
  if (!staging_->end()) staging_->begin_at(found.segment_of(restart_));
  synced_at_ = told_at_ = options_.clock.steady_now();
  const auto timeline = static_cast<int>(found.timeline_of(found.segment_of(staging_->next())));
  timeline_end_ = found.history.end_of(timeline).value_or(timeline_end_);
  THALWEG_TRY(stream_->start_physical(options_.slot, staging_->next(), timeline));
  options_.on_durable(staging_->durable());
  heard_at_ = options_.clock.steady_now();
  report();
  return tell();
}

base::Result<void> WalReceiver::check(const WalIdentity& found) {
  const WalIdentity& expected = options_.identity.is_known() || !staging_ ? options_.identity : staging_->identity();
  is_other_source_ = expected.is_known() && expected != found;
  if (!is_other_source_) return {};
  return base::fail(
      base::ErrorCode::connection_lost,
      fmt::format("the source is on timeline {} of system {} now, and was on {} of {}", found.history.timeline(),
                  found.system_identifier, expected.history.timeline(), expected.system_identifier),
      base::ErrorSide::source);
}

void WalReceiver::report() {
  report_.begin = staging_->begin();
  report_.end = staging_->end();
  report_.whole = staging_->whole();
  report_.durable = staging_->durable();
  report_.bytes = staging_->bytes();
  report_.is_full = room_->is_full();
  options_.on_staged(report_);
}

base::Result<void> WalReceiver::receive() {
  bool asked = false;
  THALWEG_TRY(make_room());
  if (room_->is_full()) {
    std::this_thread::sleep_for(kLook);
    heard_at_ = options_.clock.steady_now();  // nobody listens
  } else {
    THALWEG_ASSIGN(const auto message, stream_->receive(kLook));
    if (message) {
      THALWEG_TRY(take(*message));
      asked = message->reply_requested;
    } else {
      THALWEG_TRY(watch_silence());
    }
  }
  THALWEG_TRY(sync_if_due());
  const bool is_due = options_.clock.steady_now() - told_at_ >= kFeedbackInterval;
  if (is_due || told_ != forgettable() || asked) return tell();
  return {};
}

base::Result<void> WalReceiver::take(const pg::StreamMessage& message) {
  heard_at_ = options_.clock.steady_now();
  has_asked_ = false;
  report_.server_time = message.server_time;
  if (!message.is_keepalive) {
    if (message.wal_start != staging_->next()) {
      return base::fail(base::ErrorCode::protocol_violation,
                        fmt::format("The source sent WAL from {} on, and {} was next.", to_string(message.wal_start),
                                    to_string(staging_->next())));
    }
    THALWEG_TRY(staging_->append(message.payload));
  }
  report();
  return {};
}

base::Result<void> WalReceiver::watch_silence() {
  const auto now = options_.clock.steady_now();
  if (now - heard_at_ < kSilence) return {};
  heard_at_ = now;
  if (!std::exchange(has_asked_, true)) return tell(true);
  return base::fail(base::ErrorCode::connection_lost,
                    fmt::format("the source has sent nothing for {} s, not even the answer that it was asked for",
                                2 * kSilence.count()),
                    base::ErrorSide::source);
}

// An archive that cannot be used is told, and ends no connection: what nobody needs goes on making room.
base::Result<void> WalReceiver::make_room() {
  const auto made = room_->make();
  if (made && *made) report();
  const auto looked = room_->is_full() ? look_ahead() : base::Result<void>{};
  const base::Error* const failed = !made ? &made.error() : !looked ? &looked.error() : nullptr;
  const auto now = options_.clock.steady_now();
  if (failed == nullptr) {
    if (!archive_failed_at_ || now - *archive_failed_at_ < 2 * StagingRoom::kArchiveInterval) return {};
    archive_failed_at_.reset();
    options_.on_archive({});
    return {};
  }
  if (failed->code != base::ErrorCode::wal_archive_failed) return std::unexpected(*failed);
  archive_failed_at_ = now;
  options_.on_archive(*failed);
  return {};
}

// There is no room. The source need not keep for us what the archive has: once there is room it comes from there.
base::Result<void> WalReceiver::look_ahead() {
  const auto now = options_.clock.steady_now();
  if (options_.archive == nullptr || now - ahead_at_ < StagingRoom::kArchiveInterval) return {};
  const uint32_t segment = report_.identity.segment_bytes;
  const base::Lsn next = std::max(ahead_, {staging_->end().value - staging_->end().value % segment});
  ahead_at_ = now;
  THALWEG_ASSIGN(const auto archived, options_.archive->fetch(next, report_.identity));
  if (!archived) return {};
  ahead_.value = next.value + segment;
  ahead_at_ = {};
  return {};
}

base::Result<void> WalReceiver::sync_if_due() {
  if (staging_->unsynced() == 0) {
    synced_at_ = options_.clock.steady_now();
    return {};
  }
  const bool is_due = options_.clock.steady_now() - synced_at_ >= kSyncInterval;
  if (!is_due && staging_->unsynced() < kUnsyncedBytesMax) return {};
  THALWEG_TRY(staging_->sync());
  synced_at_ = options_.clock.steady_now();
  report();
  return {};
}

base::Result<void> WalReceiver::tell(bool asks) {
  const base::Lsn durable = staging_->durable();
  options_.on_durable(durable);
  told_ = forgettable();
  told_at_ = options_.clock.steady_now();
  // A lower position than its own would move the slot back.
  const base::Lsn flushed = std::max(told_, restart_);
  return stream_->send_feedback(
      {.written = std::max(staging_->end(), flushed), .flushed = flushed, .applied = flushed, .reply_requested = asks});
}

}  // namespace thalweg::shipment
