#ifndef OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_
#define OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_

// What calibration loops beside a process, and how many of its samples were
// contended, say of the machine.

namespace optrail::tracker {

struct MachineState {
  // Logarithms of the loops' times.
  double clock = 0;   // dependent arithmetic: the clock rate alone
  double core = 0;    // the caches of a core over `clock`: who shares the core
  double memory = 0;  // beyond them

  double contended = 0;  // the share of samples that were
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_
