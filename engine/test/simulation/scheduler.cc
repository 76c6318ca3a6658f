#include "simulation/scheduler.h"

#include <sys/mman.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define THALWEG_FIBERS_OF_SANITIZER 1
#endif
#endif

namespace thalweg::simulation {

namespace {

constexpr size_t kStackBytes = size_t{1} << 20;  // pages come as they are touched
constexpr Time kStepMax = 20 * kMicrosecond;     // of simulated time that a step takes
constexpr uint32_t kStallOnceIn = 512;           // steps: a fiber that the operating system leaves out for a while
constexpr Time kStallMax = 30 * kMillisecond;

Scheduler* current_scheduler = nullptr;

}  // namespace

struct Scheduler::Fiber {
  uint64_t id = 0;
  Process* process = nullptr;
  std::function<void()> body;
  void* stack = nullptr;
  ucontext_t context{};
  bool waiting = false;
  bool finished = false;
  bool woken = false;
  const void* key = nullptr;
  Time wake_at = 0;  // waiting: the deadline; ready: not before
  void* fake_stack = nullptr;
};

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

uint64_t Scheduler::random(uint64_t below) { return below == 0 ? 0 : generator_() % below; }

uint64_t Scheduler::spawn(Process& process, std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->id = next_id_++;
  fiber->process = &process;
  fiber->body = std::move(body);
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
  swapcontext(&home_, &fiber.context);
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
  swapcontext(&self.context, &home_);
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
    ++steps_;
    now_ += static_cast<Time>(random(static_cast<uint64_t>(kStepMax)));
    if (fiber->waiting) {
      fiber->waiting = false;
      fiber->key = nullptr;
    }
    switch_to(*fiber);
    if (fiber->finished) remove(fiber);
  }
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
