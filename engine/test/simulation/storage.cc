#include "simulation/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

namespace fs = std::filesystem;

constexpr size_t kSectorBytes = 512;  // a disk writes whole ones; only the one that it is writing may be torn
Storage* current_storage = nullptr;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<ptrdiff_t>(bytes.size()));
}

fs::path path_of(int descriptor) {
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), error);
}

bool lies_in(const fs::path& path, const fs::path& directory) {
  return path.string().starts_with(directory.string() + "/");
}

}  // namespace

Storage* Storage::current() { return Scheduler::current() == nullptr ? nullptr : current_storage; }
void Storage::make_current() { current_storage = this; }

void Storage::made(const fs::path& path, bool folder) {
  steps_.push_back({.kind = folder ? Step::Kind::made_folder : Step::Kind::made_file, .path = path, .synced = {}});
}

void Storage::will_remove(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      will_remove(entry->path());
    }
    steps_.push_back({.kind = Step::Kind::removed_folder, .path = path, .synced = {}});
  } else if (fs::exists(path, error)) {
    steps_.push_back({.kind = Step::Kind::removed_file, .path = path, .synced = synced_[path]});
    synced_.erase(path);
    wrongly_clean_.erase(path);
  }
}

void Storage::synced(int descriptor) {
  std::error_code error;
  const fs::path path = path_of(descriptor);
  if (fs::is_directory(path, error)) {
    const auto last =
        std::find_if(steps_.rbegin(), steps_.rend(), [&](const Step& step) { return step.path.parent_path() == path; });
    // Earlier steps are in the same journal, and durable as well.
    steps_.erase(steps_.begin(), last.base());
  } else if (fs::exists(path, error)) {
    std::string bytes = read_all(path);
    const std::string& before = synced_[path];
    for (const size_t at : wrongly_clean_[path]) {
      if (at < std::min(bytes.size(), before.size())) bytes.replace(at, kSectorBytes, before, at, kSectorBytes);
    }
    bytes.resize(fs::file_size(path));
    synced_[path] = bytes;
  }
}

void Storage::sync_failed(int descriptor) {
  const fs::path path = path_of(descriptor);
  const std::string now = read_all(path);
  std::string& on_disk = synced_[path];
  on_disk.resize(now.size(), '\0');
  for (size_t at = 0; at < now.size(); at += kSectorBytes) {
    if (now.compare(at, kSectorBytes, on_disk, at, kSectorBytes) == 0) continue;
    if (scheduler_.chance(2)) {
      on_disk.replace(at, kSectorBytes, now, at, kSectorBytes);
    } else {
      wrongly_clean_[path].insert(at);
    }
  }
  if (scheduler_.chance(2)) write_all(path, on_disk);
  trace("an fsync of {} fails, {} sectors are lost", path.filename().string(), wrongly_clean_[path].size());
}

void Storage::written(int descriptor, size_t at, size_t bytes) {
  if (wrongly_clean_.empty()) return;
  const auto found = wrongly_clean_.find(path_of(descriptor));
  if (found == wrongly_clean_.end()) return;
  std::erase_if(found->second, [&](size_t sector) { return sector + kSectorBytes > at && sector < at + bytes; });
}

bool Storage::await_trap(Time deadline) {
  while (!trapped_ && scheduler_.now() < deadline) scheduler_.wait(this, deadline);
  trap_ = 0;
  return std::exchange(trapped_, false);
}

void Storage::step_into_trap() {
  if (trap_ == 0 || &scheduler_.process() != prey_ || --trap_ > 0) return;
  trapped_ = true;
  scheduler_.wake(this);
  scheduler_.sleep_until(kNever);
}

void Storage::lose_power(const fs::path& directory) {
  std::vector<Step> own;
  std::erase_if(steps_, [&](const Step& step) {
    if (!lies_in(step.path, directory)) return false;
    own.push_back(step);
    return true;
  });
  const size_t kept = scheduler_.random(own.size() + 1);
  for (size_t i = own.size(); i > kept; --i) undo(own[i - 1]);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);  // chance decides in this order
  for (const fs::path& file : files) tear(file);
  trace("power is lost: {} of {} steps undone, {} files", own.size() - kept, own.size(), files.size());
}

void Storage::undo(const Step& step) {
  switch (step.kind) {
    case Step::Kind::made_file:
      fs::remove(step.path);
      synced_.erase(step.path);
      return;
    case Step::Kind::made_folder:
      fs::remove_all(step.path);
      return;
    case Step::Kind::removed_file:
      write_all(step.path, step.synced);
      synced_[step.path] = step.synced;
      return;
    case Step::Kind::removed_folder:
      fs::create_directory(step.path);
      return;
  }
}

// Sectors that were written and not synced are there or not, each by chance; so is what became of the file's length.
void Storage::tear(const fs::path& path) {
  const std::string now = read_all(path);
  const std::string before = synced_[path];
  if (now == before) return;
  std::string torn = now;
  torn.resize(std::max(now.size(), before.size()), '\0');
  for (size_t at = 0; at < torn.size(); at += kSectorBytes) {
    const size_t size = std::min(kSectorBytes, torn.size() - at);
    std::string old = at < before.size() ? before.substr(at, size) : std::string();
    old.resize(size, '\0');
    if (torn.compare(at, size, old) == 0) continue;
    const bool clean = wrongly_clean_[path].contains(at);
    if (!clean && scheduler_.chance(2)) continue;
    const size_t written = !clean && scheduler_.chance(4) ? scheduler_.random(size) : 0;  // of this sector
    torn.replace(at + written, size - written, old, written, std::string::npos);
  }
  const size_t least = std::min(now.size(), before.size());
  const size_t most = std::max(now.size(), before.size());
  const uint64_t dice = scheduler_.random(4);
  torn.resize(dice < 2 ? now.size() : dice == 2 ? before.size() : least + scheduler_.random(most - least + 1));
  write_all(path, torn);
  synced_[path] = torn;
  wrongly_clean_.erase(path);
}

}  // namespace thalweg::simulation
