#include "capture/logical/logical_capture.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/log.h"
#include "capture/logical/batch_reader.h"
#include "capture/logical/slot.h"
#include "pg/text_array.h"
#include "pg/value_forms.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;
using namespace std::chrono_literals;

// The longest silence towards the source; a third of wal_sender_timeout where that is shorter.
constexpr std::chrono::milliseconds kFeedbackInterval{1000};
constexpr std::chrono::milliseconds kFeedbackIntervalMin{50};
// PROGRESS frames are not more frequent than this unless the source asks for a reply.
constexpr std::chrono::milliseconds kProgressInterval{100};
// How late a stop, a new durable position or a due timer is noticed while nothing arrives.
constexpr std::chrono::milliseconds kWaitMax{100};
// Timers and counters are served after so many messages when the source never pauses.
constexpr int kMessagesPerRound = 512;
// How long a session of ours that the server has not missed yet may hold the slot.
constexpr std::chrono::milliseconds kSlotPatience{10'000};
constexpr std::string_view kFeatureNotSupported = "0A000";
constexpr const char* kPublishedTables =
    "SELECT t.prrelid FROM pg_catalog.pg_publication_rel t JOIN pg_catalog.pg_publication p ON p.oid = t.prpubid "
    "WHERE p.pubname = ANY ($1::text[])";

// wal_sender_timeout as SHOW prints it ("1min", "2s", "500ms", "0").
std::chrono::milliseconds parse_interval(std::string_view text) {
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) value = value * 10 + (text[i] - '0');
  const std::string_view unit = text.substr(i);
  if (unit == "s") return std::chrono::seconds(value);
  if (unit == "min") return std::chrono::minutes(value);
  if (unit == "h") return std::chrono::hours(value);
  if (unit == "d") return std::chrono::days(value);
  return std::chrono::milliseconds(value);
}

}  // namespace

std::unique_ptr<Capture> make_logical_capture(CaptureOptions options) {
  return std::make_unique<LogicalCapture>(std::move(options));
}

LogicalCapture::~LogicalCapture() {
  request_stop();
  join();
}

base::Result<void> LogicalCapture::work() {
  {
    const ActivityScope network(time_, Activity::network);
    THALWEG_TRY(connect());
  }
  return read_until_stopped();
}

void LogicalCapture::release() {
  stream_.reset();
  fence_.reset();
  probe_.reset();
}

base::Result<void> LogicalCapture::connect() {
  THALWEG_ASSIGN(stream_, pg::ReplicationStream::open(options_.source_conninfo, application_name_));
  THALWEG_ASSIGN(const pg::SystemIdentity identity, stream_->identify());
  // The start has compared the timeline with what the destinations have. Another one now, after a failover, is for the
  // next start to compare.
  if (options_.timeline != 0 && identity.timeline != options_.timeline) {
    return base::fail(
        ErrorCode::connection_lost,
        fmt::format("the source has gone from timeline {} to {} meanwhile", options_.timeline, identity.timeline),
        base::ErrorSide::source);
  }
  THALWEG_ASSIGN(const SlotState slot, check_slot(*stream_, identity,
                                                  {.slot = options_.slot,
                                                   .application_name = application_name_,
                                                   .low_watermark = options_.start,
                                                   .system_identifier = options_.system_identifier,
                                                   .patience = kSlotPatience,
                                                   .at_standby = !options_.primary_conninfo.empty()}));
  plugin_ = slot.plugin;
  const base::Lsn from = std::max(options_.start, slot.confirmed_flush);
  auto interval = kFeedbackInterval;
  pg::ValueForms forms;
  {
    THALWEG_ASSIGN(pg::Connection connection,
                   pg::Connection::open(options_.source_conninfo, {.application_name = application_name_}));
    THALWEG_ASSIGN(const pg::Rows timeout, connection.query("SHOW wal_sender_timeout"));
    if (const auto limit = parse_interval(timeout.text(0, 0)); limit > 0ms) {
      interval = std::max(kFeedbackIntervalMin, std::min(interval, limit / 3));
    }
    THALWEG_ASSIGN(forms, pg::value_forms(connection, kPublishedTables, pg::text_array(options_.publications)));
  }
  std::string row_filters;
  if (filters_) {
    THALWEG_TRY(filters_->locate());
    THALWEG_ASSIGN(row_filters, filters_for_source());
  }
  begin_at(from);
  received_ = from;
  progress_enqueued_ = from;
  if (forms.needs_text) {
    base::log_event(
        base::LogLevel::info, "capture_in_text",
        {{"stream", options_.stream_id}, {"reason", "a published column's type has no usable binary form"}});
  }
  THALWEG_TRY(start_replication(from, !forms.needs_text, std::move(row_filters)));
  if (identity.standby) THALWEG_TRY(guard(identity));
  feedback_.emplace(options_.clock->steady_now(), interval);
  feedback_->request();
  probe_.emplace(options_.source_conninfo, application_name_,
                 SourceEndProbe::Heartbeats{
                     .primary = {.conninfo = options_.primary_conninfo, .application_name = application_name_},
                     .system_identifier = identity.system_identifier,
                     .board = &markers_,
                     .prefix = options_.slot,
                     .interval = options_.heartbeat_interval,
                     .clock = options_.clock});
  return {};
}

