#include "simulation/scheduler.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "simulation/verdict.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define THALWEG_FIBERS_OF_SANITIZER 1
#endif
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define THALWEG_FIBERS_BY_CONTEXT 1  // they do not follow jumps from one stack to another
#endif
#endif

namespace thalweg::simulation {

namespace {

constexpr size_t kStackBytes = size_t{1} << 20;  // pages come as they are touched
constexpr Time kStepMax = 20 * kMicrosecond;     // of simulated time that a step takes
constexpr uint32_t kStallOnceIn = 512;           // steps: a fiber that the operating system leaves out for a while
constexpr Time kStallMax = 30 * kMillisecond;
constexpr uint64_t kStepsMax = 3'000'000;    // thirty times the longest of thousands of worlds
constexpr uint64_t kStepsWatched = 100'000;  // the last of them: whose they are
constexpr size_t kBusiestShown = 6;

Scheduler* current_scheduler = nullptr;

}  // namespace

struct Scheduler::Fiber {
  uint64_t id = 0;
  Process* process = nullptr;
  std::function<void()> body;
  const char* what = nullptr;
  uint64_t steps_watched = 0;
  void* stack = nullptr;
  ucontext_t context{};
  jmp_buf registers;  // once it has begun: going on with them needs no system call
  bool begun = false;
  bool waiting = false;
  bool finished = false;
  bool woken = false;
  const void* key = nullptr;
  Time wake_at = 0;  // waiting: the deadline; ready: not before
  void* fake_stack = nullptr;
};

#ifdef THALWEG_FIBERS_BY_CONTEXT
void Scheduler::enter(Fiber& fiber) { swapcontext(&home_, &fiber.context); }
void Scheduler::leave(Fiber& fiber) { swapcontext(&fiber.context, &home_); }
#else
void Scheduler::enter(Fiber& fiber) {
  if (_setjmp(home_registers_) != 0) return;
  if (fiber.begun) _longjmp(fiber.registers, 1);
  fiber.begun = true;
  setcontext(&fiber.context);
}

void Scheduler::leave(Fiber& fiber) {
  if (_setjmp(fiber.registers) == 0) _longjmp(home_registers_, 1);
}
#endif

Scheduler* Scheduler::current() {
  return current_scheduler != nullptr && current_scheduler->running_ != nullptr ? current_scheduler : nullptr;
}

Scheduler::Scheduler(uint64_t seed) : generator_(seed) {
  current_scheduler = this;
  __libc_single_threaded = 0;  // the standard library leaves out what only other threads would notice
}

Scheduler::~Scheduler() { current_scheduler = nullptr; }

Process& Scheduler::process() const { return *running_->process; }
uint64_t Scheduler::fiber_id() const { return running_->id; }
std::string Scheduler::fiber_name() const { return name_of(*running_); }

uint64_t Scheduler::random(uint64_t below) { return below == 0 ? 0 : generator_() % below; }

uint64_t Scheduler::spawn(Process& process, std::function<void()> body, const char* what) {
  auto fiber = std::make_unique<Fiber>();
  fiber->id = next_id_++;
  fiber->process = &process;
  fiber->body = std::move(body);
  fiber->what = what;
  fiber->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fiber->stack == MAP_FAILED) {
    std::perror("mmap of a fiber's stack");
    std::abort();
  }
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, &Scheduler::entry, 0);
  fibers_.push_back(std::move(fiber));
  return fibers_.back()->id;
}

void Scheduler::entry() {
  Scheduler& scheduler = *current_scheduler;
#ifdef THALWEG_FIBERS_OF_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.home_stack_, &scheduler.home_stack_bytes_);
#endif
  scheduler.running_->body();
  scheduler.running_->finished = true;
  scheduler.wake(scheduler.running_);
  scheduler.switch_back();
}

void Scheduler::switch_to(Fiber& fiber) {
  running_ = &fiber;
#ifdef THALWEG_FIBERS_OF_SANITIZER
  __sanitizer_start_switch_fiber(&home_fake_stack_, fiber.stack, kStackBytes);
#endif
  enter(fiber);
#ifdef THALWEG_FIBERS_OF_SANITIZER
  __sanitizer_finish_switch_fiber(home_fake_stack_, nullptr, nullptr);
#endif
  running_ = nullptr;
}

