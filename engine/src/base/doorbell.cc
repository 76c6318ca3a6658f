#include "base/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace thalweg::base {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free,
              "the kernel reads the futex word directly");

uint32_t Doorbell::ticket() const { return rings_.load(std::memory_order_acquire); }

void Doorbell::wait(uint32_t ticket, std::chrono::microseconds timeout) {
  if (timeout.count() <= 0) return;
  sleeping_.store(1, std::memory_order_seq_cst);
  if (rings_.load(std::memory_order_seq_cst) == ticket) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    timespec bound{};
    bound.tv_sec = static_cast<time_t>(seconds.count());
    bound.tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout - seconds).count();
    // EAGAIN (rung meanwhile), EINTR and ETIMEDOUT all mean: look again, which is the caller's next step anyway.
    syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, ticket, &bound, nullptr, 0);
  }
  sleeping_.store(0, std::memory_order_seq_cst);
  // Pairs with the release in ring()'s addition: what the ringer wrote is visible to the owner from here on.
  static_cast<void>(rings_.load(std::memory_order_acquire));
}

void Doorbell::ring() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) {
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace thalweg::base