// Transactions come before their commit only where the source says which of their subtransactions committed: aborts
// alone, which is what pgoutput sends, are not all told (docs/decisions/subtransactions.md).
//
// Nor where a rule reads its transaction's tag or commit time, which a piece of one does not have yet.
//
// Rules that the plugin refuses, or knows nothing of, are evaluated here alone. Plugins of earlier versions refuse
// later ones.
base::Result<void> LogicalCapture::start_replication(base::Lsn from, bool binary, std::string row_filters) {
  const bool is_ours = plugin_ == pg::OutputPlugin::thalweg_output;
  const bool may_stream = is_ours && !options_.rules.reads_transaction;
  pg::ReplicationStream::StartOptions how{.plugin = plugin_,
                                          .batch_version = kBatchVersionMax,
                                          .binary = binary,
                                          .messages = is_ours || options_.heartbeat_interval.count() > 0,
                                          .row_filters = std::move(row_filters)};
  while (true) {
    how.streaming = may_stream && how.batch_version >= kBatchVersion;
    const auto started = stream_->start(options_.slot, from, options_.publications, how);
    if (started) break;
    const bool is_earlier =
        is_ours && started.error().sqlstate == kFeatureNotSupported && how.batch_version > kBatchVersionMin;
    if (is_earlier) --how.batch_version;
    const bool has_filters = !how.row_filters.empty();
    const bool gives_up_filters = has_filters && (!is_earlier || how.batch_version < kBatchVersionWithRowFilters);
    if (gives_up_filters) {
      THALWEG_TRY(leave_rules_to_engine(started.error()));
      how.row_filters.clear();
    } else if (!is_earlier) {
      return started;
    }
  }
  if (!how.row_filters.empty()) filters_->at_source().accepted();
  if (is_ours && how.batch_version >= kBatchVersionWithTruncatedPartitions) translator_.trust_truncated_partitions();
  streaming_.store(how.streaming ? 1 : 0, std::memory_order_relaxed);
  if (!how.streaming) {
    base::log_event(base::LogLevel::info, "transactions_come_whole",
                    {{"stream", options_.stream_id}, {"reason", why_whole()}});
  }
  return {};
}

const char* LogicalCapture::why_whole() const {
  if (plugin_ == pg::OutputPlugin::pgoutput) {
    return "pgoutput does not tell of every subtransaction that is rolled back";
  }
  if (options_.rules.reads_transaction) return "rules read the tag or the commit time";
  return "the source's thalweg_output is of an earlier version, which does not say which subtransactions committed";
}

base::Result<std::string> LogicalCapture::filters_for_source() {
  if (plugin_ == pg::OutputPlugin::pgoutput) {
    filters_->at_source().left_to_engine("the stream's slot uses pgoutput");
    return "";
  }
  THALWEG_ASSIGN(std::string row_filters, filters_->write_for_source());
  if (row_filters.empty()) filters_->at_source().accepted();  // it is not asked for any
  return row_filters;
}

