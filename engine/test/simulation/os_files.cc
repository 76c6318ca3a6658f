// The operating system's files, as the engine's libraries call them (see os_threads.cc): real ones, of which Storage
// keeps what a loss of power would leave. read and write are of events, too (os_sockets.cc).

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "simulation/network.h"
#include "simulation/storage.h"
#include "simulation/transformations.h"

namespace fs = std::filesystem;

using thalweg::simulation::kMillisecond;
using thalweg::simulation::Network;
using thalweg::simulation::Scheduler;
using thalweg::simulation::Storage;
using thalweg::simulation::Time;

namespace {

constexpr uint32_t kYieldAtCall = 8;
constexpr Time kSyncMax = 5 * kMillisecond;

Network* network_for(int descriptor) { return Network::is_ours(descriptor) ? Network::current() : nullptr; }

// How much of a write happens, and what becomes of it: `write` gets the bytes. -1 with errno set where nothing does.
template <typename Write>
ssize_t write_as_storage_does(Storage& storage, const void* data, size_t size, Write write) {
  Scheduler& scheduler = *Scheduler::current();
  scheduler.maybe_yield(kYieldAtCall);
  storage.step_into_trap();
  const auto* const bytes = static_cast<const char*>(data);
  if (storage.full) {
    if (size > 1 && scheduler.chance(2)) return write(bytes, 1 + scheduler.random(size - 1));
    errno = ENOSPC;
    return -1;
  }
  if (!scheduler.chance(storage.damaged_once_in)) return write(bytes, size);
  std::vector<char> damaged(bytes, bytes + size);
  const size_t begin = scheduler.random(size);
  if (scheduler.chance(2)) {
    damaged[begin] = static_cast<char>(damaged[begin] ^ (1 << scheduler.random(8)));
  } else {
    std::fill(damaged.begin() + static_cast<ptrdiff_t>(begin), damaged.end(), '\0');  // as a torn write leaves it
  }
  return write(damaged.data(), size);
}

}  // namespace

extern "C" {

int __real_open(const char* path, int flags, ...);
int __real_mkdir(const char* path, mode_t mode);
int __real_unlink(const char* path);
int __real_fsync(int descriptor);
ssize_t __real_read(int descriptor, void* data, size_t size);
ssize_t __real_write(int descriptor, const void* data, size_t size);
int __real_statvfs(const char* path, struct statvfs* found);
bool __real__ZNSt10filesystem6removeERKNS_7__cxx114pathERSt10error_code(const fs::path& path, std::error_code& error);
uintmax_t __real__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(const fs::path& path,
                                                                                  std::error_code& error);
bool __real__ZNSt10filesystem18create_directoriesERKNS_7__cxx114pathERSt10error_code(const fs::path& path,
                                                                                     std::error_code& error);

int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  Storage* const storage = Storage::current();
  const bool makes = storage != nullptr && (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  const int descriptor = __real_open(path, flags, mode);
  if (makes && descriptor >= 0) storage->made(path, false);
  return descriptor;
}

int __wrap_mkdir(const char* path, mode_t mode) {
  const int made = __real_mkdir(path, mode);
  if (Storage* const storage = Storage::current(); storage != nullptr && made == 0) storage->made(path, true);
  return made;
}

int __wrap_unlink(const char* path) {
  if (Storage* const storage = Storage::current()) storage->will_remove(path);
  return __real_unlink(path);
}

bool __wrap__ZNSt10filesystem6removeERKNS_7__cxx114pathERSt10error_code(const fs::path& path, std::error_code& error) {
  if (Storage* const storage = Storage::current()) storage->will_remove(path);
  return __real__ZNSt10filesystem6removeERKNS_7__cxx114pathERSt10error_code(path, error);
}

uintmax_t __wrap__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(const fs::path& path,
                                                                                  std::error_code& error) {
  if (Storage* const storage = Storage::current()) storage->will_remove(path);
  return __real__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(path, error);
}

bool __wrap__ZNSt10filesystem18create_directoriesERKNS_7__cxx114pathERSt10error_code(const fs::path& path,
                                                                                     std::error_code& error) {
  if (Storage* const storage = Storage::current()) {
    std::vector<fs::path> missing;
    for (fs::path at = path; !at.empty() && !fs::exists(at); at = at.parent_path()) missing.push_back(at);
    for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) storage->made(*folder, true);
  }
  return __real__ZNSt10filesystem18create_directoriesERKNS_7__cxx114pathERSt10error_code(path, error);
}

int __wrap_fsync(int descriptor) {
  Storage* const storage = Storage::current();
  if (storage == nullptr) return __real_fsync(descriptor);
  Scheduler& scheduler = *Scheduler::current();
  storage->step_into_trap();
  scheduler.sleep_until(scheduler.now() + static_cast<Time>(scheduler.random(static_cast<uint64_t>(kSyncMax))));
  struct stat found{};
  if (storage->sync_fails && ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) && scheduler.chance(2)) {
    storage->sync_failed(descriptor);
    errno = EIO;
    return -1;
  }
  storage->synced(descriptor);
  return 0;
}

ssize_t __wrap_read(int descriptor, void* data, size_t size) {
  if (Network* const network = network_for(descriptor)) {
    network->find(descriptor)->rings = 0;
    return sizeof(uint64_t);
  }
  if (Storage* const storage = Storage::current()) {
    Scheduler::current()->maybe_yield(kYieldAtCall);
    if (Scheduler::current()->chance(storage->read_error_once_in)) {
      errno = EIO;
      return -1;
    }
  }
  return __real_read(descriptor, data, size);
}

ssize_t __wrap_write(int descriptor, const void* data, size_t size) {
  if (Network* const network = network_for(descriptor)) {
    ++network->find(descriptor)->rings;
    network->changed();
    return sizeof(uint64_t);
  }
  Storage* const storage = Storage::current();
  if (storage == nullptr) return __real_write(descriptor, data, size);
  thalweg::simulation::must_not_leak({static_cast<const char*>(data), size}, "a file of an engine");
  return write_as_storage_does(*storage, data, size, [descriptor, storage](const char* bytes, size_t part) {
    const off_t at = ::lseek(descriptor, 0, SEEK_CUR);
    const ssize_t written = __real_write(descriptor, bytes, part);
    if (at >= 0 && written > 0) storage->written(descriptor, static_cast<size_t>(at), static_cast<size_t>(written));
    return written;
  });
}

int __wrap_statvfs(const char* path, struct statvfs* found) {
  const int result = __real_statvfs(path, found);
  const Storage* const storage = Storage::current();
  if (result == 0 && storage != nullptr) {
    found->f_frsize = 4096;
    found->f_bavail = storage->full ? 0 : uint64_t{1} << 30;
  }
  return result;
}

}  // extern "C"
