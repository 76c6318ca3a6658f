#include <algorithm>

#include "apply/coordinator/coordinator.h"

// The coordinator's samples of the transactions in its groups.

namespace thalweg::apply {

namespace {

constexpr std::chrono::seconds kShowPause{1};
constexpr size_t kLookedAtMax = 4096;  // of all groups
constexpr size_t kTablesShownMax = 16;

telemetry::TransactionSample sample_of(const Transaction& transaction) {
  telemetry::TransactionSample sample{.xid = transaction.xid,
                                      .state = "READY",
                                      .first_lsn = transaction.first_lsn,
                                      .commit_lsn = transaction.commit_lsn,
                                      .begun = transaction.begun,
                                      .lcrs = transaction.lcrs,
                                      .bytes = transaction.bytes,
                                      .spilled_bytes = transaction.spilled ? transaction.bytes : 0,
                                      .streamed = transaction.streamed};
  for (const auto& table : transaction.tables.all()) {
    if (sample.tables.size() >= kTablesShownMax) break;
    if (std::ranges::find(sample.tables, table->quoted_name) == sample.tables.end())
      sample.tables.push_back(table->quoted_name);
  }
  return sample;
}

}  // namespace

// The retry of the transaction that has failed: its group waits for it.
std::optional<telemetry::TransactionRetry> Coordinator::retry_of(const Group& group) const {
  const Transaction& transaction = *group.transactions[group.run.done];
  const auto retry = shared_.retries->find(transaction.commit_lsn, transaction.xid);
  if (!retry) return std::nullopt;
  return telemetry::TransactionRetry{.number = retry->number,
                                     .times = retry->times,
                                     .at = retry->at,
                                     .failed_at = retry->failed_at,
                                     .error = retry->error};
}

void Coordinator::show_transactions() {
  const Clock::time_point shown_at = now();
  if (shown_at - shown_at_ < kShowPause) return;
  shown_at_ = shown_at;
  const auto& window = schedule_.window();
  const bool any = !window.empty() || in_.peek() != nullptr;
  if (!any && !shown_any_) return;
  shown_any_ = any;
  telemetry::TransactionSamples out;
  out.queued_lcrs = in_.waiting_lcrs();
  for (const auto& group : window) {
    if (group->state == GroupState::committed) continue;
    const std::optional<int> applier = schedule_.applier_of(*group);
    (applier ? out.executing : out.waiting) += group->transactions.size();
    std::optional<telemetry::TransactionRetry> retry;
    std::string_view state = "READY";
    base::Xid waits_for;
    if (applier) {
      const bool turn = appliers_[static_cast<size_t>(*applier)]->waits_for_turn();
      state = turn ? "WAIT COMMIT" : "EXECUTE TRANSACTION";
      if (turn) waits_for = window.front()->transactions.front()->xid;
    } else if (group->retry_at > shown_at) {
      state = "WAIT RETRY";
      retry = retry_of(*group);
    } else if (!schedule_.is_ready(*group)) {
      state = "WAIT DEPENDENCY";
      waits_for = schedule_.waits_for(*group).transactions.front()->xid;
    }
    if (retry) {
      ++out.retrying;
      if (!out.next_retry || retry->at < out.next_retry->at) out.next_retry = retry;
    }
    // A group that has more has small ones.
    const size_t looked_at = std::min(group->transactions.size(), 1 + kLookedAtMax / window.size());
    for (size_t i = 0; i < looked_at; ++i) {
      telemetry::TransactionSample& sample = out.shown.emplace_back(sample_of(*group->transactions[i]));
      sample.state = state;
      sample.applier = applier ? *applier + 1 : 0;
      sample.waits_for = waits_for;
      if (retry && i == group->run.done) sample.retry = retry;  // `run` of a running group is its applier's
    }
  }
  telemetry::keep_notable(out.shown);
  shown_.publish(std::move(out));
}

}  // namespace thalweg::apply
