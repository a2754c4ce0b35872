#ifndef OPTRAIL_OPS_CORE_NEIGHBOURS_H_
#define OPTRAIL_OPS_CORE_NEIGHBOURS_H_

// A device that processes of others have open, too, may offer this beside
// Device and Monitor: who they are, and what they turn out to have done.
//
//   Log(FindNeighbours(device).active);
//
// Only activity disturbs. A process that has the device open and computes
// nothing is a neighbour, and is ignored.

#include <string>

#include "ops/core/device.h"

namespace optrail::ops {

// Processes that take no turns (Device::TakeTurn), for people: "process 4711
// (python3)", separated by commas; empty: none.
struct NeighbourNames {
  std::string active;  // they compute, or did until a moment ago
  std::string idle;
};

class SharedDevice {
 public:
  virtual ~SharedDevice() = default;
  virtual NeighbourNames FindNeighbours() = 0;
};

// Nobody, if the device does not tell.
inline NeighbourNames FindNeighbours(Device& device) {
  auto* const shared = dynamic_cast<SharedDevice*>(&device);
  return shared != nullptr ? shared->FindNeighbours() : NeighbourNames();
}

// A Monitor whose device says late what others did on it.
class LateMonitor {
 public:
  virtual ~LateMonitor() = default;

  // At the end of a sampling: waits until the device has told what others did
  // meanwhile, and returns how many of the last samples, counted by Begin(),
  // were disturbed though End() did not know. Waits for nothing where there are
  // no neighbours.
  virtual int CountDisturbedLate() = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_NEIGHBOURS_H_
