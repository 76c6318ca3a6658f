#include "apply/coordinator/commit_order_watch.h"

#include <algorithm>
#include <string>
#include <utility>

namespace thalweg::apply {

using telemetry::Activity;
using telemetry::ActivityScope;

void CommitOrderWatch::look(const Schedule& schedule, std::span<const std::unique_ptr<Applier>> appliers,
                            Clock::time_point now, telemetry::TimeAccount& time) {
  if (schedule.running() < 1 || schedule.window().empty() || now - looked_at_ < schedule.policy().watch_pause) return;
  looked_at_ = now;
  const Group& oldest = *schedule.window().front();
  Applier* latest = nullptr;  // of those that wait for their turn
  uint64_t latest_number = 0;
  for (int i = 0; i < schedule.appliers(); ++i) {
    const Group* const group = schedule.slot(i).running;
    Applier& applier = *appliers[static_cast<size_t>(i)];
    if (group == nullptr || !applier.waits_for_turn() || group->number <= latest_number) continue;
    latest = &applier;
    latest_number = group->number;
  }
  // The oldest finds no applier, or waits for a retry while the others keep their locks.
  const bool gives_way = oldest.state == GroupState::waiting && schedule.is_ready(oldest) &&
                         (schedule.idle_appliers() == 0 || oldest.retry_at > now);
  if (gives_way && latest != nullptr) latest->request_rollback();
  for (size_t i = 0; i < appliers.size(); ++i) {
    if (schedule.slot(static_cast<int>(i)).running == &oldest) give_locks_back(*appliers[i], appliers, time);
  }
}

void CommitOrderWatch::give_locks_back(const Applier& blocked, std::span<const std::unique_ptr<Applier>> appliers,
                                       telemetry::TimeAccount& time) {
  if (std::ranges::none_of(appliers, [](const auto& applier) { return applier->waits_for_turn(); })) return;
  const ActivityScope network(time, Activity::network);
  if (!connection_ || connection_->broken()) {
    auto opened = pg::Connection::open(shared_.destination_conninfo, shared_.connect_options("coordinator"));
    if (!opened) return;  // the appliers will notice a destination that is gone
    connection_.emplace(std::move(*opened));
  }
  const auto blockers = connection_->query(
      "WITH RECURSIVE blocker(pid) AS (SELECT unnest(pg_catalog.pg_blocking_pids($1::integer)) UNION "
      "SELECT unnest(pg_catalog.pg_blocking_pids(pid)) FROM blocker) SELECT pid FROM blocker",
      {std::to_string(blocked.backend_pid())});
  if (!blockers) return;
  for (size_t row = 0; row < blockers->size(); ++row) {
    for (const auto& applier : appliers) {
      if (applier->backend_pid() == blockers->integer(row, 0) && applier->waits_for_turn()) applier->request_rollback();
    }
  }
}

}  // namespace thalweg::apply
