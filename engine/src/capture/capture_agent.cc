#include "capture/capture_agent.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "capture/logical/slot.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;
using namespace std::chrono_literals;

constexpr std::chrono::microseconds kFlowControlSlice{20'000};

}  // namespace

CaptureAgent::CaptureAgent(CaptureOptions options)
    : options_(std::move(options)),
      application_name_(capture_application_name(options_.stream_id)),
      markers_(*options_.clock),
      filters_(make_filters()) {}

std::unique_ptr<RowFilters> CaptureAgent::make_filters() const {
  if (options_.rules.tables.empty()) return nullptr;
  return std::make_unique<RowFilters>(options_.rules, options_.source_conninfo,
                                      pg::ConnectOptions{.application_name = application_name_, .abandon = &stop_},
                                      *options_.clock);
}

// --- the owner's side

void CaptureAgent::start() {
  if (options_.tap != nullptr) options_.tap->restarted();
  running_.store(true, std::memory_order_release);
  enqueuing_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { run(); });
}

void CaptureAgent::request_stop() { stop_.store(true, std::memory_order_release); }

void CaptureAgent::await_quiet() { enqueuing_.wait(true, std::memory_order_acquire); }

void CaptureAgent::join() {
  stop_.store(true, std::memory_order_release);
  end_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

CaptureStatus CaptureAgent::status() const {
  CaptureStatus status;
  status.running = running_.load(std::memory_order_acquire);
  status.enqueuing = enqueuing_.load(std::memory_order_acquire);
  {
    const std::lock_guard lock(error_mutex_);
    status.error = error_;
    status.trouble = trouble_;
  }
  status.state = state_.get();
  status.captured = {captured_.load(std::memory_order_relaxed)};
  status.confirmed = {reported_.load(std::memory_order_relaxed)};
  status.source_end = std::max(status.captured, {source_end_.load(std::memory_order_relaxed)});
  return status;
}

base::Result<void> CaptureAgent::place_marker(const std::string& id, const std::string& label) {
  if (options_.heartbeat_interval.count() == 0) {
    return base::fail(ErrorCode::marker_refused, "The stream's heartbeat_interval is 0");
  }
  if (!running_.load(std::memory_order_acquire)) {
    return base::fail(ErrorCode::marker_refused, "The capture does not run");
  }
  return markers_.place(id, label);
}

void CaptureAgent::add_to(telemetry::MarkerTrail& trail) const {
  trail.placed = markers_.read();
  trail.stages.push_back({.component = "CAPTURE", .stage = "CAPTURE", .passages = markers_captured_.read()});
  trail.stages.push_back({.component = "QUEUE", .stage = "ENQUEUE", .passages = markers_enqueued_.read()});
}

telemetry::ComponentSample CaptureAgent::sample() const {
  const uint64_t captured = captured_.load(std::memory_order_relaxed);
  const uint64_t first = first_position_.load(std::memory_order_relaxed);
  telemetry::ComponentSample out{.type = "CAPTURE",
                                 .name = "capture",
                                 .sub_component = {},
                                 .server = 0,
                                 .state = state_.get(),
                                 .time_ns = time_.sample(),
                                 .counters = {{"lcrs", lcrs_.get()},
                                              {"transactions", transactions_.get()},
                                              {"bytes", bytes_.get()},
                                              {"wal_bytes", captured > first ? captured - first : 0},
                                              {"batches", batches_.get()}},
                                 .gauges = {{"latency_us", latency_us_.load(std::memory_order_relaxed)}}};
  if (const int known = streaming_.load(std::memory_order_relaxed); known >= 0) {
    out.gauges.emplace_back("streaming", known);
  }
  if (const auto latency = markers_enqueued_.latency_micros()) out.gauges.emplace_back("marker_latency_us", *latency);
  return out;
}

std::vector<telemetry::RuleSample> CaptureAgent::rules() const {
  return filters_ ? filters_->sample() : std::vector<telemetry::RuleSample>{};
}

// --- the agent's side

void CaptureAgent::run() {
  if (auto captured = capture(); !captured) fail(std::move(captured).error());
  publish_counters();
  release();
  enqueuing_.store(false, std::memory_order_release);
  enqueuing_.notify_all();
  running_.store(false, std::memory_order_release);
}

void CaptureAgent::fail(base::Error error) {
  state_.set("ABORTING");
  spdlog::warn("capture of stream {} ends: {}: {}", options_.stream_id, base::name_of(error.code), error.message);
  const std::lock_guard lock(error_mutex_);
  error_ = std::move(error);
}

void CaptureAgent::set_trouble(std::optional<base::Error> trouble) {
  const std::lock_guard lock(error_mutex_);
  trouble_ = std::move(trouble);
}

base::Result<void> CaptureAgent::watch_shutdown(bool is_shutting_down, base::Lsn durable) {
  if (!shutdown_.look(options_.clock->steady_now(), is_shutting_down, durable)) return {};
  return base::fail(ErrorCode::connection_lost,
                    "the source is shutting down and waits for this session, which cannot take more at present",
                    base::ErrorSide::source);
}

base::Result<void> CaptureAgent::capture() {
  auto worked = work();
  options_.queue->flush();
  if (worked) state_.set("SHUTTING DOWN");  // before it is quiet: whoever waited for that sees this state
  enqueuing_.store(false, std::memory_order_release);
  enqueuing_.notify_all();
  THALWEG_TRY(std::move(worked));
  return await_end();
}

void CaptureAgent::begin_at(base::Lsn lsn) {
  first_position_.store(lsn.value, std::memory_order_relaxed);
  captured_.store(lsn.value, std::memory_order_relaxed);
}

void CaptureAgent::note_captured(base::Lsn lsn) {
  captured_.store(std::max(captured_.load(std::memory_order_relaxed), lsn.value), std::memory_order_relaxed);
}

// Other messages are other applications': nothing is made of them.
void CaptureAgent::note_marker(const PgoutputMessage& message, base::Xid open_xid) {
  if (message.prefix != options_.slot) return;
  marker_.content = message.content;
  marker_.xid = open_xid;
  marker_.at = options_.clock->unix_now();
}

void CaptureAgent::note_commit(const PgoutputMessage& commit) {
  // Under an origin it is the time that somebody has set.
  if (!translator_.has_origin()) last_commit_time_ = commit.commit_time;
  captured_.store(commit.end_lsn.value, std::memory_order_relaxed);
  if (!marker_.xid || !(marker_.xid == commit.xid)) return;
  markers_.captured(marker_.content, commit.xid, commit.commit_lsn, commit.commit_time);
  markers_captured_.note({commit.commit_lsn, commit.commit_time, marker_.at});
  markers_enqueued_.note({commit.commit_lsn, commit.commit_time, options_.clock->unix_now()});
  marker_.xid = {};
}

base::Result<bool> CaptureAgent::put(bool enqueued) {
  if (!enqueued && sink_error_) return std::unexpected(*sink_error_);
  return enqueued;
}

base::Result<bool> CaptureAgent::put_progress(base::Lsn lsn, base::UnixMicros time) {
  return put(translator_.progress(lsn, time));
}

void CaptureAgent::publish_counters() {
  const auto& counts = translator_.counts();
  lcrs_.set(counts.lcrs);
  transactions_.set(counts.transactions);
  bytes_.set(counts.bytes);
  if (last_commit_time_ != base::UnixMicros{}) {
    const int64_t age = options_.clock->unix_now().value - std::exchange(last_commit_time_, {}).value;
    latency_us_.store(std::max<int64_t>(age, 0), std::memory_order_relaxed);
  }
}

// --- FrameSink

std::span<std::byte> CaptureAgent::reserve(size_t frame_bytes) {
  auto memory = options_.queue->reserve(frame_bytes, 0us);
  if (!memory.empty()) [[likely]]
    return memory;
  const char* const before = state_.get();
  state_.set("PAUSED FOR FLOW CONTROL");
  const ActivityScope flow_control(time_, Activity::flow_control);
  publish_counters();
  while (memory.empty() && !is_stopped()) {
    options_.queue->flush();
    memory = options_.queue->reserve(frame_bytes, kFlowControlSlice);
    if (auto held = while_held_back(); !held) {
      sink_error_ = std::move(held).error();
      return {};
    }
  }
  if (memory.empty()) return {};
  state_.set(before);
  return memory;
}

void CaptureAgent::enqueue() { options_.queue->enqueue(); }

}  // namespace thalweg::capture
