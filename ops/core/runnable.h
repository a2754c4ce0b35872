#ifndef OPTRAIL_OPS_CORE_RUNNABLE_H_
#define OPTRAIL_OPS_CORE_RUNNABLE_H_

// Runnable is an invocation with the memory that its calls need on a device,
// for those that make one call at a time: stopwatches, checks, tests.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Runnable> runnable,
//       Runnable::Load(backend, artifact, shape, config, device));
//   OPTRAIL_RETURN_IF_ERROR(runnable->Run(operands->addresses()));
//
// One thread at a time may use it.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/backend.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

class Runnable {
 public:
  // Allocates the workspace. ResourceExhausted if the memory cannot be had. The
  // device must outlive the object.
  static absl::StatusOr<std::unique_ptr<Runnable>> Create(
      std::unique_ptr<const Invocation> invocation, Device& device);
  // Makes one from what the backend loads; errors are the backend's, too.
  static absl::StatusOr<std::unique_ptr<Runnable>> Load(
      const Backend& backend, const Artifact& artifact,
      const proto::Shape& shape, const proto::Config& config, Device& device);

  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  const Invocation& invocation() const { return *invocation_; }

  // Packs what is to be packed of the operands, and returns the call, which is
  // valid as long as the addresses and this object are. Once what the operands
  // hold has changed, prepare them again.
  absl::StatusOr<Call> Prepare(absl::Span<void* const> operands);

  // Prepares and makes one call. What a device does later is reported by
  // Device::Synchronize().
  absl::Status Run(absl::Span<void* const> operands);

 private:
  Runnable(std::unique_ptr<const Invocation> invocation, Device& device)
      : invocation_(std::move(invocation)), device_(device) {}

  const std::unique_ptr<const Invocation> invocation_;
  Device& device_;
  std::shared_ptr<Buffer> workspace_;  // null: none is needed
  // By the addresses of the operands.
  std::map<std::vector<void*>, std::unique_ptr<Buffer>> packed_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_RUNNABLE_H_
