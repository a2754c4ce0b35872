#ifndef OPTRAIL_OPS_CORE_INVOCATION_H_
#define OPTRAIL_OPS_CORE_INVOCATION_H_

// Code that is ready to run, and what it runs on: the two things that a device
// needs to know in order to time calls.
//
//   invocation.Pack(sets.addresses(0));   // layers keep their weights packed
//   invocation.Run(sets.addresses(0));

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace optrail::ops {

// A kernel bound to a shape, a config and a device; owns its workspace.
class Invocation {
 public:
  virtual ~Invocation() = default;

  // Brings what a user keeps from call to call, a layer's weights, into a
  // layout of the invocation's own. It comes before the calls of these
  // operands, again once what they hold has changed, and is no part of a call:
  // its time is not measured.
  virtual void Pack(absl::Span<void* const> operands) {}

  // Launches one call. `operands` are device addresses in the order of
  // Operator::Operands(). Called many times, also with other addresses.
  virtual void Run(absl::Span<void* const> operands) = 0;

  virtual int64_t workspace_bytes() const { return 0; }
};

// Operands of a call, several times over where a kernel works in place: `sets`
// calls can then be made before they are restored.
class OperandSets {
 public:
  virtual ~OperandSets() = default;

  virtual absl::Span<void* const> addresses(int set) const = 0;
  // Sizes of the operands of one set, in the same order.
  virtual absl::Span<const int64_t> bytes() const = 0;
  virtual int sets() const = 0;
  virtual bool has_in_out() const = 0;

  // Writes the initial values back into the in-out operands of every set.
  // Nothing to do for other operands.
  virtual absl::Status Restore() = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_INVOCATION_H_
