#include "shipment/receiver.h"

#include <fmt/format.h>

#include <charconv>

namespace thalweg::shipment {

namespace {

constexpr std::chrono::milliseconds kLook{100};

// In bytes, as pg_settings has it: SHOW would say "16MB".
base::Result<uint32_t> segment_bytes_of(pg::Connection& connection) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.script("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'"));
  return static_cast<uint32_t>(rows.integer(0, 0));
}

// 0 would be any system's.
base::Result<uint64_t> number_of(const std::string& identifier) {
  uint64_t number = 0;
  const char* const end = identifier.data() + identifier.size();
  const auto [stopped, error] = std::from_chars(identifier.data(), end, number);
  if (error == std::errc{} && stopped == end && number != 0) return number;
  return base::fail(base::ErrorCode::protocol_violation,
                    fmt::format("The source's system identifier is {}, no number.", identifier));
}

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

}  // namespace

base::Result<void> Receiver::run() {
  THALWEG_TRY(start());
  while (!*options_.stop) THALWEG_TRY(receive());
  THALWEG_TRY(staging_->sync());
  return tell();
}

base::Result<void> Receiver::start() {
  THALWEG_ASSIGN(stream_, pg::ReplicationStream::open(options_.source,
                                                      {.application_name = options_.slot, .abandon = options_.stop}));
  THALWEG_ASSIGN(const pg::SystemIdentity identity, stream_->identify());
  THALWEG_ASSIGN(const uint32_t segment_bytes, segment_bytes_of(stream_->connection()));
  THALWEG_ASSIGN(restart_, restart_of(stream_->connection(), options_.slot));
  THALWEG_ASSIGN(const uint64_t system, number_of(identity.system_identifier));
  THALWEG_ASSIGN(staging_, Staging::open({.directory = options_.directory,
                                          .segment_bytes = segment_bytes,
                                          .system_identifier = system,
                                          .timeline = static_cast<uint32_t>(identity.timeline)}));
  // A segment from its begin: the slot keeps whole ones.
  if (!staging_->end()) staging_->begin_at({restart_.value - restart_.value % segment_bytes});
  synced_at_ = told_at_ = options_.clock.steady_now();
  THALWEG_TRY(stream_->start_physical(options_.slot, staging_->end(), identity.timeline));
  options_.on_durable(staging_->durable());
  return tell();
}

base::Result<void> Receiver::receive() {
  THALWEG_ASSIGN(const auto message, stream_->receive(kLook));
  if (message && !message->is_keepalive) {
    if (message->wal_start != staging_->end()) {
      return base::fail(base::ErrorCode::protocol_violation,
                        fmt::format("The source sent WAL from {} on, and {} was next.", to_string(message->wal_start),
                                    to_string(staging_->end())));
    }
    THALWEG_TRY(staging_->append(message->payload));
  }
  THALWEG_TRY(sync_if_due());
  const bool is_due = options_.clock.steady_now() - told_at_ >= kFeedbackInterval;
  if (is_due || told_ != staging_->durable() || (message && message->reply_requested)) return tell();
  return {};
}

base::Result<void> Receiver::sync_if_due() {
  if (staging_->unsynced() == 0) {
    synced_at_ = options_.clock.steady_now();
    return {};
  }
  const bool is_due = options_.clock.steady_now() - synced_at_ >= kSyncInterval;
  if (!is_due && staging_->unsynced() < kUnsyncedBytesMax) return {};
  THALWEG_TRY(staging_->sync());
  synced_at_ = options_.clock.steady_now();
  return {};
}

base::Result<void> Receiver::tell() {
  const base::Lsn durable = staging_->durable();
  options_.on_durable(durable);
  told_ = durable;
  told_at_ = options_.clock.steady_now();
  // A lower position than its own would move the slot back.
  const base::Lsn flushed = std::max(durable, restart_);
  return stream_->send_feedback(
      {.written = std::max(staging_->end(), flushed), .flushed = flushed, .applied = flushed});
}

}  // namespace thalweg::shipment
