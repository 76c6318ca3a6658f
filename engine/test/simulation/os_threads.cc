// The operating system's threads, locks and clocks, as the engine's libraries call them; the linker's --wrap brings
// their calls here (CMakeLists.txt has the list). Outside of a fiber everything is the real thing.

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <typeinfo>

#include "simulation/scheduler.h"
#include "simulation/system_clock.h"

extern "C" int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);

namespace thalweg::simulation {

namespace {

constexpr uint32_t kYieldAtLock = 8;  // once in so many calls
constexpr uint32_t kYieldAtClock = 32;
constexpr Time kClockRead = 100;  // that a look at the clock takes: nobody can spin until a deadline for ever

int64_t wall_step_ns = 0;

Time relative(const timespec* timeout, Time now) {
  return timeout == nullptr ? kNever : now + timeout->tv_sec * kSecond + timeout->tv_nsec;
}

bool cond_wait(const void* condition, pthread_mutex_t* mutex, Time deadline) {
  Scheduler& scheduler = *Scheduler::current();
  // The unlocking and the beginning of the wait are one step: nobody can notify in between.
  __real_pthread_mutex_unlock(mutex);
  scheduler.wake(mutex);
  const bool woken = scheduler.wait(condition, deadline);
  pthread_mutex_lock(mutex);
  return woken;
}

}  // namespace

void step_wall_clock(Time by) { wall_step_ns += by; }

}  // namespace thalweg::simulation

using thalweg::simulation::kNever;
using thalweg::simulation::kSecond;
using thalweg::simulation::Scheduler;
using thalweg::simulation::Time;

// C linkage is for the linker's names only; both sides are C++.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_unlock(pthread_rwlock_t* lock);
int __real_nanosleep(const timespec* wanted, timespec* left);
int __real_sched_yield();
pthread_t __real_pthread_self();
int __real_pthread_sigmask(int how, const sigset_t* set, sigset_t* old);
int __real_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until);
long __real_syscall(long number, ...);
std::chrono::steady_clock::time_point __real__ZNSt6chrono3_V212steady_clock3nowEv();
std::chrono::system_clock::time_point __real__ZNSt6chrono3_V212system_clock3nowEv();
void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* thread, std::unique_ptr<std::thread::_State> state, void (*depend)());
void __real__ZNSt6thread4joinEv(std::thread* thread);
void __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* condition,
                                                                      std::unique_lock<std::mutex>* lock);
void __real__ZNSt18condition_variable10notify_allEv(std::condition_variable* condition);
void __real__ZNSt18condition_variable10notify_oneEv(std::condition_variable* condition);
unsigned int __real__ZNSt13random_device9_M_getvalEv(std::random_device* device);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real_pthread_mutex_lock(mutex);
  scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
  while (pthread_mutex_trylock(mutex) == EBUSY) scheduler->wait(mutex, kNever);
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int unlocked = __real_pthread_mutex_unlock(mutex);
  if (Scheduler* const scheduler = Scheduler::current()) {
    scheduler->wake(mutex);
    scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
  }
  return unlocked;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real_pthread_rwlock_rdlock(lock);
  scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
  while (pthread_rwlock_tryrdlock(lock) == EBUSY) scheduler->wait(lock, kNever);
  return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real_pthread_rwlock_wrlock(lock);
  scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
  while (pthread_rwlock_trywrlock(lock) == EBUSY) scheduler->wait(lock, kNever);
  return 0;
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  const int unlocked = __real_pthread_rwlock_unlock(lock);
  if (Scheduler* const scheduler = Scheduler::current()) {
    scheduler->wake(lock);
    scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
  }
  return unlocked;
}

int __wrap_nanosleep(const timespec* wanted, timespec* left) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real_nanosleep(wanted, left);
  scheduler->sleep_until(thalweg::simulation::relative(wanted, scheduler->now()));
  return 0;
}

int __wrap_sched_yield() {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real_sched_yield();
  scheduler->yield();
  return 0;
}

pthread_t __wrap_pthread_self() {
  Scheduler* const scheduler = Scheduler::current();
  return scheduler == nullptr ? __real_pthread_self() : static_cast<pthread_t>(scheduler->fiber_id());
}

