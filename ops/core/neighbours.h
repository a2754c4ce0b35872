#ifndef OPTRAIL_OPS_CORE_NEIGHBOURS_H_
#define OPTRAIL_OPS_CORE_NEIGHBOURS_H_

// What a device may offer beside Device and Monitor where processes of others
// have it open, too: who they are, and what they turn out to have done.
//
//   auto* const shared = dynamic_cast<SharedDevice*>(&device);
//   if (shared != nullptr) Log(shared->FindNeighbours().active);
//
// Only activity disturbs. A process that has the device open and computes
// nothing is a neighbour, and is ignored.

#include <string>

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
