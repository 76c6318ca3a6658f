#include "instantiation/work_queue.h"

#include <algorithm>
#include <utility>

namespace thalweg::instantiation {
namespace {

bool is_range(const Step& step) { return std::holds_alternative<RangeStep>(step); }

size_t stages_up_to_rows(const TableWork& work) {
  for (size_t count = work.stages.size(); count > 0; --count) {
    if (std::ranges::any_of(work.stages[count - 1], is_range)) return count;
  }
  return 0;
}

}  // namespace

WorkQueue::WorkQueue(std::vector<TableWork> works) : works_(std::move(works)), states_(works_.size()) {
  for (size_t work = 0; work < works_.size(); ++work) {
    last_rows_.push_back(stages_up_to_rows(works_[work]));
    for (const auto& stage : works_[work].stages)
      rows_left_ += static_cast<size_t>(std::ranges::count_if(stage, is_range));
    ++unfinished_;
    offer(work);
  }
}

WorkQueue::Place WorkQueue::place_of(size_t work) const {
  return {.rows = states_[work].stage < last_rows_[work], .work = work};
}

// Puts the work where its next step can be taken, or ends it.
void WorkQueue::offer(size_t work) {
  State& state = states_[work];
  const auto& stages = works_[work].stages;
  while (state.stage < stages.size() && stages[state.stage].empty()) ++state.stage;
  if (state.stage == stages.size()) {
    --unfinished_;
  } else {
    ready_.insert(place_of(work));
  }
}

bool WorkQueue::is_free(size_t work) const {
  return states_[work].running > 0 ||
         std::ranges::none_of(works_[work].locks, [&](const TableName& table) { return locked_.contains(table); });
}

std::optional<WorkQueue::Turn> WorkQueue::take() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (ended_ || unfinished_ == 0) return std::nullopt;
    const auto found = std::ranges::find_if(ready_, [&](const Place& place) { return is_free(place.work); });
    if (found == ready_.end()) {
      changed_.wait(lock);
      continue;
    }
    const size_t work = found->work;
    State& state = states_[work];
    const std::vector<Step>& steps = works_[work].stages[state.stage];
    const Step& step = steps[state.next];
    if (state.running++ == 0) locked_.insert(works_[work].locks.begin(), works_[work].locks.end());
    if (++state.next == steps.size()) ready_.erase(found);
    if (is_range(step)) --rows_left_;
    return Turn{.work = work, .table = &works_[work].table, .step = &step};
  }
}

// Notes that one step less is under way.
void WorkQueue::leave(size_t work) {
  State& state = states_[work];
  if (--state.running == 0) {
    for (const TableName& table : works_[work].locks) locked_.erase(table);
    if (state.postponed) {
      --unfinished_;
    } else if (state.next == works_[work].stages[state.stage].size()) {
      ++state.stage;
      state.next = 0;
      offer(work);
    }
  }
  changed_.notify_all();
}

void WorkQueue::done(const Turn& turn) {
  std::lock_guard lock(mutex_);
  leave(turn.work);
}

void WorkQueue::postpone(const Turn& turn) {
  std::lock_guard lock(mutex_);
  State& state = states_[turn.work];
  if (!std::exchange(state.postponed, true)) {
    ready_.erase(place_of(turn.work));
    const auto& stages = works_[turn.work].stages;
    for (size_t stage = state.stage; stage < stages.size(); ++stage) {
      const auto first = stages[stage].begin() + static_cast<std::ptrdiff_t>(stage == state.stage ? state.next : 0);
      rows_left_ -= static_cast<size_t>(std::count_if(first, stages[stage].end(), is_range));
    }
  }
  leave(turn.work);
}

void WorkQueue::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool WorkQueue::has_rows() const {
  std::lock_guard lock(mutex_);
  return rows_left_ > 0;
}

}  // namespace thalweg::instantiation
