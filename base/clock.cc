#include "base/clock.h"

#include <time.h>

namespace optrail {
namespace {

int64_t Read(clockid_t id) {
  timespec time;
  clock_gettime(id, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

}  // namespace

Clock* Clock::Real() {
  static Clock* const real = new RealClock;
  return real;
}

int64_t RealClock::NowNs() const { return Read(CLOCK_MONOTONIC); }
int64_t RealClock::WallNs() const { return Read(CLOCK_REALTIME); }

}  // namespace optrail
