// simulation [--seeds FIRST..LAST] [--jobs N]   runs a world for each seed, each in a process of its own
// simulation --seed N [--trace]                 one world, in this process

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include <spdlog/spdlog.h>

#include "simulation/scheduler.h"
#include "simulation/verdict.h"
#include "simulation/world.h"

namespace {

using thalweg::simulation::run_world;
using thalweg::simulation::Scheduler;
using thalweg::simulation::Verdict;
using thalweg::simulation::WorldResult;

constexpr int kFailuresShown = 5;
constexpr unsigned kWorldSecondsMax = 60;  // then one of its fibers does not come back

// In memory where the machine has such a place: thousands of worlds spill. Made anew: a world that was killed leaves
// its directory behind, and a process may get its number again.
std::filesystem::path own_directory() {
  const std::filesystem::path memory = "/dev/shm";
  const auto base = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
  std::string name = base / "thalweg-simulation-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    std::perror("mkdtemp");
    std::exit(2);
  }
  return name;
}

struct Totals {
  uint64_t worlds = 0;
  uint64_t steps = 0;
  uint64_t transactions = 0;
  uint64_t faults = 0;
  uint64_t migrations = 0;
  uint64_t conflicts = 0;
  double seconds = 0;
};

// Report of a world's process to its parent, through a pipe.
struct Report {
  uint64_t seed;
  bool ok;
  uint64_t steps, transactions, faults, migrations, conflicts;
  double seconds;
};

// Fibers that go round by turns end by their number of steps; one that goes round by itself, and never asks the
// operating system for anything, by this. Nothing of the process is of use then, but to say who it was.
void give_up(int) {
  const Scheduler* const scheduler = Scheduler::current();
  std::printf("goes round without end: %s\n", scheduler == nullptr ? "the scheduler" : scheduler->fiber_name().c_str());
  std::fflush(stdout);
  _exit(3);
}

void set_limit() {
  std::signal(SIGALRM, give_up);
  alarm(kWorldSecondsMax);
}

int run_one(uint64_t seed, bool traces) {
  Verdict::get().traces = traces;
  set_limit();
  const auto directory = own_directory();
  const WorldResult result = run_world(seed, directory);
  std::filesystem::remove_all(directory);
  std::printf("seed %llu: %s, %llu steps, %.1f simulated s, %llu transactions, %llu faults, fingerprint %016llx\n",
              static_cast<unsigned long long>(seed), result.ok ? "ok" : "FAILED",
              static_cast<unsigned long long>(result.steps), result.simulated_seconds,
              static_cast<unsigned long long>(result.transactions), static_cast<unsigned long long>(result.faults),
              static_cast<unsigned long long>(result.fingerprint));
  if (!result.ok) std::printf("  %s\n", result.failure.c_str());
  std::fflush(stdout);
  return result.ok ? 0 : 1;
}

// The world of `seed` in a process of its own, which writes its report to `out`.
pid_t start_world(uint64_t seed, int out) {
  const pid_t child = fork();
  if (child != 0) return child;
  set_limit();
  const auto directory = own_directory();
  const WorldResult result = run_world(seed, directory);
  std::filesystem::remove_all(directory);
  const Report report{.seed = seed,
                      .ok = result.ok,
                      .steps = result.steps,
                      .transactions = result.transactions,
                      .faults = result.faults,
                      .migrations = result.migrations,
                      .conflicts = result.conflicts,
                      .seconds = result.simulated_seconds};
  const bool written = write(out, &report, sizeof(report)) == sizeof(report);
  _exit(written ? 0 : 2);  // the fibers that are left keep their memory: nothing is taken apart
}

int run_many(const char* program, uint64_t first, uint64_t last, int jobs) {
  const auto begun = std::chrono::steady_clock::now();
  int channel[2];
  if (pipe(channel) != 0) {
    std::perror("pipe");
    return 2;
  }
  std::map<pid_t, uint64_t> running;
  Totals totals;
  int failures = 0;
  uint64_t next = first;
  while (next <= last || !running.empty()) {
    while (next <= last && running.size() < static_cast<size_t>(jobs)) {
      running[start_world(next, channel[1])] = next;
      ++next;
    }
    int status = 0;
    const pid_t ended = wait(&status);
    const auto found = running.find(ended);
    if (found == running.end()) continue;
    const uint64_t seed = found->second;
    running.erase(found);
    Report report{};
    const bool reported = WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
                          read(channel[0], &report, sizeof(report)) == static_cast<ssize_t>(sizeof(report));
    ++totals.worlds;
    totals.steps += report.steps;
    totals.transactions += report.transactions;
    totals.faults += report.faults;
    totals.migrations += report.migrations;
    totals.conflicts += report.conflicts;
    totals.seconds += report.seconds;
    if (reported && report.ok) continue;
    if (++failures <= kFailuresShown) {
      // Reports need not come in the order in which worlds end. One that died has none.
      const uint64_t failed = reported ? report.seed : seed;
      std::printf("a world fails; replay: %s --seed %llu --trace\n", program, static_cast<unsigned long long>(failed));
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf(
      "%llu worlds in %.1f s: %llu transactions, %llu row migrations, %llu conflicts, %llu faults, %llu steps, %.0f "
      "simulated "
      "s; %d failed\n",
      static_cast<unsigned long long>(totals.worlds), took.count(),
      static_cast<unsigned long long>(totals.transactions), static_cast<unsigned long long>(totals.migrations),
      static_cast<unsigned long long>(totals.conflicts), static_cast<unsigned long long>(totals.faults),
      static_cast<unsigned long long>(totals.steps), totals.seconds, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  // A state is copied at every commit: its memory is to stay with the process.
  constexpr int kKept = 1 << 28;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kKept);
  uint64_t first = 1;
  uint64_t last = 100;
  int jobs = 2;
  bool single = false;
  bool traces = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    char* rest = nullptr;
    if (argument == "--trace") {
      traces = true;
    } else if (argument == "--seed") {
      single = true;
      first = std::strtoull(value, nullptr, 10);
      ++i;
    } else if (argument == "--seeds") {
      first = std::strtoull(value, &rest, 10);
      last = rest[0] == '.' ? std::strtoull(rest + 2, nullptr, 10) : first;
      ++i;
    } else if (argument == "--jobs") {
      jobs = std::atoi(value);
      ++i;
    } else {
      std::fprintf(stderr, "usage: %s [--seeds FIRST..LAST] [--jobs N] | --seed N [--trace]\n", argv[0]);
      return 2;
    }
  }
  if (!single) return run_many(argv[0], first, last, jobs);
  _exit(run_one(first, traces));  // fibers are left: nothing is taken apart
}