// Fails where the refusal is about something else.
base::Result<void> LogicalCapture::leave_rules_to_engine(const base::Error& refusal) {
  const std::string_view sqlstate = refusal.sqlstate;
  const bool is_earlier = sqlstate == kFeatureNotSupported;
  const bool is_about_filters = sqlstate.starts_with("22") || sqlstate.starts_with("54") || sqlstate == "08P01";
  if (!is_earlier && !is_about_filters) return std::unexpected(refusal);
  filters_->at_source().left_to_engine(is_earlier ? "the source's thalweg_output is of an earlier version"
                                                  : "the source's thalweg_output refuses them");
  base::log_event(base::LogLevel::warning, "rules_left_to_engine",
                  {{"stream", options_.stream_id}, {"reason", refusal.message}});
  return {};
}

// Of a standby nothing is translated before it is known to be of the timeline that the start has compared.
base::Result<void> LogicalCapture::guard(const pg::SystemIdentity& identity) {
  THALWEG_ASSIGN(fence_, TimelineFence::open(options_.source_conninfo, application_name_, options_.slot,
                                             stream_->connection().backend_pid(), identity.timeline));
  stream_->guard_with([this] { return fence_->check(); });
  return {};
}

base::Result<void> LogicalCapture::read_until_stopped() {
  while (!is_stopped()) {
    time_.enter(Activity::busy);
    state_.set("CAPTURING CHANGES");
    THALWEG_TRY(drain());
    if (is_stopped()) break;
    options_.queue->flush();
    THALWEG_TRY(wait_for_wal());
  }
  return {};
}

base::Result<void> LogicalCapture::wait_for_wal() {
  source_end_.store(probe_->position().value, std::memory_order_relaxed);
  if (caught_up()) {
    state_.set("WAITING FOR WAL");
    time_.enter(Activity::idle);
  } else {
    time_.enter(Activity::network);
  }
  if (pace_.hot(options_.clock->steady_now(), messages_)) {
    const auto nap = ReceivePace::nap(
        send_delay_, {.over_tcp = stream_->over_tcp(), .in_batches = plugin_ == pg::OutputPlugin::thalweg_output});
    if (nap > 0us) {
      std::this_thread::sleep_for(nap);
      return {};
    }
  }
  THALWEG_TRY(watch_silence());
  THALWEG_ASSIGN(const auto message, stream_->receive(wait_limit()));
  if (!message) return {};
  time_.enter(Activity::busy);
  return take(*message);
}

base::Result<void> LogicalCapture::drain() {
  while (true) {
    for (int i = 0; i < kMessagesPerRound; ++i) {
      THALWEG_ASSIGN(const auto message, stream_->receive(0ms));
      if (!message) return serve_timers();
      THALWEG_TRY(take(*message));
      if (is_stopped()) return {};
    }
    THALWEG_TRY(serve_timers());
  }
}

base::Result<void> LogicalCapture::take(const pg::StreamMessage& message) {
  if (message.is_keepalive) return take_keepalive(message);
  received_ = std::max({received_, message.wal_start, message.wal_end});
  if (plugin_ == pg::OutputPlugin::pgoutput)
    return take_message(message.payload, message.wal_start, message.server_time);
  batches_.add();
  BatchReader batch(message.payload);
  while (true) {
    THALWEG_ASSIGN(const auto batched, batch.next());
    if (!batched || is_stopped()) return {};
    received_ = std::max(received_, batched->lsn);
    THALWEG_TRY(take_message(batched->bytes, batched->lsn, message.server_time));
  }
}

base::Result<void> LogicalCapture::take_message(std::span<const std::byte> bytes, base::Lsn lsn,
                                                base::UnixMicros sent) {
  ++messages_;
  THALWEG_ASSIGN(const PgoutputMessage* parsed, parser_.parse(bytes));
  if (parsed->kind == MessageKind::message && parser_.in_transaction()) note_marker(*parsed, parser_.open_xid());
  THALWEG_ASSIGN(const bool translated, translator_.translate(*parsed, parser_, lsn));
  THALWEG_ASSIGN(const bool taken, put(translated));
  if (!taken) return {};  // a stop was requested: the rest of the transaction comes again
  if (parsed->kind == MessageKind::commit || parsed->kind == MessageKind::stream_commit) {
    note_commit(*parsed);
    send_delay_ = std::chrono::microseconds{sent.value - parsed->commit_time.value};
  }
  return {};
}

