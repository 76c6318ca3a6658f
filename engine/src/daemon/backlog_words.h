#pragma once

#include <string>
#include <string_view>

// Sentences on a destination's backlog, after its error's own message.

namespace thalweg::daemon {

// A message of a database or of libpq may lack its full stop, or end with a line break.
inline void add_sentence(std::string& text, std::string_view sentence) {
  text.erase(text.find_last_not_of(" \n") + 1);
  if (!text.empty()) text += text.ends_with('.') ? " " : ". ";
  text += sentence;
}

// `why` nothing can be moved to the disk: the destination's error says it already where it has no other.
inline void add_full_backlog(std::string& message, const std::string& why) {
  const std::string because = message == why ? "" : " (" + why + ")";
  add_sentence(message, "Its backlog takes no more" + because + ": until it does, the source keeps its WAL.");
}

inline void add_unsafe_backlog(std::string& message, const std::string& why) {
  const std::string because = message == why ? "" : " (" + why + ")";
  add_sentence(message, "Its backlog could not be made durable" + because +
                            ": what is not is read from the source again, which keeps its WAL until then.");
}

}  // namespace thalweg::daemon
