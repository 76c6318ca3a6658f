#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/ids.h"
#include "control/desired_state.h"
#include "daemon/database_work.h"

// A stream changes its capture_kind at a position, without a new copy (docs/decisions/capture-kind.md). The present
// kind goes on while the other one's slot is made beside it, under a name for the time of the change; that slot takes
// the present one's place once every destination has what commits below its position.
//
// A slot of the stream's own name tells by which kind it is captured: nothing else has to be remembered, and a change
// goes on after a crash from what is at the source and in the stream's folder.

namespace thalweg::daemon {

// The kind by which the stream is captured now: the desired one, unless a change is still to be made. Finishes a switch
// that was begun, and removes what a withdrawn change has left. `folder`: the stream's.
base::Result<control::CaptureKind> present_kind(const control::StreamDefinition& desired, const DatabaseWork& work,
                                                const std::filesystem::path& folder);

// The other kind takes the place of the present one, which does not run any more, and whose position every destination
// has reached durably. No effect where the slot that was made for it is gone meanwhile: it is made again.
base::Result<void> switch_kind(const control::StreamDefinition& desired, const DatabaseWork& work,
                               const std::filesystem::path& folder);

// The preparation of a change, in a thread of its own, while the present kind works; tried again for as long as it
// lives. Thread-safe.
class KindChange {
 public:
  // Where `desired` has the kind that is `present`, a change is withdrawn, and what it has left goes. `board` outlives
  // it.
  KindChange(control::StreamDefinition desired, control::CaptureKind present, std::filesystem::path folder,
             pg::SessionBoard* board);
  ~KindChange();  // gives up within seconds
  KindChange(const KindChange&) = delete;
  KindChange& operator=(const KindChange&) = delete;

  control::CaptureKind to() const { return desired_.capture_kind; }
  // Where the other kind begins: everything that commits below is captured by the present one. None: not known yet, or
  // withdrawn.
  std::optional<base::Lsn> position() const;
  std::optional<base::Error> trouble() const;  // that holds it up

 private:
  void run();
  base::Result<std::optional<base::Lsn>> try_once(const DatabaseWork& work) const;
  bool rest(std::chrono::milliseconds delay);

  const control::StreamDefinition desired_;
  const bool withdraws_;
  const std::filesystem::path folder_;
  pg::SessionBoard* const board_;

  std::atomic<bool> stop_{false};  // Writer: the destructor. Readers: the thread, and its waits for a database.
  mutable std::mutex mutex_;       // guards what follows
  std::condition_variable stopped_;
  std::optional<base::Lsn> position_;
  std::optional<base::Error> trouble_;
  std::jthread thread_;  // last: it uses everything above
};

}  // namespace thalweg::daemon