base::Result<void> LogicalCapture::take_keepalive(const pg::StreamMessage& message) {
  ++messages_;
  received_ = std::max(received_, message.wal_end);
  if (message.reply_requested) feedback_->request();
  // Only between transactions does the position say that all of what commits before it is here.
  if (parser_.in_transaction()) return {};
  if (message.wal_end > progress_enqueued_) {
    progress_pending_ = message.wal_end;
    progress_time_ = message.server_time;
    note_captured(message.wal_end);
  }
  // A server that requests a reply waits for a position: progress is due at once.
  if (message.reply_requested) progress_at_ = {};
  return {};
}

base::Result<void> LogicalCapture::serve_timers() {
  THALWEG_TRY(put_due_progress());
  THALWEG_TRY(give_feedback_if_due());
  publish_counters();
  return {};
}

base::Result<void> LogicalCapture::put_due_progress() {
  if (!progress_pending_ || parser_.in_transaction()) return {};
  const auto now = options_.clock->steady_now();
  if (now - progress_at_ < kProgressInterval) return {};
  const base::Lsn lsn = std::exchange(progress_pending_, {});
  THALWEG_ASSIGN(const bool taken, put_progress(lsn, progress_time_));
  if (!taken) return {};
  progress_enqueued_ = lsn;
  progress_at_ = now;
  return {};
}

base::Result<void> LogicalCapture::give_feedback_if_due() {
  const base::Lsn durable = confirmed();
  const auto now = options_.clock->steady_now();
  if (feedback_->until_due(now, durable) > Duration::zero()) return {};
  THALWEG_TRY(watch_shutdown(probe_->is_shutting_down(), durable));
  THALWEG_TRY(stream_->send_feedback(
      {.written = std::max(received_, durable), .flushed = durable, .applied = durable, .reply_requested = false}));
  feedback_->sent(now, durable);
  reported_.store(feedback_->confirmed().value, std::memory_order_relaxed);
  return {};
}

base::Result<void> LogicalCapture::watch_silence() {
  switch (silence_.look(options_.clock->steady_now(), messages_)) {
    case SilenceWatch::Verdict::fine:
      return {};
    case SilenceWatch::Verdict::ask: {
      const base::Lsn durable = confirmed();
      return stream_->send_feedback(
          {.written = std::max(received_, durable), .flushed = durable, .applied = durable, .reply_requested = true});
    }
    case SilenceWatch::Verdict::gone:
      return base::fail(ErrorCode::connection_lost,
                        fmt::format("the source has sent nothing for {} s, not even the answer that it was asked for",
                                    2 * SilenceWatch::kPatience.count()),
                        base::ErrorSide::source);
  }
  return {};
}

// The consumer drains what is queued; the source must neither give us up nor miss what becomes durable meanwhile.
base::Result<void> LogicalCapture::await_end() {
  const ActivityScope idle(time_, Activity::idle);
  while (!is_ended()) {
    THALWEG_TRY(give_feedback_if_due());
    std::this_thread::sleep_for(5ms);
  }
  feedback_->request();
  return give_feedback_if_due();
}

std::chrono::milliseconds LogicalCapture::wait_limit() const {
  const auto now = options_.clock->steady_now();
  auto limit = std::min<Duration>(kWaitMax, feedback_->until_due(now, confirmed()));
  if (progress_pending_) limit = std::min(limit, progress_at_ + kProgressInterval - now);
  return std::max(1ms, std::chrono::ceil<std::chrono::milliseconds>(limit));
}

bool LogicalCapture::caught_up() const {
  return !parser_.in_transaction() && captured() >= base::Lsn{source_end_.load(std::memory_order_relaxed)};
}

}  // namespace thalweg::capture
