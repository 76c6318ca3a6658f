#include "daemon/earlier_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "base/log.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using base::Lsn;
namespace fs = std::filesystem;

constexpr int kTimelineShift = 32;
int timeline_of(const spill::DurableLog& log) { return static_cast<int>(log.id() >> kTimelineShift); }

std::unexpected<base::Error> gap_before(ErrorCode code, Lsn reached, Lsn from, const std::string& name,
                                        const std::string& why) {
  base::Error gap = base::fail(code, fmt::format("Destination \"{}\" has applied up to {}, what is left begins at {}: "
                                                 "{} bytes of WAL are missing{}.",
                                                 name, base::to_string(reached), base::to_string(from),
                                                 from.value - reached.value, why))
                        .error();
  gap.lsn = reached;
  return std::unexpected(std::move(gap));
}

}  // namespace

EarlierLogs::EarlierLogs(spill::SpillSpace& space, fs::path folder, std::string stream, std::string destination)
    : space_(space), folder_(std::move(folder)), stream_(std::move(stream)), destination_(std::move(destination)) {}

base::Result<void> EarlierLogs::begin_session(const pg::TimelineHistory& history, bool asks_destination) {
  history_ = history;
  asks_destination_ = asks_destination;
  ++own_number_;
  return read(true);
}

base::Result<void> EarlierLogs::read(bool begins) {
  close();
  logged_ = {};
  auto opened = open_all(begins);
  is_unread_ = !opened;
  if (!opened) {
    logs_.clear();
    return opened;
  }
  if (!asks_destination_) set_strays_aside(history_.timeline());
  for (const auto& log : logs_) {
    if (is_history(*log, asks_destination_ ? 0 : history_.timeline())) logged_ = std::max(logged_, log->synced());
  }
  if (logs_.empty()) return {};
  base::log_event(base::LogLevel::info, "backlog_found",
                  {{"stream", stream_},
                   {"destination", destination_},
                   {"logs", logs_.size()},
                   {"bytes", space_.use().bytes},
                   {"from", base::to_string(logs_.front()->from())},
                   {"to", base::to_string(logs_.back()->synced())}});
  return {};
}

// Removes those of which nothing was synced: they hold nothing that does not come again.
base::Result<void> EarlierLogs::open_all(bool begins) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    numbers.push_back(std::strtoull(entry->path().filename().c_str(), nullptr, 10));
  }
  if (error) return std::unexpected(base::file_error(error.value(), "list " + folder_.string()));
  std::ranges::sort(numbers);
  if (begins && !numbers.empty()) own_number_ = std::max(own_number_, numbers.back() + 1);
  for (const uint64_t number : numbers) {
    if (number >= own_number_) break;
    THALWEG_ASSIGN(auto log, spill::DurableLog::open(space_, folder_of(number)));
    if (!log) continue;
    if (log->synced() <= log->from()) {
      log->remove();
      continue;
    }
    logs_.push_back(std::move(log));
  }
  return {};
}

EarlierLogs::Own EarlierLogs::own(int timeline) const {
  return {.folder = folder_of(own_number_), .id = static_cast<uint64_t>(timeline) << kTimelineShift | own_number_};
}

std::string EarlierLogs::folder_of(uint64_t number) const { return (folder_ / fmt::format("{:010}", number)).string(); }

bool EarlierLogs::is_history(const spill::DurableLog& log, int timeline_if_untold) const {
  const int timeline = timeline_of(log);
  return history_.holds(timeline != 0 ? timeline : timeline_if_untold, log.synced());
}

void EarlierLogs::set_strays_aside(int timeline_if_untold) {
  const auto stays = [&](const auto& log) { return is_history(*log, timeline_if_untold); };
  const auto first = std::stable_partition(logs_.begin(), logs_.end(), stays);
  for (auto log = first; log != logs_.end(); ++log) {
    base::log_event(base::LogLevel::warning, "backlog_of_another_history",
                    {{"stream", stream_},
                     {"destination", destination_},
                     {"from", base::to_string((*log)->from())},
                     {"to", base::to_string((*log)->synced())},
                     {"timeline", timeline_of(**log)},
                     {"source_timeline", history_.timeline()}});
    strays_.push_back(std::move(*log));
  }
  logs_.erase(first, logs_.end());
}

void EarlierLogs::drop_strays() {
  for (const auto& log : strays_) log->remove();
  strays_.clear();
}

base::Result<void> check_joins(Lsn reached, Lsn from, Lsn slot_made_at, const std::string& name) {
  if (from <= reached) return {};
  if (slot_made_at <= reached) return gap_before(ErrorCode::position_gap, reached, from, name, "");
  return gap_before(ErrorCode::slot_lost, reached, from, name,
                    ": the source's slot was gone, and another one was made at " + base::to_string(slot_made_at));
}

base::Result<void> EarlierLogs::check_reach(Lsn reached, Lsn session_from, Lsn slot_made_at,
                                            const std::string& name) const {
  std::optional<Lsn> gap;
  for (const auto& log : logs_) {
    if (log->from() > reached) {
      gap = log->from();
      break;
    }
    reached = std::max(reached, log->synced());
  }
  if (!gap && session_from > reached) gap = session_from;
  if (!gap) return {};
  if (strays_.empty()) return check_joins(reached, *gap, slot_made_at, name);
  const spill::DurableLog& stray = *strays_.front();
  const int timeline = timeline_of(stray);
  const auto end = history_.end_of(timeline);
  return gap_before(ErrorCode::source_diverged, reached, *gap, name,
                    fmt::format(". They lie on the engine's disk, with what followed on timeline {} up to {}, but the "
                                "source is on timeline {}, which {}",
                                timeline, base::to_string(stray.synced()), history_.timeline(),
                                end ? "left that one at " + base::to_string(*end) : "was never on that one"));
}

void EarlierLogs::give_up() {
  drop_strays();
  for (const auto& log : logs_) log->remove();
  logs_.clear();
  logged_ = {};
}

void EarlierLogs::drop_front() { logs_.pop_front(); }

uint64_t EarlierLogs::frames_left() const {
  uint64_t sum = 0;
  for (const auto& log : logs_) sum += log->frames_left();
  return sum;
}

uint64_t EarlierLogs::changes_left() const {
  uint64_t sum = 0;
  for (const auto& log : logs_) sum += log->changes_left();
  return sum;
}

void EarlierLogs::close(Lsn own_logged) {
  logged_ = std::max(logged_, own_logged);
  logs_.clear();
  strays_.clear();
}

}  // namespace thalweg::daemon
