#ifndef OPTRAIL_BASE_CLOCK_H_
#define OPTRAIL_BASE_CLOCK_H_

// Clock tells the time, or what a test says is the time.
//
//   FakeClock clock;
//   Progress progress("tuning", 10, options, &clock);
//   clock.Advance(absl::Seconds(3));
//
// It is not the stopwatch: measured code is timed without a virtual call.

#include <cstdint>

#include "absl/time/time.h"

namespace optrail {

class Clock {
 public:
  virtual ~Clock() = default;
  // The machine's own; never destroyed.
  static Clock* Real();

  // Steady, from an arbitrary start; never goes back.
  virtual int64_t NowNs() const = 0;
  // Since 1970-01-01 UTC; may jump.
  virtual int64_t WallNs() const = 0;
};

class RealClock : public Clock {
 public:
  int64_t NowNs() const override;
  int64_t WallNs() const override;
};

// Stands still until it is advanced. Not thread-safe.
class FakeClock : public Clock {
 public:
  // 2024-01-01 00:00:00 UTC.
  static constexpr int64_t kDefaultWallNs = 1704067200 * int64_t{1000000000};

  explicit FakeClock(int64_t wall_ns = kDefaultWallNs) : wall_ns_(wall_ns) {}
  int64_t NowNs() const override { return now_ns_; }
  int64_t WallNs() const override { return wall_ns_; }

  void AdvanceNs(int64_t ns) {
    now_ns_ += ns;
    wall_ns_ += ns;
  }
  void Advance(absl::Duration duration) {
    AdvanceNs(absl::ToInt64Nanoseconds(duration));
  }

 private:
  int64_t now_ns_ = 0;
  int64_t wall_ns_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_CLOCK_H_
