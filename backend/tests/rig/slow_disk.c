/* Preloaded into a program: each fsync and fdatasync takes longer by what a file says, as on a slow disk. With
   SLOW_DISK_WRITES in the environment so does each write of 4 KiB and more to a regular file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

ssize_t write(int fd, const void* bytes, size_t count) {
  struct stat about;
  if (count >= 4096 && getenv("SLOW_DISK_WRITES") && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) wait_as_told();
  return ((ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(fd, bytes, count);
}
