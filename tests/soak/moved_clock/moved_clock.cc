// Preloaded into a run, it stands for an administrator who sets the clock: a second after a process has first looked at
// the time of day it is an hour later, and a second after that an hour earlier than it was.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr time_t kHour = 3600;

time_t shift() {
  static std::atomic<time_t> began = 0;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  time_t none = 0;
  began.compare_exchange_strong(none, now.tv_sec);
  const time_t seconds = now.tv_sec - began;
  return seconds < 1 ? 0 : seconds < 2 ? kHour : -kHour;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* to) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, to));
  if (result == 0 && clock == CLOCK_REALTIME) to->tv_sec += shift();
  return result;
}

int gettimeofday(timeval* to, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *to = {now.tv_sec, now.tv_nsec / 1000};
  return result;
}

time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
