#ifndef OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_
#define OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_

// What calibration loops beside a process, and how many of its samples were
// contended, say of the machine.

#include <array>

namespace optrail::tracker {

struct MachineState {
  enum Witness {
    kClock,      // a loop in registers: the clock rate alone
    kL1,         // the caches of a core over kClock: who shares the core
    kL2,         //
    kL3,         // beyond them
    kMemory,     //
    kContended,  // the share of samples that were, where medians are told
    kWitnesses
  };

  // Logarithms of the loops' times.
  std::array<double, kWitnesses> values = {};

  // Of the fastest readings while samples were taken, else of medians before
  // and after; the two do not compare.
  bool fastest = false;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_MACHINE_STATE_H_
