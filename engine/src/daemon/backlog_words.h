#pragma once

#include <string>

#include "base/sentences.h"

// Sentences on a destination's backlog, after its error's own message.

namespace thalweg::daemon {

// `why` nothing can be moved to the disk: the destination's error says it already where it has no other.
inline void add_full_backlog(std::string& message, const std::string& why) {
  const std::string because = message == why ? "" : " (" + why + ")";
  base::add_sentence(message, "Its backlog takes no more" + because + ": until it does, the source keeps its WAL.");
}

inline void add_unsafe_backlog(std::string& message, const std::string& why) {
  const std::string because = message == why ? "" : " (" + why + ")";
  base::add_sentence(message, "Its backlog could not be made durable" + because +
                                  ": what is not is read from the source again, which keeps its WAL until then.");
}

}  // namespace thalweg::daemon
