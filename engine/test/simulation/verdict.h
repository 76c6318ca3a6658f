#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

// The verdict on the world: the first violation ends its run. Also the trace of its steps, if one was asked for.

namespace thalweg::simulation {

class Verdict {
 public:
  static Verdict& get();
  void fail(std::string reason);
  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }

  bool traces = false;
  void trace(const std::string& line);
  // Of all that was traced, shown or not: two runs of one seed must have the same.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::string reason_;
  uint64_t fingerprint_ = 0;
};

template <typename... Arguments>
void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Verdict::get().fail(fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <typename... Arguments>
void trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Verdict::get().trace(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace thalweg::simulation
