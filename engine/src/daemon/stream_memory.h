#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "control/managed_streams.h"
#include "daemon/lifecycle.h"

// The engine's memory of a stream beside its desired state: that it gave up, and why; that it is dropped.

namespace thalweg::daemon {

struct RememberedStatus {
  State state = State::aborted;  // or dropped
  std::optional<control::ReportedError> error;
  uint64_t fingerprint = 0;  // of the definition to which this applies
};

// One small file per stream in the state directory. Owner: the stream's supervisor; whoever asks for another try clears
// it, too, while the supervisor waits.
class StreamMemory {
 public:
  StreamMemory(std::filesystem::path folder, std::string stream_id);
  // A file that cannot be read counts as nothing remembered, and is logged: the stream then finds out again.
  std::optional<RememberedStatus> load() const;
  base::Result<void> store(const RememberedStatus& status) const;
  base::Result<void> clear() const;

 private:
  std::filesystem::path path_;
};

}  // namespace thalweg::daemon
