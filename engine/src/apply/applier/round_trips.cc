#include "apply/applier/round_trips.h"

#include <algorithm>
#include <utility>

namespace thalweg::apply {

using telemetry::Activity;
using Before = CoordinatorSignals::Before;

Lane* RoundTrips::free_lane() {
  const auto lane = std::ranges::find(parts_.lanes, nullptr, &Lane::group);
  return lane == parts_.lanes.end() ? nullptr : lane;
}

bool RoundTrips::may_send(const Group& group) const {
  const auto& session = parts_.session;
  return session && !session->broken() && !session->prepares() && !parts_.shared.ending() &&
         group.goes_in_one_round_trip(parts_.solo_lcrs()) &&
         parts_.signals.before.load(std::memory_order_acquire) == Before::committed && parts_.is_turn(group);
}

bool RoundTrips::takes_no_time(const Lane& lane, const Group& group) const {
  const auto is_known = [&lane](const auto& table) { return lane.tables.has(*table); };
  return listens_ && group.bytes <= parts_.shared.policy.assigner_bytes_max &&
         std::ranges::all_of(group.transactions, [&](const auto& transaction) {
           return std::ranges::all_of(transaction->tables.all(), is_known);
         });
}

void RoundTrips::send(Lane& lane, Group& group) {
  lane.group = &group;
  if (auto sent = send_group(lane); !sent) {
    failed_.push_back({.lane = &lane, .why = std::unexpected(std::move(sent).error())});
  } else {
    sent_.push_back(&lane);
  }
}

// The sync commits what came since the last one, unless a statement failed.
base::Result<void> RoundTrips::send_group(Lane& lane) {
  parts_.time.enter(Activity::busy);
  const LsnRange range = lane.group->range();
  lane.executor->use_data_layer(parts_.uses_data_layer());
  if (parts_.uses_data_layer()) {
    THALWEG_TRY(lane.executor->send_checked(*lane.group, lane.progress.row(range)));
  } else {
    THALWEG_TRY(lane.executor->send_checked(*lane.group, {}));
    THALWEG_TRY(lane.progress.send(*parts_.session, range));
  }
  return parts_.session->send_sync();
}

void RoundTrips::take_answers() {
  auto& session = parts_.session;
  if (sent_.empty() && (!heard_ || !session || session->broken())) return;
  heard_ = false;
  do {
    auto answer = session->answer();
    if (answer && !*answer) return;
    if (sent_.empty()) return;  // a server that nobody asked has only to say that it goes: broken() tells
    take(answer ? base::Result<Refusal>(std::move(**answer)) : std::unexpected(std::move(answer).error()));
  } while (!sent_.empty());
}

void RoundTrips::take(base::Result<Refusal> answer) {
  Lane& lane = *sent_.front();
  sent_.pop_front();
  if (!answer) {
    failed_.push_back({.lane = &lane, .why = std::unexpected(answer.error())});
    // No others come.
    for (Lane* const behind : std::exchange(sent_, {})) {
      failed_.push_back({.lane = behind, .why = std::unexpected(answer.error())});
    }
    return;
  }
  if (*answer) {
    failed_.push_back({.lane = &lane, .why = std::move(**answer)});
    return;
  }
  lane.progress.committed();
  parts_.count_committed(lane);
  committed_(lane);
}

RoundTrips::NotCommitted RoundTrips::next_failed() {
  NotCommitted next = std::move(failed_.front());
  failed_.pop_front();
  return next;
}

}  // namespace thalweg::apply
