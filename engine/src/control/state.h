#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

// The states of a stream and of a destination: one table for both (engine/src/daemon/README.md describes each state).

namespace thalweg::control {

enum class State : uint8_t {
  disabled,
  initializing,
  instantiating,
  catching_up,
  replicating,
  retrying,
  draining,
  dropping,
  aborted,
  dropped,
};
inline constexpr size_t kStateCount = 10;

// A state's names in the control API: `status`, and below that `phase`.
struct StateNames {
  std::string_view status;
  std::string_view phase;
};
constexpr StateNames names_of(State state) {
  constexpr std::array<StateNames, kStateCount> kNames = {{{"DISABLED", "STOPPED"},
                                                           {"ENABLED", "INITIALIZING"},
                                                           {"ENABLED", "INSTANTIATING"},
                                                           {"ENABLED", "CATCHING UP"},
                                                           {"ENABLED", "REPLICATING"},
                                                           {"ENABLED", "RETRYING"},
                                                           {"ENABLED", "DRAINING"},
                                                           {"ENABLED", "DROPPING"},
                                                           {"ABORTED", "STOPPED"},
                                                           {"DROPPED", "STOPPED"}}};
  return kNames[static_cast<size_t>(state)];
}

// Whether `to` may come directly after `from`.
constexpr bool may_follow(State from, State to) {
  using enum State;
  const bool works = from != disabled && from != aborted && from != dropped && from != dropping;
  if (from == to) return false;
  switch (to) {
    case initializing:
    case disabled:
    case dropping:
      return true;  // a start, a pause and a removal may be asked for at any time
    case aborted:
      return from != dropped;  // which has nothing left that could fail
    case dropped:
      return from == dropping;
    case retrying:
      return works || from == disabled;  // a paused destination reads its earlier backlog, too
    case instantiating:
    case catching_up:
    case draining:
      return works;
    case replicating:
      return works && from != instantiating && from != draining;  // after those there is something to catch up with
  }
  return false;
}

// The resting state of that `status`, as files keep it; none: there is no such one.
constexpr std::optional<State> resting_state(std::string_view status) {
  for (const State state : {State::disabled, State::aborted, State::dropped}) {
    if (names_of(state).status == status) return state;
  }
  return std::nullopt;
}

}  // namespace thalweg::control
