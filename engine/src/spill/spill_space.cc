#include "spill/spill_space.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"

namespace thalweg::spill {

using base::ErrorCode;
using base::Result;

namespace {

constexpr uint64_t kLookBytes = uint64_t{8} << 20;  // between looks at the file system
constexpr double kMiB = 1024 * 1024;

}  // namespace

SpillSpace::SpillSpace(std::filesystem::path directory, uint64_t limit_bytes, const base::Clock& clock,
                       uint64_t free_bytes_min, std::string_view limit_name)
    : directory_(std::move(directory)),
      clock_(clock),
      free_bytes_min_(free_bytes_min),
      limit_name_(limit_name),
      limit_bytes_(limit_bytes) {}

Result<size_t> SpillSpace::clear() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return std::unexpected(base::file_error(error.value(), "create " + directory_.string()));
  std::filesystem::directory_iterator entries(directory_, error);
  if (error) return std::unexpected(base::file_error(error.value(), "list " + directory_.string()));
  size_t removed = 0;
  for (const std::filesystem::directory_iterator end; entries != end; entries.increment(error)) {
    if (error) return std::unexpected(base::file_error(error.value(), "list " + directory_.string()));
    if (!entries->path().filename().string().starts_with(file_prefix())) continue;
    if (::unlink(entries->path().c_str()) != 0) {
      return std::unexpected(base::file_error(errno, "remove " + entries->path().string()));
    }
    ++removed;
  }
  return removed;
}

Result<void> SpillSpace::check_free_space(uint64_t bytes) {
  struct statvfs found{};
  if (::statvfs(directory_.c_str(), &found) != 0) {
    return std::unexpected(base::file_error(errno, "ask for the free space of " + directory_.string()));
  }
  const uint64_t free_bytes = uint64_t{found.f_bavail} * found.f_frsize;
  if (free_bytes < bytes + free_bytes_min_) {
    return base::fail(
        ErrorCode::disk_full,
        fmt::format("the disk of {} has {:.0f} MiB left; spilling leaves {:.0f} MiB for others", directory_.string(),
                    static_cast<double>(free_bytes) / kMiB, static_cast<double>(free_bytes_min_) / kMiB));
  }
  return {};
}

Result<void> SpillSpace::limit_reached(uint64_t limit) const {
  return base::fail(ErrorCode::spill_limit_reached,
                    fmt::format("spilled LCRs take {:.0f} MiB in {}, which {} limits to {:.0f} MiB",
                                static_cast<double>(used_bytes_) / kMiB, directory_.string(), limit_name_,
                                static_cast<double>(limit) / kMiB));
}

Result<void> SpillSpace::check_limit() const {
  const std::lock_guard lock(mutex_);
  const uint64_t limit = limit_bytes_.load(std::memory_order_relaxed);
  return used_bytes_ > limit ? limit_reached(limit) : Result<void>{};
}

Result<void> SpillSpace::take(uint64_t bytes, bool above_limit) {
  const std::lock_guard lock(mutex_);
  const uint64_t limit = limit_bytes_.load(std::memory_order_relaxed);
  if (!above_limit && used_bytes_ + bytes > limit) return limit_reached(limit);
  unchecked_bytes_ += bytes;
  if (unchecked_bytes_ >= kLookBytes) {
    THALWEG_TRY(check_free_space(bytes));  // a failure leaves the next take to look again
    unchecked_bytes_ = 0;
  }
  used_bytes_ += bytes;
  return {};
}

void SpillSpace::adopt(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ += bytes;
}

void SpillSpace::give(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  assert(bytes <= used_bytes_);
  used_bytes_ -= bytes;
}

uint64_t SpillSpace::log_begun() {
  const std::lock_guard lock(mutex_);
  ++logs_;
  return next_log_++;
}

void SpillSpace::log_gone() {
  const std::lock_guard lock(mutex_);
  --logs_;
}

SpillSpace::Begun SpillSpace::segment_begun() {
  const Begun now = clock_.steady_now();
  const std::lock_guard lock(mutex_);
  segments_.insert(now);
  return now;
}

SpillSpace::Begun SpillSpace::segment_found(base::UnixMicros born) {
  // The wall clock may have been set back since.
  const std::chrono::microseconds age(std::max<int64_t>(0, clock_.unix_now().value - born.value));
  const Begun begun = clock_.steady_now() - age;
  const std::lock_guard lock(mutex_);
  segments_.insert(begun);
  return begun;
}

void SpillSpace::segment_gone(Begun begun) {
  const std::lock_guard lock(mutex_);
  const auto found = segments_.find(begun);
  assert(found != segments_.end());
  segments_.erase(found);
}

SpillUse SpillSpace::use() const {
  const Begun now = clock_.steady_now();
  const std::lock_guard lock(mutex_);
  const auto age = segments_.empty() ? std::chrono::microseconds{0}
                                     : std::chrono::duration_cast<std::chrono::microseconds>(now - *segments_.begin());
  return {.bytes = used_bytes_,
          .logs = logs_,
          .segments = segments_.size(),
          .age = std::max(age, std::chrono::microseconds{0})};
}

}  // namespace thalweg::spill
