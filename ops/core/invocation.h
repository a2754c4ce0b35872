#ifndef OPTRAIL_OPS_CORE_INVOCATION_H_
#define OPTRAIL_OPS_CORE_INVOCATION_H_

// An Invocation is a kernel that is ready to run: bound to a shape, a config
// and a device, and immutable from then on.
//
//   Call call;
//   call.operands = sets.addresses(0);
//   call.workspace = workspace;  // invocation.workspace_bytes()
//   call.packed = packed;        // invocation.packed_bytes()
//   call.stream = device.stream();
//   absl::Status status = invocation.Pack(call);  // once for these weights
//   if (status.ok()) status = invocation.Run(call);
//
// Memory. The caller owns all of it. Workspace and packed weights are aligned
// to 64 bytes, on a GPU to 256; calls that may run at the same time need a
// workspace each, while packed weights are read alone and may be shared.
// runnable.h allocates both for those that make one call at a time.
//
// Threads. Every method may be called by many threads at once. An invocation of
// a GPU expects the device's context to be current on the calling thread.
//
// Errors. InvalidArgument: the kernel found out that it cannot compute this
// call. Other codes: the device or a library failed. What a GPU does later is
// reported when its stream is waited for.

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace optrail::ops {

// Threads that share out loops.
class ParallelLoops {
 public:
  virtual ~ParallelLoops() = default;

  // Calls body(i) once for each i in [0, count), on no more threads at a time
  // than the invocation was made for, and returns when all calls have returned.
  // Several threads may call it at once.
  virtual void ParallelFor(int64_t count,
                           absl::FunctionRef<void(int64_t)> body) = 0;
};

// The queue that takes the work of a call.
struct Stream {
  // On a CPU; nullptr: all of it runs on the calling thread.
  ParallelLoops* loops = nullptr;
  // On a GPU: what its driver calls a stream (CUstream); calls return once they
  // are launched there.
  void* handle = nullptr;
};

// What one call works on.
struct Call {
  // Device addresses in the order of Operator::Operands().
  absl::Span<void* const> operands;
  // Invocation::workspace_bytes(), for this call alone.
  void* workspace = nullptr;
  // Invocation::packed_bytes(): what Pack() writes and Run() reads.
  void* packed = nullptr;
  Stream stream;

  void ParallelFor(int64_t count, absl::FunctionRef<void(int64_t)> body) const {
    if (stream.loops != nullptr && count > 1) {
      stream.loops->ParallelFor(count, body);
      return;
    }
    for (int64_t i = 0; i < count; ++i) body(i);
  }
};

class Invocation {
 public:
  virtual ~Invocation() = default;

  // Memory that a call needs beside its operands.
  virtual int64_t workspace_bytes() const { return 0; }
  // The first so many bytes of a workspace must be 0 before its first call, and
  // after a call that failed. Calls leave them 0.
  virtual int64_t zeroed_bytes() const { return 0; }
  // Memory for what a user keeps from call to call in a layout of the
  // invocation's own: a layer's weights. 0: nothing is packed.
  virtual int64_t packed_bytes() const { return 0; }

  // Writes `call.packed` from `call.operands`. It comes before the calls of
  // these operands, again once what they hold has changed, and is no part of a
  // call: its time is not measured.
  virtual absl::Status Pack(const Call& call) const { return absl::OkStatus(); }

  // Makes one call, or launches it.
  virtual absl::Status Run(const Call& call) const = 0;
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
