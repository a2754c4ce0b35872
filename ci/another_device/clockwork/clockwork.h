#ifndef CLOCKWORK_CLOCKWORK_H_
#define CLOCKWORK_CLOCKWORK_H_

// A device that Optrail does not know: gears that turn in ticks of their own.
// It says how long a call took by its own clock, which has nothing to do with
// that of the host, and what a call cost by a meter of its own.

#include <cstdint>

#include "ops/core/device.h"

namespace clockwork {

// Numbers from 1000 on are free for devices of anybody's.
inline constexpr auto kKind = static_cast<optrail::proto::DeviceKind>(1042);

class Clockwork : public optrail::ops::Device {
 public:
  static constexpr auto kKind = clockwork::kKind;
  static constexpr char kKindName[] = "clockwork";

  // What a kernel did: the device's clock goes on by `ticks`, of 10 ns each,
  // and its spring loses `joules`.
  virtual void Turn(double ticks, double joules) = 0;
};

}  // namespace clockwork

#endif  // CLOCKWORK_CLOCKWORK_H_
