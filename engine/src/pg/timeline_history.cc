#include "pg/timeline_history.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

namespace thalweg::pg {

namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

// The next word, which goes from the front of `text`.
std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

// A line is a timeline, where it ended, and why, for people. A line that begins with '#' is a remark.
base::Result<TimelineHistory> TimelineHistory::parse(int timeline, std::string_view content) {
  std::vector<Ancestor> ancestors;
  while (!content.empty()) {
    const std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(line.size() + 1, content.size()));
    std::string_view rest = trimmed(line);
    if (rest.empty() || rest.front() == '#') continue;
    const std::string_view number = take_word(rest);
    const auto end = base::parse_lsn(take_word(rest));
    Ancestor ancestor{.timeline = 0, .end = end.value_or(base::Lsn{})};
    const auto read = std::from_chars(number.data(), number.data() + number.size(), ancestor.timeline);
    const int last = ancestors.empty() ? 0 : ancestors.back().timeline;
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size() || !end || ancestor.timeline <= last ||
        ancestor.timeline >= timeline) {
      return base::fail(
          base::ErrorCode::protocol_violation,
          fmt::format("The history of timeline {} has a line that is none: {}", timeline, line.substr(0, 100)));
    }
    ancestors.push_back(ancestor);
  }
  return TimelineHistory(timeline, std::move(ancestors));
}

std::optional<base::Lsn> TimelineHistory::end_of(int timeline) const {
  if (timeline == timeline_) return base::Lsn{UINT64_MAX};
  const auto found = std::ranges::find(ancestors_, timeline, &Ancestor::timeline);
  if (found == ancestors_.end()) return std::nullopt;
  // A timeline that was left before the one that it comes from had come so far ends there.
  base::Lsn end = found->end;
  for (auto later = found; later != ancestors_.end(); ++later) end = std::min(end, later->end);
  return end;
}

bool TimelineHistory::holds(int timeline, base::Lsn position) const {
  const auto end = end_of(timeline);
  return end && position <= *end;
}

TimelineHistory TimelineHistory::up_to(int timeline) const {
  std::vector<Ancestor> before;
  std::ranges::copy_if(ancestors_, std::back_inserter(before),
                       [&](const Ancestor& ancestor) { return ancestor.timeline < timeline; });
  return TimelineHistory(timeline, std::move(before));
}

int TimelineHistory::at(base::Lsn position) const {
  for (const Ancestor& ancestor : ancestors_) {
    if (position < end_of(ancestor.timeline)) return ancestor.timeline;
  }
  return timeline_;
}

}  // namespace thalweg::pg
