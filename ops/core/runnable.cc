#include "ops/core/runnable.h"

#include "base/status_macros.h"

namespace optrail::ops {

absl::StatusOr<std::unique_ptr<Runnable>> Runnable::Create(
    std::unique_ptr<const Invocation> invocation, Device& device) {
  std::unique_ptr<Runnable> made(new Runnable(std::move(invocation), device));
  const Invocation& made_of = *made->invocation_;
  if (made_of.workspace_bytes() == 0) return made;
  OPTRAIL_ASSIGN_OR_RETURN(made->workspace_,
                           device.AllocateWorkspace(made_of.workspace_bytes()));
  OPTRAIL_RETURN_IF_ERROR(
      device.Zero(made->workspace_->data(), made_of.zeroed_bytes()));
  return made;
}

absl::StatusOr<std::unique_ptr<Runnable>> Runnable::Load(
    const Backend& backend, const Artifact& artifact, const proto::Shape& shape,
    const proto::Config& config, Device& device) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<const Invocation> invocation,
                           backend.Load(artifact, shape, config, device));
  return Create(std::move(invocation), device);
}

absl::StatusOr<Call> Runnable::Prepare(absl::Span<void* const> operands) {
  Call call;
  call.operands = operands;
  call.stream = device_.stream();
  if (workspace_ != nullptr) call.workspace = workspace_->data();
  if (invocation_->packed_bytes() == 0) return call;
  std::unique_ptr<Buffer>& packed =
      packed_[std::vector<void*>(operands.begin(), operands.end())];
  if (packed == nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(packed,
                             device_.Allocate(invocation_->packed_bytes()));
  }
  call.packed = packed->data();
  OPTRAIL_RETURN_IF_ERROR(invocation_->Pack(call));
  return call;
}

absl::Status Runnable::Run(absl::Span<void* const> operands) {
  OPTRAIL_ASSIGN_OR_RETURN(const Call call, Prepare(operands));
  return invocation_->Run(call);
}

}  // namespace optrail::ops
