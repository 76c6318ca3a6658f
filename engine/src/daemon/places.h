#pragma once

#include <memory>
#include <semaphore>

// A few places for what takes long, so that the control API's threads have time for others meanwhile.

namespace thalweg::daemon {

using Places = std::counting_semaphore<>;  // Thread-safe

struct GiveBack {
  void operator()(Places* places) const { places->release(); }
};
// Taken until it ends. Null: none was free.
using Place = std::unique_ptr<Places, GiveBack>;

inline Place take_place(Places& places) { return Place(places.try_acquire() ? &places : nullptr); }

}  // namespace thalweg::daemon