void Scheduler::switch_back() {
  Fiber& self = *running_;
#ifdef THALWEG_FIBERS_OF_SANITIZER
  __sanitizer_start_switch_fiber(self.finished ? nullptr : &self.fake_stack, home_stack_, home_stack_bytes_);
#endif
  leave(self);
#ifdef THALWEG_FIBERS_OF_SANITIZER
  __sanitizer_finish_switch_fiber(self.fake_stack, &home_stack_, &home_stack_bytes_);
#endif
}

// Any of those that can run now; else time passes until one can.
Scheduler::Fiber* Scheduler::pick() {
  while (true) {
    size_t ready = 0;
    Time next = kNever;
    for (const auto& fiber : fibers_) {
      if (fiber->wake_at <= now_) ++ready;
      next = std::min(next, fiber->wake_at);
    }
    if (ready == 0) {
      if (next == kNever) return nullptr;
      now_ = next;
      continue;
    }
    size_t nth = random(ready);
    for (const auto& fiber : fibers_) {
      if (fiber->wake_at <= now_ && nth-- == 0) return fiber.get();
    }
  }
}

void Scheduler::remove(const Fiber* fiber) {
  const auto found = std::ranges::find(fibers_, fiber, &std::unique_ptr<Fiber>::get);
  munmap((*found)->stack, kStackBytes);
  fibers_.erase(found);
}

void Scheduler::run(const std::function<bool()>& done) {
  while (!done()) {
    Fiber* const fiber = pick();
    if (fiber == nullptr) return;
    if (++steps_ > kStepsMax) return fail("goes round without end; its last {} steps:{}", kStepsWatched, busiest());
    if (steps_ > kStepsMax - kStepsWatched) ++fiber->steps_watched;
    now_ += static_cast<Time>(random(static_cast<uint64_t>(kStepMax)));
    if (fiber->waiting) {
      fiber->waiting = false;
      fiber->key = nullptr;
    }
    switch_to(*fiber);
    if (fiber->finished) remove(fiber);
  }
}

// "engine, fiber 12, std::thread's ... Coordinator::Coordinator(...)::{lambda()#1} ..."
std::string Scheduler::name_of(const Fiber& fiber) const {
  std::string name = fmt::format("{}, fiber {}", fiber.process->name, fiber.id);
  if (fiber.what == nullptr) return name;
  int status = 0;
  char* const readable = abi::__cxa_demangle(fiber.what, nullptr, nullptr, &status);
  name += fmt::format(", {}", readable == nullptr ? fiber.what : readable);
  std::free(readable);
  return name;
}

std::string Scheduler::busiest() const {
  std::vector<const Fiber*> all;
  for (const auto& fiber : fibers_) {
    if (fiber->steps_watched > 0) all.push_back(fiber.get());
  }
  std::ranges::sort(all, std::greater(), &Fiber::steps_watched);
  std::string shown;
  for (size_t i = 0; i < std::min(all.size(), kBusiestShown); ++i) {
    shown += fmt::format("\n    {} of {}", all[i]->steps_watched, name_of(*all[i]));
  }
  return shown;
}

void Scheduler::kill(Process& process) {
  process.alive = false;
  for (auto& fiber : fibers_) {
    if (fiber->process == &process && fiber.get() != running_) gone_.push_back(std::move(fiber));
  }
  std::erase(fibers_, nullptr);
}

void Scheduler::yield() {
  running_->waiting = false;
  running_->wake_at = now_;
  if (chance(kStallOnceIn)) running_->wake_at += static_cast<Time>(random(static_cast<uint64_t>(kStallMax)));
  switch_back();
}

void Scheduler::maybe_yield(uint32_t once_in) {
  if (chance(once_in)) yield();
}

void Scheduler::sleep_until(Time when) {
  running_->waiting = false;
  running_->wake_at = when;
  switch_back();
}

bool Scheduler::wait(const void* key, Time deadline) {
  running_->waiting = true;
  running_->woken = false;
  running_->key = key;
  running_->wake_at = std::max(deadline, now_);
  switch_back();
  return running_->woken;
}

void Scheduler::wake(const void* key, size_t at_most) {
  for (const auto& fiber : fibers_) {
    if (at_most == 0) return;
    if (!fiber->waiting || fiber->woken || fiber->key != key) continue;
    fiber->woken = true;
    fiber->wake_at = now_;
    --at_most;
  }
}

void Scheduler::join(uint64_t id) {
  while (true) {
    const auto found = std::ranges::find(fibers_, id, [](const auto& fiber) { return fiber->id; });
    if (found == fibers_.end() || (*found)->finished) return;
    wait(found->get(), kNever);
  }
}

}  // namespace thalweg::simulation
