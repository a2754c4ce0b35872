#ifndef OPTRAIL_OPS_DEVICE_CPU_ENERGY_H_
#define OPTRAIL_OPS_DEVICE_CPU_ENERGY_H_

// Energy of the processor packages, from the counters that Intel and AMD
// processors keep (RAPL, "running average power limit") and Linux shows under
// /sys/class/powercap. Few virtual machines have them, and since 2020 only root
// may read them (CVE-2020-8694).
//
//   const auto meter = MakeEnergyMeter("/sys/class/powercap");
//   if (!meter.ok()) Say(meter.status().message());  // "unsupported here: ..."
//
// The counters move about once a millisecond and count whole packages: whatever
// else runs there is in the reading. There is no second source to hold them
// against, so that windows are labelled unchecked.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/core/device.h"

namespace optrail::ops {

// Unavailable, "unsupported here: why", if there is no counter that this
// process may read. Counters wrap around at what max_energy_range_uj says,
// after minutes; they are looked at every `sample_every` while something is
// metered. `device` is the hardware id, by which calibrations are kept.
absl::StatusOr<std::unique_ptr<Meter>> MakeEnergyMeter(
    const std::string& powercap = "/sys/class/powercap",
    const std::string& device = "cpu",
    absl::Duration sample_every = absl::Milliseconds(10));

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_ENERGY_H_
