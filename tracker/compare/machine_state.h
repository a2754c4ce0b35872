#ifndef OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_
#define OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_

// What calibration loops beside a process say of the machine.

namespace optrail::tracker {

// Logarithms of the loops' times.
struct MachineState {
  double core = 0;    // arithmetic and the caches of a core
  double memory = 0;  // beyond them
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_
