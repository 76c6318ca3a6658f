/* Preloaded into a process: adds to its wall clock, and to that only, the seconds that the file named by
 * THALWEG_TEST_CLOCK_SHIFT holds as a native 64-bit integer. The test changes them while the process runs: a clock step. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void map_shift(void) {
  const char *path = getenv("THALWEG_TEST_CLOCK_SHIFT");
  const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) abort(); /* a test that shifts nothing would prove nothing */
  void *page = mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) abort();
  shift = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  const long failed = syscall(SYS_clock_gettime, clock, out);
  if (failed == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += *shift;
  return (int)failed;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return (time_t)-1;
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
