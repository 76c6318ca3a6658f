#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

// One thread, many fibers, one clock and one seed: everything that the engine's threads would do at the same time
// happens one after the other, in an order that the seed decides.

namespace thalweg::simulation {

// Nanoseconds since the world began.
using Time = int64_t;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;
inline constexpr Time kNever = INT64_MAX;

// Unit that dies as a whole: an engine, a database server. Killing it forgets its fibers where they stand: no
// destructor runs, as with kill -9. Their memory goes when the process that simulates this seed ends.
struct Process {
  std::string name;
  bool alive = true;
};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The one that runs now; nullptr outside of run().
  static Scheduler* current();

  // `what`: the type of whatever runs in it, as typeid names it; stays.
  uint64_t spawn(Process& process, std::function<void()> body, const char* what = nullptr);
  // Runs fibers until `done` returns true, none can ever run again, or they have gone round for so long that they will
  // for ever: that is a failure, which names them.
  void run(const std::function<bool()>& done);
  void kill(Process& process);

  // --- for the fiber that runs
  Time now() const { return now_; }
  void tick(Time by) { now_ += by; }
  Process& process() const;
  uint64_t fiber_id() const;
  std::string fiber_name() const;
  void yield();
  // Yields once in so many calls.
  void maybe_yield(uint32_t once_in);
  void sleep_until(Time when);
  // Until wake(key) or `deadline`; false: the deadline.
  bool wait(const void* key, Time deadline);
  void wake(const void* key, size_t at_most = SIZE_MAX);
  void join(uint64_t fiber);

  // --- chance: every decision of the world comes from here
  uint64_t random(uint64_t below);
  bool chance(uint32_t once_in) { return once_in != 0 && random(once_in) == 0; }
  std::mt19937_64& generator() { return generator_; }
  uint64_t steps() const { return steps_; }

 private:
  struct Fiber;
  static void entry();
  void enter(Fiber& fiber);
  void leave(Fiber& fiber);
  void switch_to(Fiber& fiber);
  void switch_back();
  Fiber* pick();
  void remove(const Fiber* fiber);
  std::string name_of(const Fiber& fiber) const;
  std::string busiest() const;

  std::mt19937_64 generator_;
  Time now_ = 0;
  uint64_t steps_ = 0;
  uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::unique_ptr<Fiber>> gone_;  // killed; their stacks stay as they are
  Fiber* running_ = nullptr;
  ucontext_t home_{};
  [[maybe_unused]] jmp_buf home_registers_{};  // where fibers change without system calls
  void* home_fake_stack_ = nullptr;
  const void* home_stack_ = nullptr;
  size_t home_stack_bytes_ = 0;
};

}  // namespace thalweg::simulation
