/* Preloaded into a PostgreSQL server: each fsync and fdatasync takes longer by what a file says, as on a slow disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void wait_as_told(void) {
  const char* path = getenv("SLOW_DISK_SECONDS");
  FILE* file = path ? fopen(path, "r") : NULL;
  double seconds = 0;
  if (!file) return;
  if (fscanf(file, "%lf", &seconds) != 1) seconds = 0;
  fclose(file);
  if (seconds <= 0) return;
  struct timespec pause = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
  while (nanosleep(&pause, &pause) != 0) {
  }
}

int fsync(int fd) {
  wait_as_told();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
  wait_as_told();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
