#include "base/testing/wrong_clock.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace optrail {
namespace {

constexpr int64_t kNsPerSecond = 1000000000;

std::atomic<int64_t> error_ns{0};

void Add(int64_t ns, timespec* now) {
  const int64_t sum =
      static_cast<int64_t>(now->tv_sec) * kNsPerSecond + now->tv_nsec + ns;
  now->tv_sec = static_cast<time_t>(sum / kNsPerSecond);
  now->tv_nsec = static_cast<decltype(now->tv_nsec)>(sum % kNsPerSecond);
}

}  // namespace

void SetWallClockError(absl::Duration error) {
  error_ns = absl::ToInt64Nanoseconds(error);
}

}  // namespace optrail

// The dynamic linker finds these before libc's.
extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, now);  // NOLINT
  if (result == 0 &&
      (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    optrail::Add(optrail::error_ns, now);
  }
  return static_cast<int>(result);
}

int gettimeofday(timeval* now, void* zone) noexcept {
  (void)zone;  // obsolete
  timespec precise = {};
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}

time_t time(time_t* now) noexcept {
  timespec precise = {};
  (void)clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
