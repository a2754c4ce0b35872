#ifndef OPTRAIL_FLEET_STEADY_NOW_H_
#define OPTRAIL_FLEET_STEADY_NOW_H_

// How long something takes on a machine whose wall clock may be wrong, or be
// set while a pilot works:
//
//   const absl::Duration began = SteadyNow();
//   const absl::Duration passed = SteadyNow() - began;
//
// Leases and deadlines go by the database's clock alone. Thread-safe.

#include "absl/time/time.h"
#include "base/clock.h"

namespace optrail::fleet {

// Since an arbitrary moment of this machine.
inline absl::Duration SteadyNow() {
  return absl::Nanoseconds(Clock::Real()->NowNs());
}

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_STEADY_NOW_H_