int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  return Scheduler::current() == nullptr ? __real_pthread_sigmask(how, set, old) : 0;
}

int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real_pthread_cond_clockwait(condition, mutex, clock, until);
  const Time deadline = until->tv_sec * kSecond + until->tv_nsec;  // every wait is against the steady clock
  return thalweg::simulation::cond_wait(condition, mutex, deadline) ? 0 : ETIMEDOUT;
}

void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* condition,
                                                                      std::unique_lock<std::mutex>* lock) {
  if (Scheduler::current() == nullptr) {
    __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(condition, lock);
    return;
  }
  thalweg::simulation::cond_wait(condition, lock->mutex()->native_handle(), kNever);
}

void __wrap__ZNSt18condition_variable10notify_allEv(std::condition_variable* condition) {
  if (Scheduler* const scheduler = Scheduler::current()) return scheduler->wake(condition);
  __real__ZNSt18condition_variable10notify_allEv(condition);
}

void __wrap__ZNSt18condition_variable10notify_oneEv(std::condition_variable* condition) {
  if (Scheduler* const scheduler = Scheduler::current()) return scheduler->wake(condition, 1);
  __real__ZNSt18condition_variable10notify_oneEv(condition);
}

long __wrap_syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long values[6];
  for (long& value : values) value = va_arg(arguments, long);
  va_end(arguments);
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr || number != SYS_futex) {
    return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
  }
  auto* const word = reinterpret_cast<std::atomic<uint32_t>*>(values[0]);
  if ((values[1] & FUTEX_CMD_MASK) == FUTEX_WAKE) {
    scheduler->wake(word, static_cast<size_t>(values[2]));
    scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
    return 0;
  }
  scheduler->maybe_yield(thalweg::simulation::kYieldAtLock);
  if (word->load() != static_cast<uint32_t>(values[2])) {
    errno = EAGAIN;
    return -1;
  }
  const auto* const timeout = reinterpret_cast<const timespec*>(values[3]);
  const bool woken = scheduler->wait(word, thalweg::simulation::relative(timeout, scheduler->now()));
  if (woken) return 0;
  errno = ETIMEDOUT;
  return -1;
}

std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real__ZNSt6chrono3_V212steady_clock3nowEv();
  scheduler->tick(thalweg::simulation::kClockRead);
  const Time now = scheduler->now();
  scheduler->maybe_yield(thalweg::simulation::kYieldAtClock);
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(now));
}

std::chrono::system_clock::time_point __wrap__ZNSt6chrono3_V212system_clock3nowEv() {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real__ZNSt6chrono3_V212system_clock3nowEv();
  return std::chrono::system_clock::time_point(std::chrono::microseconds(thalweg::simulation::wall_now_micros()));
}

void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* thread, std::unique_ptr<std::thread::_State> state, void (*depend)()) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) {
    __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
        thread, std::move(state), depend);
    return;
  }
  const std::shared_ptr<std::thread::_State> shared(std::move(state));
  const std::thread::_State& runs = *shared;
  const pthread_t id = scheduler->spawn(scheduler->process(), [shared] { shared->_M_run(); }, typeid(runs).name());
  static_assert(sizeof(std::thread) == sizeof(id));
  std::memcpy(static_cast<void*>(thread), &id, sizeof(id));
  scheduler->maybe_yield(4);
}

void __wrap__ZNSt6thread4joinEv(std::thread* thread) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real__ZNSt6thread4joinEv(thread);
  pthread_t id = 0;
  std::memcpy(&id, static_cast<const void*>(thread), sizeof(id));
  scheduler->join(id);
  id = 0;
  std::memcpy(static_cast<void*>(thread), &id, sizeof(id));
}

unsigned int __wrap__ZNSt13random_device9_M_getvalEv(std::random_device* device) {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr) return __real__ZNSt13random_device9_M_getvalEv(device);
  return static_cast<unsigned int>(scheduler->random(UINT32_MAX));
}

}  // extern "C"

namespace thalweg::simulation {

int64_t wall_now_micros() {
  constexpr int64_t kBegin = 1'800'000'000'000'000;  // the world begins in 2027
  return kBegin + (Scheduler::current()->now() + wall_step_ns) / kMicrosecond;
}

}  // namespace thalweg::simulation
