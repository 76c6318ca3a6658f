#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
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

// As the control API names it: `status`, and below that `phase`.
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

// Whether `to` may come directly after `from`. Only a start leads out of a rest, and only what is desired into one.
constexpr bool may_follow(State from, State to) {
  using enum State;
  constexpr auto set = [](std::initializer_list<State> states) {
    uint32_t bits = 0;
    for (const State state : states) bits |= 1U << static_cast<unsigned>(state);
    return bits;
  };
  constexpr std::array<uint32_t, kStateCount> kNext = {
      /* disabled */ set({initializing, retrying, dropping, aborted}),
      /* initializing */
      set({disabled, instantiating, catching_up, replicating, retrying, draining, dropping, aborted}),
      /* instantiating */ set({disabled, initializing, catching_up, retrying, draining, dropping, aborted}),
      /* catching_up */
      set({disabled, initializing, instantiating, replicating, retrying, draining, dropping, aborted}),
      /* replicating */
      set({disabled, initializing, instantiating, catching_up, retrying, draining, dropping, aborted}),
      /* retrying */
      set({disabled, initializing, instantiating, catching_up, replicating, draining, dropping, aborted}),
      /* draining */ set({disabled, initializing, instantiating, catching_up, retrying, dropping, aborted}),
      /* dropping */ set({disabled, initializing, aborted, dropped}),
      /* aborted */ set({disabled, initializing, dropping}),
      /* dropped */ set({disabled, initializing, dropping}),
  };
  return (kNext[static_cast<size_t>(from)] >> static_cast<unsigned>(to) & 1U) != 0;
}

// The resting state of that `status`, as files keep it; none: there is no such one.
constexpr std::optional<State> resting_state(std::string_view status) {
  for (const State state : {State::disabled, State::aborted, State::dropped}) {
    if (names_of(state).status == status) return state;
  }
  return std::nullopt;
}

}  // namespace thalweg::control
