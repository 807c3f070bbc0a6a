// The functions that the wheel's code and the archives within it ask of a glibc newer than 2.28, over what 2.28 has.
// Linked into each of the wheel's binaries, where they are found before the system's; python/wheel_parts.py compiles
// it.
#include <malloc.h>
#include <pthread.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#else
#error "this machine's first glibc is not known"
#endif

#define OLDER(name) __asm__(".symver older_" #name "," #name "@" FIRST_GLIBC)
#define WITHIN extern "C" __attribute__((visibility("hidden")))

// 2.29 has these anew without the errors of System V; the numbers are the same.
extern "C" {
double older_exp(double);
double older_log(double);
double older_log2(double);
double older_pow(double, double);
}
OLDER(exp);
OLDER(log);
OLDER(log2);
OLDER(pow);
WITHIN double exp(double x) { return older_exp(x); }
WITHIN double log(double x) { return older_log(x); }
WITHIN double log2(double x) { return older_log2(x); }
WITHIN double pow(double x, double y) { return older_pow(x, y); }

// 2.32. False at all times: shared pointers count atomically before there is a second thread, too.
WITHIN char __libc_single_threaded;
char __libc_single_threaded = 0;

// 2.30. Where the system's clock is set meanwhile, the wait ends too early or too late, which its callers allow for.
WITHIN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  if (clock != CLOCK_MONOTONIC) return EINVAL;
  constexpr int64_t second = 1'000'000'000;
  timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  const int64_t nanoseconds = static_cast<int64_t>(real.tv_nsec) + until->tv_nsec - now.tv_nsec + second;  // >= 0
  const timespec then = {real.tv_sec + (until->tv_sec - now.tv_sec) + nanoseconds / second - 1, nanoseconds % second};
  return pthread_cond_timedwait(condition, mutex, &then);
}

// 2.36
WITHIN void arc4random_buf(void* to, size_t size) {
  for (char* at = static_cast<char*>(to); size > 0;) {
    const ssize_t got = getrandom(at, size, 0);
    if (got < 0 && errno != EINTR) abort();
    if (got <= 0) continue;
    at += got;
    size -= static_cast<size_t>(got);
  }
}
WITHIN uint32_t arc4random() {
  uint32_t number;
  arc4random_buf(&number, sizeof number);
  return number;
}

// 2.33. Above 2 GiB its numbers wrap, as they did; LLVM prints them where it is asked for its own statistics.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
WITHIN struct mallinfo2 mallinfo2() {
  const struct mallinfo was = mallinfo();
  struct mallinfo2 is = {};
  is.arena = static_cast<unsigned>(was.arena);
  is.hblkhd = static_cast<unsigned>(was.hblkhd);
  is.uordblks = static_cast<unsigned>(was.uordblks);
  is.fordblks = static_cast<unsigned>(was.fordblks);
  return is;
}
