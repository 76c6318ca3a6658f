#include <fmt/format.h>

#include <algorithm>

#include "daemon/backlog_words.h"
#include "daemon/independent_destination.h"

// An IndependentDestination as operators and the control API see it.

namespace thalweg::daemon {
namespace {

using control::BacklogState;

constexpr double kMiB = 1024 * 1024;

// A backlog's sentence in an error's text, or none: what becomes of the changes meanwhile.
std::string backlog_text(const control::BacklogStatus& backlog) {
  if (backlog.state == BacklogState::in_memory) return "";
  const double mib = static_cast<double>(backlog.bytes) / kMiB;
  if (mib < 0.1) return "Its backlog, less than 0.1 MiB, is on the engine's disk.";
  return fmt::format("Its backlog of {:.1f} MiB is on the engine's disk.", mib);
}

}  // namespace

bool IndependentDestination::has_caught_up(QueueProducer& producer) const {
  if (!producer.capture_status().source_end) return false;
  std::lock_guard lock(mutex_);
  return caught_up_ || error_ || !life_.is_enabled() || course_.is_dropped();
}

void IndependentDestination::retry() {
  {
    std::lock_guard lock(mutex_);
    // It works, or is already trying. At rest it may be about to give up.
    const bool rests = course_.phase() == DestinationCourse::Phase::resting;
    if (life_.state() != State::aborted && !retry_due_ && !rests) return;
    course_.retry();
  }
  changed_.notify_all();
}

void IndependentDestination::start_over() {
  {
    std::lock_guard lock(mutex_);
    course_.start_over();
  }
  retry();
}

control::DestinationStatus IndependentDestination::status() const {
  control::DestinationStatus out = Destination::status();
  {
    std::lock_guard lock(mutex_);
    if (error_ || !out.error) {
      out.state = life_.state();
      out.error = error_;
    }
    out.retry_at = retry_at_;
  }
  std::optional<base::Error> full;
  bool not_durable = false;
  out.confirmed = confirmed();
  if (options_.delivery.destination.backlog) {
    const spill::SpillUse use = space_.use();
    out.backlog = {.state = BacklogState::in_memory,
                   .frames = 0,
                   .lcrs = 0,
                   .bytes = use.bytes,
                   .age = use.age,
                   .limit_bytes = space_.limit()};
  }
  {
    std::shared_lock lock(session_lock_);
    out.backlog.frames += logs_.frames_left();
    out.backlog.lcrs += logs_.changes_left();
    if (backlog_ && !is_dropped()) {
      const queue::BacklogStatistics backlog = backlog_->statistics();
      out.backlog.frames += backlog.frames;
      out.backlog.lcrs += backlog.lcrs;
      if (backlog.on_disk || !logs_.empty()) out.backlog.state = BacklogState::on_disk;
      full = backlog.failure;
      not_durable = backlog.not_durable;
    }
  }
  if (full) {
    if (!out.error) out.error = control::ReportedError{*full, options_.clock->unix_now()};
    if (not_durable) {
      add_unsafe_backlog(out.error->error.message, full->message);
    } else {
      out.backlog.state = BacklogState::full;
      add_full_backlog(out.error->error.message, full->message);
    }
  } else if (out.error && options_.delivery.destination.backlog && out.state != State::dropped) {
    std::string& message = out.error->error.message;
    const std::string named = fmt::format("Destination \"{}\": ", options_.delivery.destination.name);
    if (!message.starts_with(named)) message.insert(0, named);
    if (const std::string backlog = backlog_text(out.backlog); !backlog.empty()) base::add_sentence(message, backlog);
  }
  return out;
}

void IndependentDestination::add_backlog_to(control::StreamStats& stats) const {
  if (!backlog_ || is_dropped()) return;
  const queue::BacklogStatistics backlog = backlog_->statistics();
  const spill::SpillUse use = space_.use();
  stats.components.push_back(
      {.type = "QUEUE",
       .name = "backlog",
       .sub_component = "QUEUE SPILL",
       .server = 0,
       .state = backlog.failure   ? "FULL"
                : backlog.on_disk ? "SPILLING"
                                  : "NORMAL",
       .time_ns = {},
       .counters = {{"spilled_lcrs", backlog.spilled_lcrs}, {"spilled_bytes", backlog.spilled_bytes}},
       .gauges = {{"depth", static_cast<int64_t>(backlog.frames)},
                  {"spill_frames", static_cast<int64_t>(backlog.frames_on_disk)},
                  {"spill_bytes", static_cast<int64_t>(use.bytes)},
                  {"spill_age_us", use.age.count()}}});
}

}  // namespace thalweg::daemon
