#include "apply/coordinator/recorder.h"

#include <chrono>

#include "apply/applier/progress_writer.h"
#include "apply/conflict_log.h"
#include "base/log.h"

namespace thalweg::apply {

namespace {
constexpr std::chrono::milliseconds kRecordPause{200};
constexpr std::chrono::seconds kIdleRecordPause{10};  // when positions move without changes
constexpr std::chrono::seconds kProbePause{1};        // is the lock's connection still there?
constexpr std::chrono::seconds kPrunePause{3600};     // of the conflict log
}  // namespace

Recorder::Recorder(SharedState& shared, pg::Connection connection)
    : shared_(shared), connection_(std::move(connection)) {
  thread_ = std::thread([this] { run(); });
}

Recorder::~Recorder() { join(); }

void Recorder::join() {
  if (!thread_.joinable()) return;
  shared_.recorder_bell.ring();
  thread_.join();
}

void Recorder::run() {
  work();
  ended_.store(true, std::memory_order_release);
}

base::Result<void> Recorder::record(uint64_t low_watermark) {
  // synchronous_commit is on here. WAL is flushed in order: once this commit is durable, so are all commits that the
  // low watermark stands for, because the coordinator heard of them before.
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection_.query("UPDATE thalweg.stream SET low_watermark = greatest(low_watermark, $2::pg_lsn), "
                        "recorded_at = now() WHERE stream_id = $1 AND epoch = $3::bigint",
                        {shared_.stream_id, base::to_string(base::Lsn{low_watermark}), std::to_string(shared_.epoch)}));
  if (rows.affected() != 1) return std::unexpected(taken_over(shared_.stream_id));
  shared_.confirmed.store(low_watermark, std::memory_order_release);
  return {};
}

void Recorder::work() {
  const base::Clock& clock = *shared_.clock;
  uint64_t recorded_commits = 0;
  auto recorded_at = clock.steady_now();
  auto probed_at = recorded_at;
  auto prune_at = recorded_at;
  while (true) {
    const uint32_t ticket = shared_.recorder_bell.ticket();
    const bool last = shared_.commits_ended.load(std::memory_order_acquire);  // before the look at what they have done
    const uint64_t commits = shared_.commits.load(std::memory_order_acquire);
    const uint64_t low_watermark = shared_.low_watermark.load(std::memory_order_acquire);
    const auto now = clock.steady_now();
    base::Result<void> done;
    if (low_watermark != shared_.confirmed.load(std::memory_order_relaxed) &&
        (last || commits != recorded_commits || now - recorded_at >= kIdleRecordPause)) {
      done = record(low_watermark);
      recorded_commits = commits;
      recorded_at = probed_at = now;
    } else if (now - probed_at >= kProbePause) {
      if (auto probed = connection_.query("SELECT 1"); !probed) done = std::unexpected(probed.error());
      probed_at = now;
    }
    if (done && !last && now >= prune_at) {
      const std::chrono::days retention{shared_.parameters.conflict_retention_days.load(std::memory_order_relaxed)};
      const auto more = prune_conflicts(connection_, shared_.stream_id, retention);
      if (!more) done = std::unexpected(more.error());
      prune_at = now + (more && *more ? kProbePause : kPrunePause);
    }
    if (!done) {
      shared_.error.set(done.error());
      shared_.stop();
      return;
    }
    if (last) return;
    shared_.recorder_bell.wait(ticket, kRecordPause);
  }
}

}  // namespace thalweg::apply
