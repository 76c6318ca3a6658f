#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "control/desired_state.h"

// From which position on a destination's changes are judged and applied by its present definition
// (docs/decisions/in-effect.md).

namespace thalweg::daemon {

// Another one whenever changes may be judged or applied otherwise: not with an address, a name, a status or a live
// parameter. Stable over restarts of the engine.
uint64_t judging(const control::Delivery& delivery);

struct EffectBegin {
  base::Lsn from;
  base::UnixMicros since;
};

// Kept in a file: after a restart it is what was told before. Thread-safe.
class Effect {
 public:
  static constexpr size_t kPositionsMax = 8;

  explicit Effect(std::filesystem::path file);

  // A session of that definition begins: what is known of another one is over. One that has judged what the destination
  // has not taken yet was in effect all the same, from where await() and reached() said.
  void expect(uint64_t judging);
  // The session judges from there on, while the destination is still behind.
  void await(uint64_t judging, const EffectBegin& at);
  // The destination has come, for the first time since await(), and has applied everything up to there: that was judged
  // before, whatever the session has judged anew.
  void reached(base::Lsn applied);
  // It is at work from there on. No effect where it has been since an earlier position.
  void begin(uint64_t judging, const EffectBegin& at);
  std::optional<EffectBegin> of(uint64_t judging) const;
  // The last positions at which a definition came into effect, in their order; the effect of the earlier ones is over.
  std::vector<EffectBegin> positions() const;

 private:
  // Of a definition for which the destination was behind.
  struct Awaited {
    EffectBegin at;
    bool is_met = false;   // the destination has come since
    bool is_over = false;  // another definition has followed
  };

  void add(const EffectBegin& at);
  void settle();
  void store() const;
  const std::filesystem::path file_;
  mutable std::mutex mutex_;  // guards what follows, and the file
  uint64_t judging_ = 0;
  std::optional<EffectBegin> begin_;
  std::vector<Awaited> awaited_;  // the last one may be of the present definition
  std::vector<EffectBegin> positions_;
};

}  // namespace thalweg::daemon
