#ifndef OPTRAIL_OPS_CORE_PERTURBATION_H_
#define OPTRAIL_OPS_CORE_PERTURBATION_H_

// Perturbable is what a device may offer beside timing calls: timing calls
// whose surroundings were changed on purpose, and observing calls closely. What
// becomes faster when its operands do not travel was waiting for memory. A
// diagnosis compares; the results of perturbed calls mean nothing.
//
//   auto* const perturbable = dynamic_cast<Perturbable*>(&device);
//   if (perturbable == nullptr) return Unsupported(device);
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Timer> timer,
//       perturbable->MakePerturbedTimer(runnable, operands, mode, change));
//
// One thread at a time may use it. Runnable, operands and device must outlive
// the timer.

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"
#include "ops/core/runnable.h"
#include "tuning/proto/perturbation.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops {

class Perturbable {
 public:
  virtual ~Perturbable() = default;

  // Makes a timer as Device::MakeTimer() does. Unimplemented, "unsupported
  // here: why", for a change that this device or its system does not offer.
  // Compile options are the caller's affair.
  virtual absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedTimer(
      Runnable& runnable, OperandSets& operands, TimingMode mode,
      const proto::Perturbation& perturbation) = 0;

  // What some calls did, one value a call or one for all. What cannot be known
  // here is left out. Names are those of diagnosis/numbers.h.
  virtual absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCalls(
      Runnable& runnable, OperandSets& operands) = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_PERTURBATION_H_
