// Somebody else who writes at the destination, in transactions of its own: the cause of all conflicts.

#include <fmt/format.h>

#include "simulation/destination.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

constexpr int kOther = 3;        // a pid of nobody else
constexpr uint64_t kCodes = 12;  // as many as the source has, so that they collide
constexpr uint64_t kTexts = 3;   // the same

}  // namespace

Change Destination::other_change(int64_t keys) {
  const auto table = static_cast<int>(scheduler().random(shapes().size()));
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  const Table& now = working_.data[static_cast<size_t>(table)];
  const size_t present = shape.key >= 0 ? now.rows.size() : now.bag.size();
  Change change{.kind = Change::Kind::insert, .table = table, .before = {}, .after = {}};
  if (present > 0 && !scheduler().chance(3)) {
    change.kind = scheduler().chance(3) ? Change::Kind::remove : Change::Kind::update;
    const auto which = static_cast<ptrdiff_t>(scheduler().random(present));
    change.before =
        shape.key >= 0 ? std::next(now.rows.begin(), which)->second : std::next(now.bag.begin(), which)->first;
  }
  if (change.kind == Change::Kind::remove) return change;
  change.after = change.before.empty() ? Row(shape.columns.size()) : change.before;
  for (size_t i = 0; i < change.after.size(); ++i) {
    if (shapes_there()[static_cast<size_t>(table)].columns[i].is_gone) continue;
    const auto column = static_cast<int>(i);
    Value& value = change.after[i];
    const bool is_update = change.kind == Change::Kind::update;
    if (is_update && (scheduler().chance(2) || (column == shape.key && !scheduler().chance(6)))) continue;
    if (column == shape.key || column == shape.foreign) {
      value = int8_value(static_cast<int64_t>(scheduler().random(static_cast<uint64_t>(keys))));
    } else if (column == shape.unique) {
      value = scheduler().chance(3) ? Value() : fmt::format("code{}", scheduler().random(kCodes));
    } else if (shape.columns[i].type == 20) {
      value = int8_value(static_cast<int64_t>(scheduler().random(shape.key < 0 ? 4 : 1'000'000)));
    } else {
      value = shape.key < 0 ? fmt::format("text{}", scheduler().random(kTexts)) : fmt::format("other{}", keys);
    }
  }
  return change;
}

// As a session of the stream would lock them.
bool Destination::lock_for_other(const Change& change) {
  const TableShape& shape = shapes()[static_cast<size_t>(change.table)];
  const auto lock = [&](const std::string& name, Locks::Mode mode) { return locks_.try_acquire(kOther, name, mode); };
  if (!lock(fmt::format("t{}", change.table), Locks::Mode::shared)) return false;
  if (shape.key < 0) {
    const bool only_adds = change.kind == Change::Kind::insert;
    return lock(fmt::format("k{}", change.table), only_adds ? Locks::Mode::shared : Locks::Mode::exclusive);
  }
  for (const Row* row : {&change.before, &change.after}) {
    if (row->empty()) continue;
    if (!lock(fmt::format("r{}:{}", change.table, *(*row)[static_cast<size_t>(shape.key)]), Locks::Mode::exclusive))
      return false;
    if (shape.unique < 0 || !(*row)[static_cast<size_t>(shape.unique)]) continue;
    if (!lock(fmt::format("u{}:{}", change.table, *(*row)[static_cast<size_t>(shape.unique)]), Locks::Mode::exclusive))
      return false;
  }
  return true;
}

size_t Destination::write_as_other(size_t changes, int64_t keys) {
  std::vector<std::function<void(DestinationState&)>> made;
  for (; changes > 0; --changes) {
    const Change change = other_change(keys);
    if (!change.after.empty() && refuses(change.table, change.after)) continue;
    if (!lock_for_other(change) || !apply_change(working_.data, change)) continue;
    trace("{}: somebody else makes {}", name(), describe(change));
    made.emplace_back([change](DestinationState& state) {
      apply_change(state.data, change);
      state.expected.take_other(change);
    });
  }
  commit(made, false);
  locks_.release(kOther);
  return made.size();
}

}  // namespace thalweg::simulation
